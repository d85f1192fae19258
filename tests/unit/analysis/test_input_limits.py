"""Recorded clusters that are too large, repeat keys or expand aliases are one error line."""

import gzip
import io
import sys
from pathlib import Path

import pytest
import yaml

from extender.analysis.input import input_files, object_documents, yaml_documents
from extender.analysis.input.input_errors import InputError, UnreadableError
from extender.analysis.input.input_files import read_file
from extender.analysis.recorded_cluster import Recording, read_recording
from extender.basics.input_limits import MAX_DIGITS, MAX_DOCUMENTS, MAX_RECORDING_DEPTH

NODE = '{"apiVersion":"v1","kind":"Node","metadata":{"name":"n1"}}'
YAML_NODE = "apiVersion: v1\nkind: Node\nmetadata:\n  name: n1\n"
BILLION = "a0: &a0 [x,x,x,x,x,x,x,x,x,x]\n" + "".join(
    f"a{level}: &a{level} [{','.join([f'*a{level - 1}'] * 10)}]\n" for level in range(1, 10)
)


def read_text(tmp_path: Path, text: str | bytes, name: str = "c.yaml") -> Recording:
    (tmp_path / name).write_bytes(text.encode() if isinstance(text, str) else text)
    return read_recording([str(tmp_path / name)])


def errors_in(tmp_path: Path, text: str | bytes) -> list[str]:
    with pytest.raises(InputError) as caught:
        read_text(tmp_path, text)
    return [str(error).replace(f"{tmp_path}/", "") for error in caught.value.errors]


REJECTED = {
    "a duplicate key": (
        YAML_NODE + "  labels: {}\n  name: n2\n",
        'c.yaml: line 6: duplicate key "name"; keep one of them',
    ),
    "a long duplicate key": (
        f"? {'k' * 100}\n: 1\n? {'k' * 100}\n: 2\n",
        f'c.yaml: line 4: duplicate key "{"k" * 63}... (100 characters)"; keep one of them',
    ),
    "a billion values through aliases": (
        YAML_NODE + BILLION,
        "c.yaml: line 8: broken YAML: document contains excessive aliasing",
    ),
    "100 million values through merges": (
        "m: &m {" + ", ".join(f"k{index}: v" for index in range(1000)) + "}\nitems:\n" + "- {<<: *m}\n" * 100_000,
        "c.yaml: line 113: broken YAML: document contains excessive aliasing",
    ),
    "a million %TAG directives": (
        "".join(f"%TAG !{number}! x\n" for number in range(1_000_000)) + "---\n" + YAML_NODE,
        "c.yaml: broken YAML: more than 100 lines begin with %TAG; leave them out",
    ),
    "100,000 levels in YAML": (
        YAML_NODE + "  x: " + "[" * 100_000,
        f"c.yaml: line 5: broken YAML: nested too deeply; want at most {MAX_RECORDING_DEPTH} levels",
    ),
    "100,000 digits in JSON": (
        NODE.replace('"n1"', '"n1","generation":' + "9" * 100_000),
        "c.yaml: Node n1: Integer value out of range - at `$[...][...]`",
    ),
    "an exponent of 100,000 digits in JSON": (
        NODE.replace('"n1"', '"n1","generation":1e' + "9" * 100_000),
        "c.yaml: Node n1: Number out of range - at `$[...][...]`",
    ),
    "100,000 digits in a configuration": (
        '{"apiVersion":"kubescheduler.config.k8s.io/v1","kind":"KubeSchedulerConfiguration","parallelism":'
        + "9" * 100_000
        + "}",
        "c.yaml: broken JSON: Integer value out of range - at `$[...]`",
    ),
    "100,000 digits in YAML": (
        YAML_NODE + "  generation: " + "9" * 100_000,
        "c.yaml: line 1: Node n1: metadata.generation: Expected `int`, got `str`",
    ),
    "100,000 hexadecimal digits in YAML": (
        YAML_NODE + "  generation: 0x" + "f" * 100_000,
        "c.yaml: line 1: Node n1: metadata.generation: Expected `int`, got `str`",
    ),
    "the maximum number of digits in YAML": (
        YAML_NODE + "  generation: " + "9" * MAX_DIGITS,
        "c.yaml: line 1: Node n1: metadata.generation: Expected `int` <= 9223372036854775807",
    ),
    "a null character": (
        NODE.replace("n1", "n\0001"),
        "c.yaml: line 1: byte 0x00 is not text; save the file as UTF-8 text, plain or gzipped",
    ),
    "UTF-16": (
        NODE.encode("utf-16"),
        "c.yaml: line 1: byte 0xff is not UTF-8; save the file as UTF-8 text, plain or gzipped",
    ),
    "a character that is cut off": (
        NODE.encode() + b"\n\xc3",
        "c.yaml: line 2: byte 0xc3 is not UTF-8; save the file as UTF-8 text, plain or gzipped",
    ),
    "an invalid byte after a megabyte": (
        b"\n" * 2**21 + b"\xff",
        "c.yaml: line 2097153: byte 0xff is not UTF-8; save the file as UTF-8 text, plain or gzipped",
    ),
    "a name of ten million characters": (
        NODE.replace("n1", "n" * 10_000_000),
        "c.yaml: Node: metadata.name: must be no more than 253 characters",
    ),
    "a name with an escape sequence": (
        NODE.replace("n1", "n\\u001b[31m"),
        r"c.yaml: Node: metadata.name: 'n\x1b[31m' has a slash, a percent sign or a control character",
    ),
    "a kind of ten million characters": (
        NODE.replace("Node", "N" * 10_000_000),
        "c.yaml: kind and apiVersion: too long; want at most 63 and 317 characters",
    ),
    "an apiVersion of ten million characters": (
        NODE.replace("v1", "v" * 10_000_000),
        "c.yaml: kind and apiVersion: too long; want at most 63 and 317 characters",
    ),
    "more than 100,000 Lists": (
        '{"apiVersion":"v1","kind":"List","items":['
        + ",".join(['{"apiVersion":"v1","kind":"List","items":[]}'] * 100_000)
        + "]}",
        "c.yaml: items[99999]: has more than 100000 Lists; are Lists nested through YAML aliases?",
    ),
}


