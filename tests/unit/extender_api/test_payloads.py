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
from extender.extender_api.json_parts import MAX_DECODE_BYTES
from extender.extender_api.node_names import NodeNames
from extender.extender_api.payloads import (
    DecodeCaches,
    decode_args,
    decode_binding_args,
    decode_preemption_args,
)
from extender.extender_api.request_limits import MAX_NAMES_BYTES, MAX_OBJECT_BYTES, RequestError, RequestLimits
from tests.coroutines import run_now

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
    args = run_now(decode_args(case["body"].replace("{pod}", POD).replace("{nodes}", NODES).encode()))
    assert (args.pod.metadata.namespace, args.pod.metadata.name) == ("shop", "web")
    assert (None if args.names is None else args.names.names) == case.get("names")
    assert (args.nodes and [node_.node.metadata.name for node_ in args.nodes.nodes]) == case.get("nodes")


def test_only_the_last_list_of_names_is_cached() -> None:
    caches = DecodeCaches()

    def decode(names: str) -> NodeNames | None:
        body = f'{{"Pod":{POD},"Nodes":null,"NodeNames":{names}}}'
        return run_now(decode_args(body.encode(), caches=caches)).names

    first = decode('["n1"]')
    assert decode('["n1"]') is first
    assert decode('["n2"]') is caches.node_names
    assert decode('["n1"]') is not first
    with pytest.raises(RequestError):
        decode('["n1",]')
    assert decode('["n1"]') is caches.node_names


@pytest.mark.parametrize("case", INVALID.values(), ids=INVALID)
def test_an_invalid_request_is_rejected_with_its_field(case: dict[str, str]) -> None:
    with pytest.raises(RequestError) as caught:
        run_now(decode_args(case["body"].encode()))
    assert (caught.value.status, caught.value.message) == (400, case["error"])


