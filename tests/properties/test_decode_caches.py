"""Decode caches never change a result: responses and errors are equal with and without them."""

import json
from random import Random
from typing import Any

import msgspec
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from extender.app import wiring
from extender.cache.cache import Cache
from extender.extender_api.payloads import DecodeCaches, decode_args
from extender.extender_api.request_limits import RequestError, RequestLimits
from extender.extender_api.verbs import Verbs
from tests.build import make_node
from tests.coroutines import run_now

PROFILE = wiring.build_setup().first_profile
NAMES = ("n0", "n1", "n2", "n3", "new")
ZONE = "topology.kubernetes.io/zone"


def _verbs(cache: Cache, *, keep: bool) -> Verbs:
    return Verbs(cache, {}, PROFILE, wiring.make_runtime(cache_results=keep), wiring.make_runtime(cache_results=False))


def _node(number: int, cpu: int, zone: str) -> dict[str, Any]:
    size = {"cpu": str(cpu), "memory": "4Gi", "pods": "6"}
    images = [{"names": ["app:latest"], "sizeBytes": 90_000_000 * cpu}]
    metadata = {"name": f"n{number}", "labels": {ZONE: zone}}
    return {"metadata": metadata, "status": {"allocatable": size, "images": images}}


def _pod(cpu: int, zone: str | None) -> dict[str, Any]:
    container = {"name": "app", "image": "app", "resources": {"requests": {"cpu": f"{cpu}m"}}}
    spec = {"containers": [container], **({"nodeSelector": {ZONE: zone}} if zone else {})}
    return {"metadata": {"name": "web", "namespace": "shop", "uid": "1"}, "spec": spec}


NODES = st.builds(_node, st.integers(0, 3), st.integers(1, 3), st.sampled_from(["a", "b"]))
PODS = st.builds(_pod, st.sampled_from([100, 1500]), st.sampled_from([None, "a"]))
REQUESTED = st.one_of(
    st.lists(st.sampled_from(NAMES), max_size=6).map(lambda names: {"Nodes": None, "NodeNames": names}),
    st.lists(NODES, max_size=4, unique_by=lambda node: node["metadata"]["name"]).map(
        lambda nodes: {"Nodes": {"metadata": {}, "items": nodes}, "NodeNames": None}
    ),
)
SEPARATORS = st.sampled_from([(",", ":"), (", ", ": ")])
STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("put"), NODES),
        st.tuples(st.just("drop"), st.sampled_from(NAMES)),
        st.tuples(st.just("place"), st.tuples(PODS, st.sampled_from(NAMES))),
        st.tuples(st.just("ask"), st.tuples(PODS, REQUESTED, SEPARATORS)),
        st.tuples(st.just("again"), st.integers(0, 3)),
    ),
    max_size=25,
)


def _answers(verbs: Verbs, body: bytes, caches: DecodeCaches | None) -> tuple[bytes, bytes]:
    args = run_now(decode_args(bytearray(body), caches=caches))
    return msgspec.json.encode(run_now(verbs.filter(args))), run_now(verbs.prioritize(args)).to_json()


@settings(max_examples=150, deadline=None, suppress_health_check=list(HealthCheck))
@given(first=st.lists(NODES, max_size=4), steps=STEPS)
def test_cached_and_new_requests_get_equal_responses(first: list[Any], steps: list[Any]) -> None:
    """Nodes are added, changed and removed between new and repeated requests."""
    cache, caches, bodies = Cache(), DecodeCaches(), list[bytes]()
    cached_verbs, fresh = _verbs(cache, keep=True), _verbs(cache, keep=False)
    for number, (kind, value) in enumerate([("put", node) for node in first] + steps):
        if kind == "put":
            cache.add_or_update_node(
                make_node(value["metadata"]["name"], labels=value["metadata"]["labels"], **value["status"])
            )
        elif kind == "drop":
            cache.remove_node(value)
        elif kind == "place":
            pod = run_now(decode_args(json.dumps({"Pod": value[0], "NodeNames": []}).encode())).pod
            meta = msgspec.structs.replace(pod.metadata, uid=str(number), name=str(number))
            cache.assume(msgspec.structs.replace(pod, metadata=meta), value[1])
        elif kind == "ask" or bodies:
            if kind == "ask":
                pod, nodes, separators = value
                bodies.append(json.dumps({"Pod": pod, **nodes}, separators=separators).encode())
            body = bodies[-1] if kind == "ask" else bodies[value % len(bodies)]
            assert _answers(cached_verbs, body, caches) == _answers(fresh, body, None)


