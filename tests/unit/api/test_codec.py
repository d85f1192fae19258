"""Decoding of JSON and parsed YAML, with nulls and errors, and encoding."""

import json
from datetime import UTC, datetime
from typing import Any

import msgspec
import pytest

from extender.api import codec
from extender.api.codec import DecodeError
from extender.api.kinds.devices import OpaqueDeviceConfiguration, ResourceClaim, ResourceSlice
from extender.api.kinds.disruption import PodDisruptionBudget
from extender.api.kinds.node import Node
from extender.api.kinds.pod import Pod
from extender.api.kinds.storage import CSINode, CSIStorageCapacity, PersistentVolumeClaim


def test_fields_are_decoded_by_their_json_names_and_unknown_fields_are_ignored() -> None:
    pod = codec.decode(
        b'{"apiVersion":"v1","kind":"Pod","metadata":{"name":"p","namespace":"n","creationTimestamp":'
        b'"2026-03-01T00:00:00Z"},"spec":{"nodeName":"a","unknownField":[1],"containers":[{"name":"c","ports":'
        b'[{"hostPort":80,"hostIP":"10.0.0.1"}],"resources":{"requests":{"cpu":"1","memory":512}}}],'
        b'"volumes":[{"name":"v","awsElasticBlockStore":{"volumeID":"vol-1"}}]}}',
        Pod,
    )
    assert pod.key == "n/p"
    assert pod.metadata.creation_timestamp == datetime(2026, 3, 1, tzinfo=UTC)
    assert pod.spec.node_name == "a"
    assert pod.spec.containers[0].ports[0].host_ip == "10.0.0.1"
    assert pod.spec.containers[0].resources.requests == {"cpu": "1", "memory": 512}
    assert pod.spec.volumes[0].aws_elastic_block_store is not None
    assert pod.spec.volumes[0].aws_elastic_block_store.volume_id == "vol-1"
    assert pod.spec.priority is None


def test_nulls_become_the_zero_value_of_their_field() -> None:
    node = codec.decode(
        b'{"metadata":{"name":null,"labels":{"a":null},"creationTimestamp":null},"spec":{"taints":[null],'
        b'"unschedulable":null},"status":{"allocatable":{"cpu":null},"images":[{"names":[null],"sizeBytes":null}],'
        b'"conditions":null}}',
        Node,
    )
    assert node.metadata.name == ""
    assert node.metadata.labels == {"a": ""}
    assert node.metadata.creation_timestamp is None
    assert len(node.spec.taints) == 1
    assert node.spec.taints[0].key == ""
    assert not node.spec.unschedulable
    assert node.status.allocatable == {"cpu": 0}
    assert node.status.images[0].names == ("",)
    assert node.status.images[0].size_bytes == 0
    assert node.status.conditions == ()
    assert node.status.node_info.kubelet_version == ""


def test_a_node_has_the_versions_of_its_software() -> None:
    data = b'{"status":{"nodeInfo":{"kernelVersion":"6.12.0","kubeletVersion":"v1.37.2","osImage":"Debian"}}}'
    node_info = codec.decode(data, Node).status.node_info
    assert (node_info.kernel_version, node_info.kubelet_version, node_info.os_image) == ("6.12.0", "v1.37.2", "Debian")


def test_a_null_optional_field_is_absent_and_nulls_inside_it_are_replaced() -> None:
    pod = codec.decode(b'{"metadata":null,"spec":{"containers":null,"affinity":null,"resources":{"limits":null}}}', Pod)
    assert pod == codec.decode(b'{"spec":{"resources":{}}}', Pod)
    assert pod.spec.affinity is None
    assert pod.spec.resources is not None
    node = codec.decode(b'{"spec":{"drivers":[{"name":"d","nodeID":"x","allocatable":null}]}}', CSINode)
    assert node.spec.drivers[0].allocatable is None
    capacity = codec.decode(b'{"capacity":null,"storageClassName":null}', CSIStorageCapacity)
    assert capacity.capacity is None
    budget = codec.decode(b'{"status":{"disruptedPods":{"p":null}},"spec":{"minAvailable":null}}', PodDisruptionBudget)
    assert budget.status.disrupted_pods == {"p": datetime(1, 1, 1, tzinfo=UTC)}


def test_nulls_inside_untyped_fields_are_preserved() -> None:
    source = b'{"driver":null,"parameters":{"a":null,"b":[null]}}'
    assert codec.decode(source, OpaqueDeviceConfiguration).parameters == {"a": None, "b": [None]}
    assert codec.decode(b'{"driver":null,"parameters":null}', OpaqueDeviceConfiguration).parameters is None


def test_a_null_boolean_in_a_list_is_false() -> None:
    data = b'{"spec":{"devices":[{"attributes":{"a":{"bools":[null,true]},"b":null}}]}}'
    attributes = codec.decode(data, ResourceSlice).spec.devices[0].attributes
    assert attributes["a"].bool_values == (False, True)
    assert attributes["b"].bool_value is None


