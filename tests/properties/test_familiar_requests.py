"""What is kept of earlier requests never changes an answer: with and without it, answers and refusals are equal."""

import json
from random import Random
from typing import Any

import msgspec
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from extender import wiring
from extender.cluster.state import ClusterState
from extender.web.verbs import Verbs
from extender.web.wire import Familiar, RequestError, decode_args
from tests.build import a_node

PROFILE = wiring.scheduling().first
NAMES = ("n0", "n1", "n2", "n3", "new")
ZONE = "topology.kubernetes.io/zone"


def _verbs(state: ClusterState, *, keep: bool) -> Verbs:
    return Verbs(state, {}, PROFILE, wiring.engine(keep=keep), wiring.engine(keep=False))


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
ASKED = st.one_of(
    st.lists(st.sampled_from(NAMES), max_size=6).map(lambda names: {"Nodes": None, "NodeNames": names}),
    st.lists(NODES, max_size=4, unique_by=lambda node: node["metadata"]["name"]).map(
        lambda nodes: {"Nodes": {"metadata": {}, "items": nodes}, "NodeNames": None}
    ),
)
SPELT = st.sampled_from([(",", ":"), (", ", ": ")])
STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("put"), NODES),
        st.tuples(st.just("drop"), st.sampled_from(NAMES)),
        st.tuples(st.just("place"), st.tuples(PODS, st.sampled_from(NAMES))),
        st.tuples(st.just("ask"), st.tuples(PODS, ASKED, SPELT)),
        st.tuples(st.just("again"), st.integers(0, 3)),
    ),
    max_size=25,
)


def _answers(verbs: Verbs, body: bytes, familiar: Familiar | None) -> tuple[bytes, bytes]:
    args = decode_args(bytearray(body), familiar=familiar)
    return msgspec.json.encode(verbs.filter(args)), verbs.prioritize(args).written()


@settings(max_examples=150, deadline=None, suppress_health_check=list(HealthCheck))
@given(first=st.lists(NODES, max_size=4), steps=STEPS)
def test_familiar_and_new_requests_get_equal_answers(first: list[Any], steps: list[Any]) -> None:
    """Nodes come, change and go between requests that are new, or were asked before."""
    state, familiar, asked = ClusterState(), Familiar(), list[bytes]()
    knowing, fresh = _verbs(state, keep=True), _verbs(state, keep=False)
    for number, (kind, what) in enumerate([("put", node) for node in first] + steps):
        if kind == "put":
            state.put_node(a_node(what["metadata"]["name"], labels=what["metadata"]["labels"], **what["status"]))
        elif kind == "drop":
            state.drop_node(what)
        elif kind == "place":
            pod = decode_args(json.dumps({"Pod": what[0], "NodeNames": []}).encode()).pod
            meta = msgspec.structs.replace(pod.metadata, uid=str(number), name=str(number))
            state.assume(msgspec.structs.replace(pod, metadata=meta), what[1])
        elif kind == "ask" or asked:
            if kind == "ask":
                pod, nodes, separators = what
                asked.append(json.dumps({"Pod": pod, **nodes}, separators=separators).encode())
            body = asked[-1] if kind == "ask" else asked[what % len(asked)]
            assert _answers(knowing, body, familiar) == _answers(fresh, body, None)


def _spoilt(body: bytes, chance: Random) -> bytes:
    """*body* with a few bytes gone, and others in their place, more often than not at a key of the request."""
    keys = [
        body.index(key) for key in (b'"Pod"', b'"Nodes"', b'"NodeNames"', b'"metadata":{}', b'"items"') if key in body
    ]
    place = chance.choice([*keys, len(body) - 1, chance.randrange(len(body))])
    instead = [b"", b'"', b"}", b",", b" ", b"null", b'"Pod":{},', b'"Nodes":null,', b'"items":[],', b'"metadata":5,']
    return body[:place] + chance.choice(instead) + body[place + chance.choice([0, 0, 1, 2]) :]


def _outcome(body: bytes, familiar: Familiar | None) -> Any:
    """What *body* is understood as, or why it is refused."""
    try:
        args = decode_args(bytearray(body), familiar=familiar)
    except RequestError as refused:
        return refused.status, refused.message
    names = None if args.names is None else args.names.names
    if args.nodes is None:
        return args.pod, names
    rest = {key: bytes(raw) for key, raw in args.nodes.rest.items()}
    return args.pod, names, [each.node for each in args.nodes.nodes], list(map(bytes, args.nodes.raw)), rest


@settings(max_examples=300, deadline=None)
@given(asked=ASKED, pod=PODS, seed=st.integers(0, 2**32))
def test_a_spoilt_request_is_refused_as_if_it_were_new(asked: Any, pod: Any, seed: int) -> None:
    """After a good request one that differs by a few bytes is understood or refused just as without the good one."""
    chance, familiar = Random(seed), Familiar()
    body = json.dumps({"Pod": pod, **asked}, separators=(",", ":")).encode()
    decode_args(body, familiar=familiar)
    spoilt = _spoilt(body, chance)
    assert _outcome(spoilt, familiar) == _outcome(spoilt, None)


@settings(max_examples=500, deadline=None)
@given(asked=ASKED, pod=PODS, seed=st.integers(0, 2**32))
def test_a_request_as_go_writes_it_is_understood_as_any_other(asked: Any, pod: Any, seed: int) -> None:
    """A space at its end, which Go does not write, changes nothing, whether the request is sound or not."""
    body = json.dumps({"Pod": pod, **asked}, separators=(",", ":")).encode()
    for each in (body, _spoilt(body, Random(seed))):
        assert _outcome(each, None) == _outcome(each + b" ", None)


def test_a_twin_key_is_refused_beside_familiar_parts() -> None:
    familiar = Familiar()
    good = b'{"Pod":{"metadata":{"name":"web"}},"Nodes":null,"NodeNames":["n1"]}'
    assert decode_args(good, familiar=familiar) is not None
    for twin in (b'"nodenames":null', b'"Nodes":null', b'"pod":{}'):
        with pytest.raises(RequestError, match="is there twice"):
            decode_args(good[:-1] + b"," + twin + b"}", familiar=familiar)
