"""Bad input: each error is one line with the location, the problem and a fix."""

import errno
import gzip
import io
import os
import sys
from pathlib import Path

import pytest

from extender.analysis.input.input_errors import InputError
from extender.analysis.recorded_cluster import read_recording

POD_HEADER = "apiVersion: v1\nkind: Pod\nmetadata: {name: web}\n"
NODE = '{"apiVersion":"v1","kind":"Node","metadata":{"name":"n1"}}'
EXPECTED_OBJECT = "want a Kubernetes object or a List of them, with apiVersion and kind"
OPERATORS = "want one of In, NotIn, Exists, DoesNotExist"


def errors_in_files(*files: Path | str) -> list[str]:
    with pytest.raises(InputError) as caught:
        read_recording([str(file) for file in files], override=False)
    return [str(error) for error in caught.value.errors]


def errors_in_text(tmp_path: Path, text: str | bytes, name: str = "c.yaml") -> list[str]:
    """Return the errors in a file with this text, without its directory."""
    path = tmp_path / name
    path.write_bytes(text.encode() if isinstance(text, str) else text)
    return [line.replace(f"{tmp_path}/", "") for line in errors_in_files(path)]


INVALID_FILES = {
    "an empty file": ("", "c.yaml: is empty; want YAML or JSON"),
    "a file of blank lines": (" \n\n", "c.yaml: is empty; want YAML or JSON"),
    "a file of comments": ("# nothing\n---\n", f"c.yaml: holds no object; {EXPECTED_OBJECT}"),
    "text that is not UTF-8": (
        b"kind: Pod\nname: \xff\n",
        "c.yaml: line 2: byte 0xff is not UTF-8; save the file as UTF-8 text, plain or gzipped",
    ),
    "broken YAML": (
        "apiVersion: v1\nkind: Pod\nmetadata: [\n",
        "c.yaml: line 4: broken YAML: while parsing a flow node did not find expected node content",
    ),
    "YAML with a tab": (
        "a: b\n\tc: d\n",
        "c.yaml: line 2: broken YAML: a tab indents the line; indent with spaces",
    ),
    "YAML with a tab after a key": (
        "metadata:\n\tname: web\n",
        "c.yaml: line 2: broken YAML: a tab indents the line; indent with spaces",
    ),
    "YAML with a tab after a dash": (
        "a:\n- \tb: @c\n",
        'c.yaml: line 2: broken YAML: a tab follows "-"; write a space',
    ),
    "YAML with a tab before a value that needs quotes": (
        "a: b\nimage:\t@registry/web\n",
        "c.yaml: line 2: broken YAML: a value starts with @; put it in quotes",
    ),
    "YAML with a value that needs quotes": (
        "a: b\nimage: @registry/web\n",
        "c.yaml: line 2: broken YAML: a value starts with @; put it in quotes",
    ),
    "YAML with a control character": (
        "a: b\nc: \x01\n",
        "c.yaml: line 2: broken YAML: control characters are not allowed",
    ),
    "an alias of nothing": ("a: *b\n", "c.yaml: line 1: unknown alias *b; define it before with &b"),
    "a tag of Python": (
        "a: !!python/object:os.system x\n",
        "c.yaml: line 1: 'x' has the tag tag:yaml.org,2002:python/object:os.system, which does not suit it; "
        "leave the tag out",
    ),
    "a tag on an object": ("a: !thing {}\n", "c.yaml: line 1: unknown tag !thing; leave it out"),
    "a merge of text": ("<<: x\n", "c.yaml: line 1: << wants an object"),
    "a number that JSON does not have": (
        '{"kind": NaN}',
        "c.yaml: broken JSON: JSON is malformed: invalid character (byte 9)",
    ),
    "an item without a kind in JSON": (
        '{"kind":"List","apiVersion":"v1","items":[{"apiVersion":"v1"}]}',
        f"c.yaml: items[0]: kind: is missing; {EXPECTED_OBJECT}",
    ),
    "a key that is a list": ("? [a]\n: b\n", "c.yaml: line 1: a key must be text"),
    "broken JSON": (
        '{"apiVersion": "v1",\n "kind": "Pod",\n "metadata": {"name": web}}',
        "c.yaml: line 3: broken JSON: Expecting value (column 23)",
    ),
    "JSON with a comma too many": (
        '{"apiVersion": "v1",\n "kind": "Pod",\n }',
        "c.yaml: line 2: broken JSON: Illegal trailing comma before end of object (column 15)"
        if sys.version_info >= (3, 13)
        else "c.yaml: line 3: broken JSON: Expecting property name enclosed in double quotes (column 2)",
    ),
    "JSON with a brace too many": (
        f"{NODE}\n\n}}",
        "c.yaml: line 3: broken JSON: Expecting value (column 1)",
    ),
    "text after JSON": (
        f"{NODE} trailing",
        f"c.yaml: line 1: broken JSON: Expecting value (column {len(NODE) + 2})",
    ),
    "text after the second object of a line": (
        f"{NODE}\n{NODE.replace('Node', 'Löwe')} x",
        f"c.yaml: line 2: broken JSON: Expecting value (column {len(NODE) + 2})",
    ),
    "half of a surrogate pair": (
        '{"apiVersion": "v1",\n "kind": "Pod\\\\ud800\\ud83d\\ude00\\udc80"}',
        "c.yaml: line 2: broken JSON: \\udc80 is half of a surrogate pair; remove it",
    ),
    "a string that does not end": (
        '{"apiVersion": "v1",\n "kind": "Pod',
        "c.yaml: line 2: broken JSON: Unterminated string starting at (column 10)",
    ),
    "JSON that was cut short": (
        '{"apiVersion": "v1",\n "items": [\n',
        "c.yaml: line 2: broken JSON: it ends too early; was it cut short?",
    ),
    "two million nested arrays": (
        "[" * 2_000_000 + "]" * 2_000_000,
        "c.yaml: is nested more deeply than any Kubernetes object",
    ),
    "200,000 nested arrays in YAML": (
        "a: " + "[" * 200_000 + "]" * 200_000,
        "c.yaml: line 1: broken YAML: nested too deeply; want at most 500 levels",
    ),
    "two million nested arrays in an object": (
        '{"apiVersion":"v1","kind":"Pod","metadata":' + "[" * 2_000_000 + "]" * 2_000_000 + "}",
        "c.yaml: is nested more deeply than any Kubernetes object",
    ),
    "a list": ("[1]", f"c.yaml: line 1: is a list; {EXPECTED_OBJECT}"),
    "a list in JSON": ('["a"]', f"c.yaml: is a list; {EXPECTED_OBJECT}"),
    "text": ("hello", f"c.yaml: line 1: is text; {EXPECTED_OBJECT}"),
    "an object without a kind": ("a: 1", f"c.yaml: line 1: kind: is missing; {EXPECTED_OBJECT}"),
    "an object without a version": (
        "\nkind: Pod",
        "c.yaml: line 2: apiVersion: is missing in this Pod; add it, for example apiVersion: v1",
    ),
    "a kind that is a number": ("{kind: 1, apiVersion: v1}", "c.yaml: line 1: kind and apiVersion: want text"),
    "items that are no list": (
        "{kind: List, apiVersion: v1, items: x}",
        "c.yaml: line 1: items: want a list of objects",
    ),
    "items that are no list in JSON": (
        '{"kind":"List","apiVersion":"v1","items":{}}',
        "c.yaml: items: want a list of objects",
    ),
    "an item that is a number": (
        f'{{"kind":"List","apiVersion":"v1","items":[{NODE},7]}}',
        f"c.yaml: items[1]: is a number; {EXPECTED_OBJECT}",
    ),
    "a List in itself": (
        "&a\nkind: List\napiVersion: v1\nitems: [*a]\n",
        "c.yaml: Lists are nested too deeply; put the objects into one List",
    ),
    "truncated gzip": (
        gzip.compress(NODE.encode())[:-12],
        "c.yaml: the gzip data ends too early; copy the complete file again",
    ),
}


