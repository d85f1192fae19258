"""Preempt requests with many nodes and victims, in Go's form and in others."""

import pytest

from extender.api.extender_v1 import MetaPod, MetaVictims
from extender.extender_api.payloads import decode_preemption_args
from extender.extender_api.request_limits import MAX_OBJECT_BYTES, RequestError
from tests.coroutines import run_now


def test_more_than_10_000_nodes_with_victims_must_have_go_s_form() -> None:
    nodes = b",".join(b'"n%d":{"Pods":[],"NumPDBViolations":0}' % number for number in range(10_001))
    args = run_now(decode_preemption_args(b'{"Pod":{},"NodeNameToVictims":null,"NodeNameToMetaVictims":{%b}}' % nodes))
    assert len(args.victims or ()) == 10_001
    with pytest.raises(RequestError) as caught:
        run_now(decode_preemption_args(b'{"Pod":{},"NodeNameToMetaVictims":{%b}}' % nodes))
    assert (caught.value.status, caught.value.message) == (413, "NodeNameToMetaVictims: more than 10000 fields")


@pytest.mark.parametrize(
    ("victim", "error"),
    [
        (b'{"uid":"u"}', '["n"]: a pod has no UID'),
        (b"null", "more than 5000 values, and not in Go's form: Expected `object`, got `null` - at `$[...].Pods[0]`"),
    ],
    ids=["another case", "null"],
)
def test_many_victims_in_another_form_are_decoded_only_once(victim: bytes, error: str) -> None:
    body = b'{"Pod":{},"NodeNameToMetaVictims":{"n":{"Pods":[%b]}}}' % b",".join([victim] * 5_000)
    with pytest.raises(RequestError) as caught:
        run_now(decode_preemption_args(body))
    assert (caught.value.status, caught.value.message) == (400, f"NodeNameToMetaVictims: {error}")


@pytest.mark.parametrize("padding", [0, MAX_OBJECT_BYTES], ids=["a small body", "a big body"])
def test_a_node_that_has_victims_twice_is_rejected(padding: int) -> None:
    node = b'"n":{"Pods":[{"UID":"u"}],"NumPDBViolations":0}'
    body = b'{"Pod":{},"NodeNameToVictims":null,"NodeNameToMetaVictims":{%b,%b%b}}' % (node, b" " * padding, node)
    with pytest.raises(RequestError) as caught:
        run_now(decode_preemption_args(body))
    assert (caught.value.status, caught.value.message) == (400, 'NodeNameToMetaVictims: duplicate key "n"')


def test_whole_victims_in_go_s_form_are_decoded_node_by_node() -> None:
    pod = b'{"metadata":{"name":"a","uid":"u%d"},"spec":{"containers":[]},"status":{}}'
    parts = [
        b'"n%d":{"Pods":[%b],"NumPDBViolations":%d}' % (number, b",".join(pod % i for i in range(number)), number)
        for number in range(3)
    ]
    body = b'{"Pod":{},"NodeNameToVictims":{%b},"NodeNameToMetaVictims":null}' % b",".join(parts)
    assert run_now(decode_preemption_args(body)).victims == {
        "n0": MetaVictims((), 0),
        "n1": MetaVictims((MetaPod("u0"),), 1),
        "n2": MetaVictims((MetaPod("u0"), MetaPod("u1")), 2),
    }