def _corrupt(body: bytes, rng: Random) -> bytes:
    """Replace or remove a few bytes of *body*, mostly at a key of the request."""
    keys = [
        body.index(key) for key in (b'"Pod"', b'"Nodes"', b'"NodeNames"', b'"metadata":{}', b'"items"') if key in body
    ]
    position = rng.choice([*keys, len(body) - 1, rng.randrange(len(body))])
    replacements = [
        b"",
        b'"',
        b"}",
        b",",
        b" ",
        b"null",
        b'"Pod":{},',
        b'"Nodes":null,',
        b'"items":[],',
        b'"metadata":5,',
    ]
    return body[:position] + rng.choice(replacements) + body[position + rng.choice([0, 0, 1, 2]) :]


def _outcome(body: bytes, caches: DecodeCaches | None) -> Any:
    """Return the decoded *body*, or its error."""
    try:
        args = run_now(decode_args(bytearray(body), caches=caches))
    except RequestError as error:
        return error.status, error.message
    names = None if args.names is None else args.names.names
    if args.nodes is None:
        return args.pod, names
    other_fields = {key: bytes(raw) for key, raw in args.nodes.other_fields.items()}
    return args.pod, names, [body_.node for body_ in args.nodes.nodes], list(map(bytes, args.nodes.raw)), other_fields


@settings(max_examples=300, deadline=None)
@given(nodes=REQUESTED, pod=PODS, seed=st.integers(0, 2**32))
def test_a_corrupted_request_is_rejected_with_and_without_caches(nodes: Any, pod: Any, seed: int) -> None:
    """A request that differs by a few bytes from a cached one is decoded or rejected as without caches."""
    rng, caches = Random(seed), DecodeCaches()
    body = json.dumps({"Pod": pod, **nodes}, separators=(",", ":")).encode()
    run_now(decode_args(body, caches=caches))
    corrupted = _corrupt(body, rng)
    assert _outcome(corrupted, caches) == _outcome(corrupted, None)


@settings(max_examples=500, deadline=None)
@given(nodes=REQUESTED, pod=PODS, seed=st.integers(0, 2**32))
def test_a_request_in_go_s_encoding_is_decoded_like_any_other(nodes: Any, pod: Any, seed: int) -> None:
    """A trailing space, which Go does not write, changes nothing, whether the request is valid or not."""
    body = json.dumps({"Pod": pod, **nodes}, separators=(",", ":")).encode()
    for body_ in (body, _corrupt(body, Random(seed))):
        assert _outcome(body_, None) == _outcome(body_ + b" ", None)


def test_a_duplicate_key_is_rejected_beside_cached_parts() -> None:
    caches = DecodeCaches()
    good = b'{"Pod":{"metadata":{"name":"web"}},"Nodes":null,"NodeNames":["n1"]}'
    assert run_now(decode_args(good, caches=caches)) is not None
    for twin in (b'"nodenames":null', b'"Nodes":null', b'"pod":{}'):
        with pytest.raises(RequestError, match="duplicate key"):
            run_now(decode_args(good[:-1] + b"," + twin + b"}", caches=caches))


@settings(max_examples=300, deadline=None)
@given(names=st.lists(st.sampled_from(NAMES), max_size=6), first=PODS, second=PODS, seed=st.integers(0, 2**32))
def test_a_request_that_differs_from_an_earlier_one_by_its_pod_is_decoded_as_without_caches(
    names: list[str], first: Any, second: Any, seed: int
) -> None:
    """The list of names is found by the end of the body, also if the part before it is not one pod."""
    caches = DecodeCaches()
    ending = b',"Nodes":null,"NodeNames":' + json.dumps(names, separators=(",", ":")).encode() + b"}"

    def make_body(pod: Any) -> bytes:
        return b'{"Pod":' + json.dumps(pod, separators=(",", ":")).encode() + ending

    decoded = run_now(decode_args(make_body(first), caches=caches))
    again = run_now(decode_args(make_body(second), caches=caches))
    assert again.names is decoded.names
    rng, body = Random(seed), make_body(second)
    corrupted = _corrupt(body[: -len(ending)], rng) + ending
    for changed in (corrupted, body[: -len(ending)] + b',"pod":{}' + ending, b'{"Pod":null' + ending):
        assert _outcome(changed, caches) == _outcome(changed, None)


def test_a_limit_holds_for_a_request_with_a_known_list_of_names() -> None:
    caches = DecodeCaches()
    ending = b',"Nodes":null,"NodeNames":["n1"]}'
    run_now(decode_args(b'{"Pod":{}' + ending, caches=caches))
    big = b'{"Pod":{"metadata":{"name":"' + b"x" * 2000 + b'"}}' + ending
    with pytest.raises(RequestError, match="a request with NodeNames may have at most 1000 bytes; it has"):
        run_now(decode_args(big, RequestLimits(max_names_bytes=1000), caches))