INVALID = {
    "a label that is a number": (b'{"metadata":{"labels":{"a":1}}}', "metadata.labels[...]", "got `int`"),
    "labels that are a list": (b'{"metadata":{"labels":[]}}', "metadata.labels", "got `array`"),
    "a list entry": (b'{"spec":{"tolerations":[{},{"key":3}]}}', "spec.tolerations[1].key", "Expected `str`"),
    "a wrong type next to a null": (b'{"metadata":null,"spec":{"nodeName":5}}', "spec.nodeName", "Expected `str`"),
    "a time": (b'{"metadata":{"creationTimestamp":"soon"}}', "metadata.creationTimestamp", "RFC3339"),
    "a number out of range": (b'{"spec":{"priority":2147483648}}', "spec.priority", "<= 2147483647"),
    "a fraction for an integer": (b'{"spec":{"priority":1.5}}', "spec.priority", "Expected `int"),
    "a list instead of an object": (b"[]", "", "Expected `object`, got `array`"),
    "a truncated object": (b'{"spec":', "", "truncated"),
    "empty data": (b"", "", "truncated"),
    "not JSON": (b"kind: Pod", "", "malformed"),
    "not UTF-8": (b'{"metadata":{"name":"\xff"}}', "", "utf-8"),
    "not UTF-8, after a wrong type": (b'{"spec":5,"metadata":{"name":"\xff"}}', "", "utf-8"),
}


@pytest.mark.parametrize(("data", "path", "message"), INVALID.values(), ids=INVALID.keys())
def test_an_error_has_its_path(data: bytes, path: str, message: str) -> None:
    with pytest.raises(DecodeError) as error:
        codec.decode(data, Pod)
    assert error.value.path == path
    assert message in error.value.message
    assert str(error.value) == (f"{path}: {error.value.message}" if path else error.value.message)


@pytest.mark.parametrize("more", [b"[0,0,0,0]", b"[[[[]]]]"])
def test_a_null_is_an_error_if_the_data_has_too_many_values_for_a_second_attempt(more: bytes) -> None:
    data = b'{"spec":{"nodeName":null},"x":%b}' % more
    assert codec.decode(data, Pod, max_second_attempt=8) == Pod()
    with pytest.raises(DecodeError) as error:
        codec.decode(data, Pod, max_second_attempt=7)
    assert (error.value.path, error.value.message) == ("spec.nodeName", "Expected `str`, got `null`")


DEEP = b"[" * 2_000_000 + b"]" * 2_000_000


@pytest.mark.parametrize(
    "data",
    [
        b"[" * 2_000_000,
        DEEP,
        b'{"unknownField":' + DEEP + b"}",
        b'{"spec":' + DEEP + b"}",
        b'{"spec":5,"x":' + DEEP + b"}",
    ],
    ids=["never closed", "the document", "an unknown field", "a known field", "after a wrong type"],
)
def test_deeply_nested_data_is_rejected(data: bytes) -> None:
    with pytest.raises(DecodeError, match="nested too deeply"):
        codec.decode(data, Pod)


def test_parsed_yaml_is_decoded_like_json() -> None:
    created = datetime(2026, 3, 1, tzinfo=UTC)
    pod = codec.from_builtins(
        {"metadata": {"name": "p", "creationTimestamp": created, "labels": None}, "spec": {"priority": 7}}, Pod
    )
    assert pod.metadata.creation_timestamp == created
    assert pod.metadata.labels == {}
    assert pod.spec.priority == 7


def test_a_label_that_yaml_parses_as_a_number_is_rejected_with_its_path() -> None:
    with pytest.raises(DecodeError) as error:
        codec.from_builtins({"metadata": {"labels": {"version": 2}}}, Pod)
    assert error.value.path == "metadata.labels[...]"
    with pytest.raises(DecodeError) as error:
        codec.from_builtins({"metadata": {"labels": {2: "version"}}}, Pod)
    assert error.value.path == "metadata.labels"


def test_a_recursive_structure_does_not_hang() -> None:
    loop: dict[str, object] = {}
    loop["metadata"] = loop
    assert codec.from_builtins(loop, Pod).metadata.name == ""


def test_a_list_of_objects_is_decoded() -> None:
    nodes = codec.decode(b'[{"metadata":{"name":"a"}},{"metadata":{"name":"b","labels":null}}]', list[Node])
    assert [node.metadata.name for node in nodes] == ["a", "b"]


def test_a_null_document_is_an_empty_object_or_list() -> None:
    assert codec.decode(b"null", Pod) == Pod()
    assert codec.decode(b"null", list[Node]) == []


def test_the_key_of_a_claim_has_its_namespace() -> None:
    source = b'{"metadata":{"namespace":"n","name":"c"}}'
    assert codec.decode(source, ResourceClaim).key == "n/c"
    assert codec.decode(source, PersistentVolumeClaim).key == "n/c"