@pytest.mark.parametrize(
    "body",
    [
        b"[" * 200_000,
        b'{"Pod": ' + b'{"a":' * 200_000,
        b'{"Pod": {"x": ' + b"[" * 2_000_000 + b"]" * 2_000_000 + b"}}",
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
        "two million closed arrays in the pod",
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
        run_now(decode_args(body))
    assert caught.value.status == 400
    assert len(caught.value.message) < 200


def test_more_bytes_of_names_than_allowed_are_rejected() -> None:
    name = "n" * (MAX_NAMES_BYTES // 2)
    with pytest.raises(RequestError) as caught:
        run_now(decode_args(f'{{"Pod": {{}}, "NodeNames": ["{name}", "{name}"]}}'.encode()))
    assert caught.value.status == 413


def test_a_list_of_nodes_is_returned_byte_for_byte() -> None:
    node = b'{"metadata": {"name":"n1",  "unknown": [1.50, "\\u00e9"]}, "extra": 12345678901234567890123}'
    body = b'{"Pod": {}, "Nodes": {"kind":"NodeList", "metadata": {"continue": ""}, "items": [%b]}}' % node
    nodes = run_now(decode_args(body)).nodes
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
            run_now(decode_preemption_args(body))
        assert (caught.value.status, caught.value.message) == (400, case["error"])
        return
    args = run_now(decode_preemption_args(body))
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
            run_now(decode_binding_args(body))
        assert (caught.value.status, caught.value.message) == (400, case["error"])
        return
    args = run_now(decode_binding_args(body))
    assert [args.pod_name, args.pod_namespace, args.pod_uid, args.node] == case["fields"]


def test_the_last_of_duplicate_keys_in_a_pod_wins_as_in_go() -> None:
    args = run_now(decode_args(b'{"Pod":{"metadata":{"name":"a","name":"b"}},"Nodes":null,"NodeNames":[]}'))
    assert args.pod.metadata.name == "b"


NODE = b'{"metadata":{"name":"n%d"},"spec":{},"status":{"capacity":{"cpu":"4"}}}'


def encode_like_go(*nodes: bytes, pod: bytes = b"{}") -> bytes:
    return b'{"Pod":%b,"Nodes":{"metadata":{},"items":[%b]},"NodeNames":null}' % (pod, b",".join(nodes))


@pytest.mark.parametrize("count", [0, 1, 2, 40], ids=lambda count: f"{count} nodes")
def test_nodes_in_go_s_form_are_decoded_one_by_one(count: int) -> None:
    raw = [NODE % number for number in range(count)]
    nodes = run_now(decode_args(encode_like_go(*raw))).nodes
    assert nodes is not None
    assert [sent_node.node.metadata.name for sent_node in nodes.nodes] == [f"n{number}" for number in range(count)]
    assert list(map(bytes, nodes.raw)) == raw


@pytest.mark.parametrize(
    "body",
    [
        encode_like_go(b'{"metadata":{"name":"a"},"x":[{"y":1},{"metadata":{}}]}'),
        encode_like_go(b'{"metadata":{"name":"a"}}', pod=b'{"x":1,"Nodes":{"metadata":{},"items":[]}}'),
        encode_like_go(b'{"metadata":{"name":"a"}} '),
    ],
    ids=["the separator in a node", "the opening in the pod", "whitespace after a node"],
)
def test_a_small_body_that_is_cut_wrongly_is_decoded_as_a_whole(body: bytes) -> None:
    nodes = run_now(decode_args(body)).nodes
    assert nodes is not None
    assert [sent_node.node.metadata.name for sent_node in nodes.nodes] == ["a"]


LIMITS = RequestLimits(max_nodes=2, max_victims=2)
BIG_POD = b'{"x":"%b"}' % (b"x" * MAX_OBJECT_BYTES)
BIG_REQUEST = b'{"NodeNames":[], "Pod":{"x":"%b"}}' % (b"x" * MAX_DECODE_BYTES)
RULES_ERROR = (
    "Pod.spec: nodeSelector, affinity, topologySpreadConstraints and tolerations have more than 1000 fields or "
    "262144 bytes"
)
VICTIM = b'{"UID":"u"}'
POD_WITH = b'{"Pod":{"metadata":{%b},"spec":{%b}},"NodeNames":[]}'


def make_fields(field: bytes, count: int) -> bytes:
    """Return *count* fields or items of JSON, each with its number."""
    return b",".join(field % number for number in range(count))


@pytest.mark.parametrize(
    ("body", "error"),
    [
        (b'{"Pod":{},"NodeNames":["a","b","c"]}', "NodeNames: more than 2 nodes; --max-nodes sets the limit"),
        (
            encode_like_go(*(NODE % number for number in range(3))),
            "Nodes: more than 2 nodes; --max-nodes sets the limit",
        ),
        (
            b'{"Pod":{},"Nodes":{"items":[%b,%b,%b]}}' % (NODE % 1, NODE % 2, NODE % 3),
            "Nodes: more than 2 nodes; --max-nodes sets the limit",
        ),
        (b'{"Pod":%b,"NodeNames":[]}' % BIG_POD, "Pod: more than 3145728 bytes"),
        (
            b'{"Pod":{"x":[%b]},"NodeNames":[]}' % b",".join([b"{}"] * 20_000),
            "Pod: more than 20000 JSON objects",
        ),
        (
            b'{"Pod":{"metadata":{"annotations":{%b}}},"NodeNames":[]}' % make_fields(b'"k%d":"v"', 50_001),
            "Pod: more than 50000 JSON fields and items",
        ),
        (
            encode_like_go(b'{"metadata":{"labels":{%b}}}' % make_fields(b'"k%d":"v"', 50_001)),
            "Nodes.items[0]: more than 50000 JSON fields and items",
        ),
        (b'{"Pod":{"spec":{"tolerations":[%b]}},"NodeNames":[]}' % b",".join([b'{"key":"a"}'] * 1001), RULES_ERROR),
        (b'{"Pod":{"spec":{"tolerations":[%b]}},"NodeNames":[]}' % b",".join([b"{}"] * 1001), RULES_ERROR),
        (
            POD_WITH % (b"", b'"containers":[%b],"initContainers":[{}]' % b",".join([b"{}"] * 1000)),
            "Pod.spec.containers and initContainers: more than 1000",
        ),
        (b'{"Pod":{"spec":{"nodeSelector":{"a":"%b"}}},"NodeNames":[]}' % (b"x" * 262_144), RULES_ERROR),
        (POD_WITH % (b'"labels":{%b}' % make_fields(b'"k%d":"v"', 1001), b""), "Pod.metadata.labels: more than 1000"),
        (
            POD_WITH % (b"", b'"volumes":[%b]' % make_fields(b'{"name":"v%d"}', 1001)),
            "Pod.spec.volumes: more than 1000",
        ),
        (
            POD_WITH % (b"", b'"containers":[{"resources":{"limits":{%b}}}]' % make_fields(b'"a/r%d":"1"', 257)),
            "Pod.spec.resources and those of containers: more than 256",
        ),
        (
            POD_WITH % (b"", b'"overhead":{%b}' % make_fields(b'"a/r%d":"1"', 257)),
            "Pod.spec.resources and those of containers: more than 256",
        ),
        (b"{%b}" % make_fields(b'"k%d":1', 1001), "the body: more than 1000 fields"),
        (b'{"Pod":{},"Nodes":{%b}}' % make_fields(b'"k%d":1', 1001), "Nodes: more than 1000 fields"),
        (
            b'{"Pod":{},"Nodes":{"metadata":{%b}}}' % make_fields(b'"k%d":1', 1001),
            "Nodes.metadata: more than 1000 fields",
        ),
        (encode_like_go(BIG_POD), "Nodes.items[0]: more than 3145728 bytes"),
        (
            BIG_REQUEST,
            "a request of more than 16777216 bytes must have the form that kube-scheduler sends: the fields in the "
            "order of the Go struct, without whitespace",
        ),
    ],
    ids=[
        "names",
        "nodes in Go's form",
        "nodes in another form",
        "a big pod",
        "a pod of many objects",
        "a pod of many fields",
        "a node of many fields",
        "many tolerations",
        "many empty tolerations",
        "many containers",
        "a big node selector",
        "many labels",
        "many volumes",
        "many resources of a container",
        "many resources of the overhead",
        "many fields",
        "many fields of the list of nodes",
        "many fields of the metadata of the list of nodes",
        "a big node",
        "a big request",
    ],
)
def test_a_request_above_a_limit_is_rejected(body: bytes, error: str) -> None:
    with pytest.raises(RequestError) as caught:
        run_now(decode_args(body, LIMITS))
    assert (caught.value.status, caught.value.message) == (413, error)


LISTS = b"[%b]" % b",".join([b"[]"] * 2_500)


@pytest.mark.parametrize(
    ("body", "error"),
    [
        (LISTS, "the body: Expected `object`, got `array`"),
        (b'{"Pod":{},"NodeNames":%b}' % LISTS, "NodeNames[0]: Expected `str`, got `array`"),
        (b'{"Pod":{},"Nodes":%b}' % LISTS, "Nodes: Expected `object`, got `array`"),
        (b'{"Pod":{"spec":{"nodeName":null},"x":%b}}' % LISTS, "Pod.spec.nodeName: Expected `str`, got `null`"),
        (
            encode_like_go(b'{"metadata":{"uid":null},"x":%b}' % LISTS),
            "Nodes.items[0].metadata.uid: Expected `str`, got `null`",
        ),
    ],
    ids=["the body", "names", "the list of nodes", "a pod", "a node"],
)
def test_many_values_are_decoded_only_once(body: bytes, error: str) -> None:
    with pytest.raises(RequestError) as caught:
        run_now(decode_args(body))
    assert (caught.value.status, caught.value.message) == (400, error)


def test_values_that_are_no_nodes_are_counted_without_decoding_each() -> None:
    body = b'{"Pod":{},"Nodes":{"items":[0,%b]}}'
    with pytest.raises(RequestError) as caught:
        run_now(decode_args(body % b",".join([b"0"] * 3), LIMITS))
    assert (caught.value.status, caught.value.message) == (400, "Nodes.items[0]: Expected `object`, got `int`")


@pytest.mark.parametrize(
    ("field", "value", "error"),
    [
        (
            "NodeNameToMetaVictims",
            b'{"n1":{"Pods":[%b,%b]},"n2":{"Pods":[%b]}}' % (VICTIM, VICTIM, VICTIM),
            "NodeNameToMetaVictims: more than 2 victims; --max-victims sets the limit",
        ),
        (
            "NodeNameToVictims",
            b'{"n1":{},"n2":{},"n3":{}}',
            "NodeNameToVictims: more than 2 nodes; --max-nodes sets the limit",
        ),
        (
            "NodeNameToVictims",
            b'{"n1":{},"n2":{},"n3":{},"n4":{}}',
            "NodeNameToVictims: more than 3 fields",
        ),
        (
            "NodeNameToMetaVictims",
            b'{"n1":{"Pods":[%b]}}' % b",".join([b"{}"] * 100_001),
            "NodeNameToMetaVictims: more than 100000 JSON objects on one node",
        ),
    ],
    ids=["victims", "nodes", "many nodes", "victims on one node"],
)
def test_victims_above_a_limit_are_rejected(field: str, value: bytes, error: str) -> None:
    with pytest.raises(RequestError) as caught:
        run_now(decode_preemption_args(b'{"Pod":{},"%b":%b}' % (field.encode(), value), LIMITS))
    assert (caught.value.status, caught.value.message) == (413, error)


INVALID_SELECTOR = b'{"matchLabels":{"app":"%b"}}' % (b"x" * 64)
TERM = b'{"topologyKey":"zone","labelSelector":%b}' % INVALID_SELECTOR


@pytest.mark.parametrize(
    "spec",
    [
        b'{"affinity":{"podAffinity":{"requiredDuringSchedulingIgnoredDuringExecution":[%b]}}}' % TERM,
        b'{"affinity":{"podAntiAffinity":{"preferredDuringSchedulingIgnoredDuringExecution":'
        b'[{"weight":1,"podAffinityTerm":%b}]}}}' % TERM,
        b'{"topologySpreadConstraints":[%b]}' % TERM,
    ],
    ids=["a required term", "a preferred term", "a topology spread constraint"],
)
def test_an_invalid_label_selector_is_rejected_before_a_plugin_reads_it(spec: bytes) -> None:
    with pytest.raises(RequestError, match=r"Pod\.spec: a label selector is invalid: .*no more than 63") as caught:
        run_now(decode_args(b'{"Pod":{"spec":%b},"NodeNames":[]}' % spec))
    assert caught.value.status == 400