@pytest.mark.parametrize(("text", "message"), REJECTED.values(), ids=REJECTED.keys())
def test_an_input_beyond_a_limit_is_one_error_line(tmp_path: Path, text: str | bytes, message: str) -> None:
    assert errors_in(tmp_path, text) == [message]


ACCEPTED = {
    "a byte order mark": "\ufeff" + NODE,
    "lines that end with CR LF": YAML_NODE.replace("\n", "\r\n"),
    "lines that end with CR": YAML_NODE.replace("\n", "\r"),
    "a key that replaces a merged one": "a: &a {name: n0}\napiVersion: v1\nkind: Node\nmetadata: {<<: *a, name: n1}\n",
    "a key before a merge": "a: &a {name: n0}\napiVersion: v1\nkind: Node\nmetadata: {name: n1, <<: *a}\n",
    "a line of ten million characters": YAML_NODE + f"  annotations: {{a: {'x' * 10_000_000}}}\n",
    "900 levels in a field that is not read": NODE.replace('"n1"', '"n1","x":' + "[" * 900 + "]" * 900),
    "the same key twice in JSON, as in Go": NODE.replace('"n1"', '"n0","name":"n1"'),
    "100 aliases": YAML_NODE + "a: &a {b: c}\nx: [" + ", ".join(["*a"] * 100) + "]\n",
    "two gzip members": gzip.compress(NODE[:20].encode()) + gzip.compress(NODE[20:].encode()),
    "padded gzip": gzip.compress(NODE.encode()) + b"\0" * 100,
    "gzip data that is longer than a chunk": gzip.compress((NODE + " " * 5_000_000).encode()),
}


@pytest.mark.parametrize("text", ACCEPTED.values(), ids=ACCEPTED.keys())
def test_an_unusual_input_within_the_limits_is_read(tmp_path: Path, text: str | bytes) -> None:
    assert [node.metadata.name for node in read_text(tmp_path, text).objects] == ["n1"]


@pytest.mark.parametrize("value", ["9" * 5000, "[" * 900 + "]" * 900], ids=["a long number", "many levels"])
def test_any_value_of_an_unknown_field_of_a_manifest_in_json_is_skipped(tmp_path: Path, value: str) -> None:
    spec = '{"containers":[{"name":"a","image":"a"}]}'
    text = f'{{"apiVersion":"v1","kind":"Pod","metadata":{{"name":"web"}},"spec":{spec},"other":{value}}}'
    assert [pod.metadata.name for pod in read_text(tmp_path, text).objects] == ["web"]


def test_decompressed_text_is_limited(tmp_path: Path) -> None:
    file = tmp_path / "c.json.gz"
    file.write_bytes(gzip.compress(NODE.encode() + b" " * 100 * 1024**2))
    assert file.stat().st_size < 200_000
    with pytest.raises(UnreadableError, match=r"c.json.gz: has more than 1 MiB"):
        read_file(str(file), sys.stdin.buffer.read, 1024**2)