def test_encoding_uses_kubernetes_names_and_omits_default_values() -> None:
    source = {
        "metadata": {"name": "p", "creationTimestamp": "2026-03-01T00:00:00Z"},
        "spec": {"containers": [{"name": "c", "ports": [{"hostIP": "::1"}]}], "priority": 0},
        "status": {"nominatedNodeName": "a"},
    }
    assert json.loads(codec.encode(codec.from_builtins(source, Pod))) == source


def test_a_null_number_in_a_list_is_zero() -> None:
    data = b'{"spec":{"devices":[{"name":"d","attributes":{"a":{"ints":[null,3]}}}]}}'
    assert codec.decode(data, ResourceSlice).spec.devices[0].attributes["a"].int_values == (0, 3)


LONE_SURROGATES = {
    "a first half": (rb'"\ud83d"', "\ufffd"),
    "a second half": (rb'"\uDE00."', "\ufffd."),
    "a pair": (rb'"\ud83d\uDE00"', "\U0001f600"),
    "a first half before a pair": (rb'"\uD83D\ud83d\ude00"', "\ufffd\U0001f600"),
    "a second half after a pair": (rb'"\ud83d\ude00\ude00"', "\U0001f600\ufffd"),
    "halves in the wrong order": (rb'"\ude00\ud83d"', "\ufffd\ufffd"),
    "another escape after a first half": (rb'"\ud83d\u0041"', "\ufffdA"),
    "an escaped backslash": (rb'"\\ud83d"', "\\ud83d"),
    "an escaped backslash before a half": (rb'"\\\ud83d"', "\\\ufffd"),
}


@pytest.mark.parametrize(("data", "text"), LONE_SURROGATES.values(), ids=LONE_SURROGATES)
def test_halves_of_surrogate_pairs_are_replaced(data: bytes, text: str) -> None:
    """Source: Go 1.26, encoding/json/decode.go, unquoteBytes."""
    assert codec.decode(codec.replace_lone_surrogates(data), str) == text
    assert (codec.find_lone_surrogate(data) is None) == ("\ufffd" not in text)


def test_the_first_half_of_a_surrogate_pair_is_found() -> None:
    assert codec.find_lone_surrogate(rb'["\\ud83d", "\ud83d\ude00", "\ude00"]') == 29


def test_invalid_json_with_zero_bytes_is_not_changed() -> None:
    assert codec.replace_lone_surrogates(b'"\\ud83d\0"') == b'"\\ud83d\0"'


LEVELS = 100_000
"""Levels that no version of Python decodes; 3.13 decodes 10,000."""


@pytest.mark.parametrize("scanned_bytes", [1 << 20, 7])
@pytest.mark.parametrize("brackets", [(b"[", b"]"), (b'{"]":', b"}"), (b'[{"\\"[":', b"}]")])
def test_only_the_values_below_500_levels_are_replaced(
    brackets: tuple[bytes, bytes], scanned_bytes: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(codec, "_SCANNED_BYTES", scanned_bytes)
    opening, closing = brackets
    data = b'{"a":' + opening * LEVELS + b"1" + closing * LEVELS + b',"b":[{"c":"}]"},2]}'
    decoded = codec.decode_deeply_nested(data, dict[str, Any])
    assert decoded["b"] == [{"c": "}]"}, 2]
    value, depth = decoded["a"], 1
    while not isinstance(value, str):
        (value,) = value if isinstance(value, list) else value.values()
        depth += 1
    assert (value, depth) == (codec._DEEP_VALUE.decode().strip('"'), 500)


@pytest.mark.parametrize(("levels", "is_read"), [(500, True), (501, False)])
def test_parts_of_any_type_have_the_same_limit_in_all_versions_of_python(levels: int, is_read: bool) -> None:
    parameters = b"[" * levels + b"]" * levels
    data = b'{"spec":{"devices":{"config":[{"opaque":{"driver":"gpu","parameters":%b}}]}}}' % parameters
    if is_read:
        assert parameters in msgspec.json.encode(codec.decode_raw_part(data, ResourceClaim))
    else:
        with pytest.raises(DecodeError, match=r"nested (more than 500 levels deep|too deeply)$"):
            codec.decode_raw_part(data, ResourceClaim)


def test_deep_values_that_do_not_end_are_an_error() -> None:
    for data in (b"[" * 2_000, b"[" * 2_000 + b"]" * 3_000, b"]" * 2_000):
        with pytest.raises(DecodeError):
            codec.decode_deeply_nested(data, list[Any])


@pytest.mark.parametrize(("space", "rest"), [(b"", b""), (b" \n", b""), (b"\n", b"{}"), (b"", b"---"), (b"", b"\xff")])
def test_the_first_document_ends_before_other_bytes_than_white_space(space: bytes, rest: bytes) -> None:
    document = b' {"a":"}"}' + space
    assert codec.find_document_end(memoryview(document + rest)) == len(document)


def test_a_malformed_first_document_has_no_end() -> None:
    with pytest.raises(msgspec.DecodeError, match="truncated"):
        codec.find_document_end(b'{"a":')
