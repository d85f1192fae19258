"""Requests in every spelling, invalid bodies, and responses byte for byte."""

from pathlib import Path
from typing import Any

import msgspec
import pytest
import yaml

from extender.api.extender_v1 import (
    BindingResult,
    FilterResult,
    HostPriority,
    MetaPod,
    MetaVictims,
    PreemptionResult,
)
from extender.extender_api.payloads import (
    MAX_NAMES_BYTES,
    RequestError,
    decode_args,
    decode_binding_args,
    decode_preemption_args,
)

CASES = Path(__file__).resolve().parents[2] / "wire"
POD = '{"metadata": {"name": "web", "namespace": "shop", "creationTimestamp": null}, "spec": {"containers": []}}'
NODES = '{"metadata": {}, "items": [{"metadata": {"name": "n1"}}, {"metadata": {"name": "n2", "labels": null}}]}'


def cases(file: str) -> dict[str, dict[str, Any]]:
    decoded: dict[str, dict[str, Any]] = yaml.safe_load((CASES / file).read_text())
    return decoded


REQUESTS = cases("requests.yaml")
INVALID = cases("invalid_requests.yaml")
PREEMPT = cases("preempt.yaml")
BIND = cases("bind.yaml")


@pytest.mark.parametrize("case", REQUESTS.values(), ids=REQUESTS)
def test_keys_of_a_request_are_case_insensitive(case: dict[str, Any]) -> None:
    args = decode_args(case["body"].replace("{pod}", POD).replace("{nodes}", NODES).encode())
    assert (args.pod.metadata.namespace, args.pod.metadata.name) == ("shop", "web")
    assert (None if args.names is None else args.names.names) == case.get("names")
    assert (args.nodes and [node_.node.metadata.name for node_ in args.nodes.nodes]) == case.get("nodes")


@pytest.mark.parametrize("case", INVALID.values(), ids=INVALID)
def test_an_invalid_request_is_rejected_with_its_field(case: dict[str, str]) -> None:
    with pytest.raises(RequestError) as caught:
        decode_args(case["body"].encode())
    assert (caught.value.status, caught.value.message) == (400, case["error"])


@pytest.mark.parametrize(
    "body",
    [
        b"[" * 200_000,
        b'{"Pod": ' + b'{"a":' * 200_000,
        b'{"Pod": {"x": ' + b"[" * 200_000 + b"]" * 200_000 + b"}}",
        b'{"Pod": {"spec": {"priority": ' + b"1" * 2_000_000 + b"}}}",
        b'{"Pod": ' + b"1" * 2_000_000 + b"}",
        b'{"Pod": {}, "NodeNames": ["\xff"]}',
        b'{"Pod": {}, "NodeNames": ["\\ud800"]}',
        b"\x00",
        b'\xef\xbb\xbf{"Pod": {}}',
    ],
    ids=[
        "200,000 arrays",
        "200,000 objects in the pod",
        "200,000 closed arrays in the pod",
        "2 million digits in a field",
        "2 million digits for a pod",
        "bytes that are no text",
        "half a character",
        "a zero byte",
        "a byte order mark",
    ],
)
def test_json_made_to_break_decoders_is_rejected(body: bytes) -> None:
    with pytest.raises(RequestError) as caught:
        decode_args(body)
    assert caught.value.status == 400
    assert len(caught.value.message) < 200


def test_more_bytes_of_names_than_allowed_are_rejected() -> None:
    name = "n" * (MAX_NAMES_BYTES // 2)
    with pytest.raises(RequestError) as caught:
        decode_args(f'{{"Pod": {{}}, "NodeNames": ["{name}", "{name}"]}}'.encode())
    assert caught.value.status == 413


def test_a_list_of_nodes_is_returned_byte_for_byte() -> None:
    node = b'{"metadata": {"name":"n1",  "unknown": [1.50, "\\u00e9"]}, "extra": 12345678901234567890123}'
    body = b'{"Pod": {}, "Nodes": {"kind":"NodeList", "metadata": {"continue": ""}, "items": [%b]}}' % node
    nodes = decode_args(body).nodes
    assert nodes is not None
    written = msgspec.json.encode(FilterResult(nodes=nodes.with_items(nodes.raw)))
    assert written == (
        b'{"Nodes":{"kind":"NodeList","metadata":{"continue": ""},"items":[' + node + b"]},"
        b'"NodeNames":null,"FailedNodes":{},"FailedAndUnresolvableNodes":{},"Error":""}'
    )


def test_a_response_has_all_go_fields() -> None:
    result = FilterResult(node_names=["n1"], failed_nodes={"n2": "no"}, failed_and_unresolvable_nodes={"n3": "never"})
    assert msgspec.json.encode(result) == (
        b'{"Nodes":null,"NodeNames":["n1"],"FailedNodes":{"n2":"no"},'
        b'"FailedAndUnresolvableNodes":{"n3":"never"},"Error":""}'
    )
    assert msgspec.json.encode([HostPriority("n1", 10)]) == b'[{"Host":"n1","Score":10}]'
    victims = {"n1": MetaVictims((MetaPod("a"), MetaPod("b")), 1)}
    assert msgspec.json.encode(PreemptionResult(victims)) == (
        b'{"NodeNameToMetaVictims":{"n1":{"Pods":[{"UID":"a"},{"UID":"b"}],"NumPDBViolations":1}}}'
    )
    assert msgspec.json.encode(BindingResult()) == b'{"Error":""}'


@pytest.mark.parametrize("case", PREEMPT.values(), ids=PREEMPT)
def test_a_preempt_request_is_decoded_in_both_forms(case: dict[str, Any]) -> None:
    body = case["body"].replace("{pod}", POD).encode()
    if "error" in case:
        with pytest.raises(RequestError) as caught:
            decode_preemption_args(body)
        assert (caught.value.status, caught.value.message) == (400, case["error"])
        return
    args = decode_preemption_args(body)
    assert args.pod.metadata.name == "web"
    assert (args.victims is None) == ("victims" not in case)
    victims = {
        node: {"uids": [pod.uid for pod in node_.pods], "violations": node_.num_pdb_violations}
        for node, node_ in (args.victims or {}).items()
    }
    assert victims == case.get("victims", {})


@pytest.mark.parametrize("case", BIND.values(), ids=BIND)
def test_a_bind_request_is_decoded(case: dict[str, Any]) -> None:
    body = case["body"].encode()
    if "error" in case:
        with pytest.raises(RequestError) as caught:
            decode_binding_args(body)
        assert (caught.value.status, caught.value.message) == (400, case["error"])
        return
    args = decode_binding_args(body)
    assert [args.pod_name, args.pod_namespace, args.pod_uid, args.node] == case["fields"]
