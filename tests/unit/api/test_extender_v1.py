"""Encoding and decoding of the extender/v1 payloads."""

import json

import msgspec
import pytest

from extender.api.codec import DecodeError
from extender.api.extender_v1 import (
    BindingArgs,
    FilterResult,
    HostPriority,
    MetaPod,
    MetaVictims,
    decode_fields_ignoring_case,
    decode_victims,
)


def test_all_fields_are_encoded_with_their_go_names() -> None:
    assert json.loads(msgspec.json.encode(FilterResult(node_names=["a"], failed_nodes={"b": "full"}))) == {
        "Nodes": None,
        "NodeNames": ["a"],
        "FailedNodes": {"b": "full"},
        "FailedAndUnresolvableNodes": {},
        "Error": "",
    }
    assert json.loads(msgspec.json.encode([HostPriority("a", 3)])) == [{"Host": "a", "Score": 3}]


def test_the_key_of_binding_args_is_that_of_the_pod() -> None:
    args = msgspec.json.decode(b'{"PodName":"p","PodNamespace":"n","PodUID":"u","Node":"a"}', type=BindingArgs)
    assert (args.key, args.pod_uid, args.node) == ("n/p", "u", "a")


def test_fields_are_decoded_in_any_case_and_without_nulls() -> None:
    assert decode_fields_ignoring_case(b'{"NODENAMES": ["a"], "nodes": null}') == {"nodenames": msgspec.Raw(b'["a"]')}


VICTIMS = {
    "uids": (b'{"a": {"Pods": [{"UID": "u1"}], "NumPDBViolations": 2}}', ("u1",), 2),
    "whole pods": (b'{"a": {"pods": [{"metadata": {"uid": "u1"}}, {"metadata": {"uid": "u2"}}]}}', ("u1", "u2"), 0),
    "other case": (b'{"a": {"PODS": [{"uid": "u1"}], "numpdbviolations": 1}}', ("u1",), 1),
    "null": (b'{"a": null}', (), 0),
}


@pytest.mark.parametrize(("data", "uids", "violations"), VICTIMS.values(), ids=VICTIMS.keys())
def test_victims_are_decoded_from_uids_or_pods(data: bytes, uids: tuple[str, ...], violations: int) -> None:
    pods = tuple(MetaPod(uid) for uid in uids)
    assert decode_victims(data) == {"a": MetaVictims(pods, violations)}


@pytest.mark.parametrize("data", [b"[]", b'{"a": 5}', b'{"a": {"Pods": 1}}', b'{"a":'])
def test_invalid_victims_are_rejected(data: bytes) -> None:
    with pytest.raises(DecodeError):
        decode_victims(data)