@pytest.mark.parametrize(("text", "message"), INVALID_FILES.values(), ids=INVALID_FILES.keys())
def test_an_unreadable_file_is_one_error(tmp_path: Path, text: str | bytes, message: str) -> None:
    assert errors_in_text(tmp_path, text) == [message]


def test_damaged_gzip_has_another_error_than_truncated_gzip(tmp_path: Path) -> None:
    data = bytearray(gzip.compress(NODE.encode()))
    data[-6] ^= 0xFF
    assert errors_in_text(tmp_path, bytes(data))[0].startswith(
        "c.yaml: the gzip data is damaged (Error -3 while decompressing data: incorrect data check"
    )


def test_a_missing_file_and_a_directory_are_errors(tmp_path: Path) -> None:
    missing = tmp_path / "no.yaml"
    assert errors_in_files(missing, tmp_path) == [
        f"{missing}: no such file; check the path, or write - to read standard input",
        f"{tmp_path}: is a directory without a file whose name ends in .json, .yaml, .yml, .json.gz, .yaml.gz, .yml.gz",
    ]


@pytest.mark.parametrize(
    ("error", "message"),
    [
        (PermissionError(errno.EACCES, "Permission denied"), "x: may not be read; check its permissions"),
        (OSError(errno.EIO, "Input/output error"), "x: cannot be read: Input/output error"),
    ],
)
def test_an_operating_system_error_names_the_file(
    monkeypatch: pytest.MonkeyPatch, error: OSError, message: str
) -> None:
    def raise_error(*_: object) -> int:
        raise error

    monkeypatch.setattr(os, "open", raise_error)
    assert errors_in_files("x") == [message]