def test_gzip_data_is_decompressed_in_chunks() -> None:
    compressed = gzip.compress(b" " * 5 * 1024**2)
    assert max(map(len, input_files._decompress("c.json.gz", iter([compressed])))) == 1024**2


def test_an_endless_standard_input_is_read_up_to_the_limit() -> None:
    requested_sizes: list[int] = []

    def read_stdin(size: int) -> bytes:
        requested_sizes.append(size)
        return b"y\n" * (size // 2)

    with pytest.raises(UnreadableError, match="stdin: has more than 3 MiB"):
        read_file("-", read_stdin, 3 * 1024**2)
    assert requested_sizes == [1024**2] * 4


def test_a_null_character_ends_the_reading_of_standard_input() -> None:
    stream = io.BytesIO(b"\0" * 5 * 1024**2)
    with pytest.raises(UnreadableError, match="stdin: line 1: byte 0x00 is not text"):
        read_file("-", stream.read)
    assert stream.tell() == 1024**2


def test_the_size_of_yaml_is_limited(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(yaml_documents, "MAX_YAML_BYTES", 1024)
    assert read_text(tmp_path, YAML_NODE + "# " + "x" * 900).objects
    assert errors_in(tmp_path, YAML_NODE + "# " + "x" * 1024) == [
        "c.yaml: has more than 1 KiB of YAML; write it with -o json"
    ]


def test_the_number_of_values_of_yaml_is_limited(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """256 MiB of empty objects would take six minutes and 8 GB of memory."""
    event_count = len(list(yaml.parse(YAML_NODE)))
    monkeypatch.setattr(yaml_documents, "MAX_YAML_EVENTS", event_count)
    assert read_text(tmp_path, YAML_NODE).objects
    monkeypatch.setattr(yaml_documents, "MAX_YAML_EVENTS", event_count - 1)
    assert errors_in(tmp_path, YAML_NODE) == ["c.yaml: line 5: has too many values for YAML; write it with -o json"]


@pytest.mark.parametrize(("text", "position"), [("---\n{kind: A}\n", "line 7"), ('{"kind":"A"}\n', "document 4")])
def test_the_number_of_documents_is_limited(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, text: str, position: str
) -> None:
    assert MAX_DOCUMENTS == 500_000
    monkeypatch.setattr(yaml_documents, "MAX_DOCUMENTS", 3)
    monkeypatch.setattr(object_documents, "MAX_DOCUMENTS", 3)
    assert errors_in(tmp_path, text * 100)[-1] == (
        f"c.yaml: {position}: more than 3 documents; write the objects as one List"
    )


def make_deployment(name: str, replicas: int) -> str:
    template = '{"metadata":{"labels":{"app":"a"}},"spec":{"containers":[{"name":"a"}]}}'
    spec = f'{{"replicas":{replicas},"selector":{{"matchLabels":{{"app":"a"}}}},"template":{template}}}'
    return f'{{"apiVersion":"apps/v1","kind":"Deployment","metadata":{{"name":"{name}"}},"spec":{spec}}}'


def test_the_number_of_pods_of_all_workloads_is_limited(tmp_path: Path) -> None:
    text = "\n".join([NODE, make_deployment("a", 400_000), make_deployment("b", 100_001)])
    message = "c.yaml: document 3: Deployment default/b: spec: the workloads have more than 500000 pods"
    assert errors_in(tmp_path, text) == [message]


def test_a_workload_with_a_negative_number_of_pods_is_an_error(tmp_path: Path) -> None:
    message = "c.yaml: document 2: Deployment default/a: spec.replicas: -1: want 0 or more"
    assert errors_in(tmp_path, f"{NODE}\n{make_deployment('a', -1)}") == [message]


def test_the_number_of_skipped_kinds_is_limited(tmp_path: Path) -> None:
    text = "\n".join([NODE, *(f'{{"apiVersion":"example.com/v1","kind":"K{index}"}}' for index in range(1500))])
    skipped = read_text(tmp_path, text).skipped_kinds
    assert (len(skipped), skipped["of other kinds"], skipped.total()) == (1001, 500, 1500)


def test_gzip_data_with_other_data_behind_it_is_an_error(tmp_path: Path) -> None:
    assert errors_in(tmp_path, gzip.compress(NODE.encode()) + b"other data") == [
        "c.yaml: the gzip data is damaged (Error -3 while decompressing data: incorrect header check); "
        "copy the file again"
    ]