def test_an_impossible_file_name_is_an_error() -> None:
    assert errors_in_files("a\0b") == [r"'a\x00b': no file can have this name"]


def test_a_file_named_twice_is_an_error(tmp_path: Path) -> None:
    path = tmp_path / "c.json"
    path.write_text(NODE)
    assert errors_in_files(path, path) == [f"{path}: is named twice; name it once"]


def test_empty_standard_input_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(b"")))
    assert errors_in_files("-") == ["stdin: is empty, or another option has read it; want YAML or JSON"]


INVALID_OBJECTS = {
    "an object without a name": (
        "apiVersion: v1\nkind: Node\nmetadata: {}\n",
        "c.yaml: line 1: Node: metadata.name: is missing; every object needs a name",
    ),
    "a request that is no quantity": (
        POD_HEADER + 'spec: {containers: [{name: a}, {name: b, resources: {requests: {cpu: "1x"}}}]}\n',
        "c.yaml: line 1: Pod default/web: spec.containers[1].resources.requests.cpu: "
        'quantity "1x": want a number with an optional suffix such as m, k, M, Gi',
    ),
    "a negative request": (
        POD_HEADER + 'spec: {containers: [{name: a, resources: {requests: {cpu: "-1"}}}]}\n',
        'c.yaml: line 1: Pod default/web: spec.containers[0].resources.requests.cpu: quantity "-1": want 0 or more',
    ),
    "a limit of an init container": (
        POD_HEADER
        + "spec: {containers: [{name: z}], initContainers: [{name: a, resources: {limits: {memory: 1 Gi}}}]}\n",
        "c.yaml: line 1: Pod default/web: spec.initContainers[0].resources.limits.memory: "
        'quantity "1 Gi": want a number with an optional suffix such as m, k, M, Gi',
    ),
    "overhead": (
        POD_HEADER + "spec: {containers: [{name: z}], overhead: {cpu: lots}}\n",
        "c.yaml: line 1: Pod default/web: spec.overhead.cpu: "
        'quantity "lots": want a number with an optional suffix such as m, k, M, Gi',
    ),
    "pod-level resources": (
        POD_HEADER + 'spec: {containers: [{name: z}], resources: {requests: {cpu: ""}}}\n',
        "c.yaml: line 1: Pod default/web: spec.resources.requests.cpu: "
        'quantity "": want a number with an optional suffix such as m, k, M, Gi',
    ),
    "a node's allocatable": (
        "apiVersion: v1\nkind: Node\nmetadata: {name: n1}\nstatus: {allocatable: {memory: 4GB}}\n",
        "c.yaml: line 1: Node n1: status.allocatable.memory: "
        'quantity "4GB": want a number with an optional suffix such as m, k, M, Gi',
    ),
    "a volume's capacity": (
        "apiVersion: v1\nkind: PersistentVolume\nmetadata: {name: v}\nspec: {capacity: {storage: big}}\n",
        "c.yaml: line 1: PersistentVolume v: spec.capacity.storage: "
        'quantity "big": want a number with an optional suffix such as m, k, M, Gi',
    ),
    "a storage capacity": (
        "apiVersion: storage.k8s.io/v1\nkind: CSIStorageCapacity\nmetadata: {name: v}\ncapacity: big\n",
        "c.yaml: line 1: CSIStorageCapacity default/v: capacity: "
        'quantity "big": want a number with an optional suffix such as m, k, M, Gi',
    ),
    "a spread constraint's selector": (
        POD_HEADER
        + "spec: {containers: [{name: z}], topologySpreadConstraints: [{maxSkew: 1, topologyKey: zone, "
        + "whenUnsatisfiable: DoNotSchedule, labelSelector: {matchExpressions: [{key: a, operator: Is}]}}]}\n",
        "c.yaml: line 1: Pod default/web: spec.topologySpreadConstraints[0].labelSelector.matchExpressions[0]"
        f'.operator: unknown operator "Is"; {OPERATORS}',
    ),
    "a pod affinity's selector": (
        POD_HEADER
        + "spec: {containers: [{name: z}], "
        + "affinity: {podAntiAffinity: {requiredDuringSchedulingIgnoredDuringExecution: "
        + "[{topologyKey: z, namespaceSelector: {matchExpressions: [{key: a, operator: in}]}}]}}}\n",
        "c.yaml: line 1: Pod default/web: spec.affinity.podAntiAffinity.requiredDuringSchedulingIgnoredDuringExecution"
        f'[0].namespaceSelector.matchExpressions[0].operator: unknown operator "in"; {OPERATORS}',
    ),
    "a node affinity": (
        POD_HEADER
        + "spec: {containers: [{name: z}], affinity: {nodeAffinity: {preferredDuringSchedulingIgnoredDuringExecution: "
        + "[{weight: 1, preference: {matchExpressions: [{key: a, operator: Equals}]}}]}}}\n",
        "c.yaml: line 1: Pod default/web: spec.affinity.nodeAffinity.preferredDuringSchedulingIgnoredDuringExecution"
        f'[0].preference.matchExpressions[0].operator: unknown operator "Equals"; {OPERATORS}, Gt, Lt',
    ),
    "a node affinity on a field": (
        POD_HEADER
        + "spec: {containers: [{name: z}], affinity: {nodeAffinity: {requiredDuringSchedulingIgnoredDuringExecution: "
        + "{nodeSelectorTerms: [{matchFields: [{key: metadata.name, operator: Exists}]}]}}}}\n",
        "c.yaml: line 1: Pod default/web: spec.affinity.nodeAffinity.requiredDuringSchedulingIgnoredDuringExecution"
        '.nodeSelectorTerms[0].matchFields[0].operator: unknown operator "Exists"; want one of In, NotIn',
    ),
    "a toleration": (
        POD_HEADER + "spec: {containers: [{name: z}], tolerations: [{key: a, operator: Equals}]}\n",
        "c.yaml: line 1: Pod default/web: spec.tolerations[0].operator: "
        'unknown operator "Equals"; want Equal or Exists',
    ),
    "a replica set's selector": (
        "apiVersion: apps/v1\nkind: ReplicaSet\nmetadata: {name: r, namespace: shop}\n"
        "spec: {selector: {matchExpressions: [{key: a, operator: Gt}]}}\n",
        "c.yaml: line 1: ReplicaSet shop/r: spec.selector.matchExpressions[0].operator: "
        f'unknown operator "Gt"; {OPERATORS}',
    ),
    "a disruption budget's selector": (
        "apiVersion: policy/v1\nkind: PodDisruptionBudget\nmetadata: {name: b}\n"
        "spec: {selector: {matchExpressions: [{key: a}]}}\n",
        "c.yaml: line 1: PodDisruptionBudget default/b: spec.selector.matchExpressions[0].operator: "
        f'unknown operator ""; {OPERATORS}',
    ),
    "an integer with a fraction": (
        POD_HEADER + "spec: {priority: 1.5}\n",
        "c.yaml: line 1: Pod web: spec.priority: Expected `int | null`, got `float`",
    ),
    "a field of a wrong type": (
        POD_HEADER + "spec: {priority: high}\n",
        "c.yaml: line 1: Pod web: spec.priority: Expected `int | null`, got `str`",
    ),
    "a name that is a number": (
        "apiVersion: v1\nkind: Node\nmetadata: {name: 5}\n",
        "c.yaml: line 1: Node: metadata.name: Expected `str`, got `int`; put it in quotes",
    ),
    "a label that is a number": (
        POD_HEADER.replace("name: web", "name: web, labels: {app: web, example.com/version: 1.0}") + "spec: {}\n",
        "c.yaml: line 1: Pod web: metadata.labels[example.com/version]: Expected `str`, got `int`; put it in quotes",
    ),
    "a selector in a list of JSON that is a boolean": (
        '{"apiVersion":"v1","kind":"Pod","metadata":{"name":"web"},"spec":{"topologySpreadConstraints":'
        '[{},{"labelSelector":{"matchLabels":{"a":"b","on":true}}}]}}',
        "c.yaml: Pod web: spec.topologySpreadConstraints[1].labelSelector.matchLabels[on]: Expected `str`, got `bool`; "
        "put it in quotes",
    ),
    "a wrong type in a namespace": (
        '{"apiVersion":"v1","kind":"Pod","metadata":{"name":"web","namespace":"shop"},"spec":7}',
        "c.yaml: Pod shop/web: spec: Expected `object`, got `int`",
    ),
    "a number that is too great": (
        POD_HEADER + "spec: {priority: 3000000000}\n",
        "c.yaml: line 1: Pod web: spec.priority: Expected `int` <= 2147483647",
    ),
}


@pytest.mark.parametrize(("text", "message"), INVALID_OBJECTS.values(), ids=INVALID_OBJECTS.keys())
def test_an_invalid_object_is_named_with_its_field(tmp_path: Path, text: str, message: str) -> None:
    assert errors_in_text(tmp_path, text) == [message]


def test_all_errors_of_a_file_are_reported_at_once(tmp_path: Path) -> None:
    text = (
        "apiVersion: v1\nkind: Node\nmetadata: {name: n1}\nstatus: {allocatable: {cpu: x}}\n"
        "---\n7\n---\napiVersion: v1\nkind: Node\n"
    )
    assert errors_in_text(tmp_path, text) == [
        'c.yaml: line 1: Node n1: status.allocatable.cpu: quantity "x": want a number with an optional suffix '
        "such as m, k, M, Gi",
        f"c.yaml: line 6: is a number; {EXPECTED_OBJECT}",
        "c.yaml: line 8: Node: metadata.name: is missing; every object needs a name",
    ]


def test_a_duplicate_pod_is_reported_with_both_locations(tmp_path: Path) -> None:
    first, second = tmp_path / "a.yaml", tmp_path / "b.json"
    pod = '{"apiVersion":"v1","kind":"Pod","metadata":{"name":"n1"},"spec":{"containers":[{"name":"a"}]}}'
    first.write_text(f"{pod}\n")
    pod = pod.replace('"n1"', '"n1","namespace":"default"')
    second.write_text(f'{{"kind":"List","apiVersion":"v1","items":[{NODE},{pod}]}}')
    assert errors_in_files(first, second) == [
        f"{second}: items[1]: Pod default/n1: is defined twice; the first definition is in {first}; "
        "keep one of them, or pass --override to use the last one"
    ]


def test_a_second_configuration_is_an_error(tmp_path: Path) -> None:
    text = "kind: List\napiVersion: v1\nconfig: {kind: X}\n---\nkind: List\napiVersion: v1\nconfig: {kind: X}\n"
    assert errors_in_text(tmp_path, text) == [
        "c.yaml: line 5: is a second configuration; the first is in c.yaml: line 1; keep one of them"
    ]


def test_reading_stops_after_twenty_errors(tmp_path: Path) -> None:
    lines = errors_in_text(tmp_path, "7\n---\n" * 100)
    assert len(lines) == 21
    assert lines[-1] == "c.yaml: line 39: too many errors; reading stopped here"
