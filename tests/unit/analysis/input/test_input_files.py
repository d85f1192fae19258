"""Tests of `extender.analysis.input.input_files`: directories."""

import gzip
import io
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest

from extender.analysis.input import input_files
from extender.analysis.input.input_errors import InputError
from extender.analysis.input.input_files import list_files
from extender.analysis.recorded_cluster import check_nodes, read_recording

NODE = "apiVersion: v1\nkind: Node\nmetadata: {name: %s}\n"
UNREAD = "apiVersion: v1\nkind: Secret\nmetadata: {name: key}\n"
EXTENSIONS = ".json, .yaml, .yml, .json.gz, .yaml.gz, .yml.gz"


def write_files(directory: Path, files: dict[str, str | bytes]) -> None:
    for name, text in files.items():
        path = directory / name
        path.parent.mkdir(exist_ok=True)
        path.write_bytes(text.encode() if isinstance(text, str) else text)


def errors_in(*files: Path) -> Sequence[str]:
    with pytest.raises(InputError) as caught:
        read_recording([str(file) for file in files])
    return [str(error) for error in caught.value.errors]


def test_a_directory_stands_for_the_files_in_it_by_name(tmp_path: Path) -> None:
    write_files(
        tmp_path,
        {
            "b.yml": NODE % "second",
            "a.yaml": NODE % "first",
            "c.json": '{"apiVersion": "v1", "kind": "Node", "metadata": {"name": "third"}}',
            "d.yaml.gz": gzip.compress((NODE % "fourth").encode()),
            "secret.yaml": UNREAD,
            "notes.txt": "no YAML: [",
            "sub/e.yaml": NODE % "unread",
            "f.yaml/g.yaml": NODE % "unread-too",
        },
    )
    recording = read_recording([str(tmp_path)])
    assert [item.metadata.name for item in recording.objects] == ["first", "second", "third", "fourth"]
    assert recording.skipped_kinds == {"Secret": 1}
    assert [Path(source).name for source in recording.sources] == [
        "a.yaml", "b.yml", "c.json", "d.yaml.gz", "secret.yaml"
    ]  # fmt: skip


def test_the_errors_of_a_directory_name_its_files(tmp_path: Path) -> None:
    write_files(tmp_path, {"a.yaml": "", "b.yaml": NODE % "node", "c.yaml": NODE % "1"})
    assert errors_in(tmp_path) == [
        f"{tmp_path}/a.yaml: is empty; want YAML or JSON",
        f"{tmp_path}/c.yaml: line 1: Node: metadata.name: Expected `str`, got `int`; put it in quotes",
    ]


@pytest.mark.parametrize("text", ["# a comment\n", "---\n", "---\n# a comment\n---\n---\n", "null\n"])
def test_a_file_without_a_document_is_skipped_in_a_directory(tmp_path: Path, text: str) -> None:
    write_files(tmp_path, {"a.yaml": text, "b.yaml": NODE % "node"})
    assert [item.metadata.name for item in read_recording([str(tmp_path)]).objects] == ["node"]
    assert errors_in(tmp_path / "a.yaml") == [
        f"{tmp_path}/a.yaml: holds no object; want a Kubernetes object or a List of them, with apiVersion and kind"
    ]


@pytest.mark.parametrize(
    ("files", "error"),
    [
        ({"notes.txt": "text"}, f"is a directory without a file whose name ends in {EXTENSIONS}"),
        (
            {"a.yaml": UNREAD, "b.yaml": UNREAD},
            "adds nothing to the cluster: scheduling does not read its kinds, such as Secret",
        ),
        ({"a.yaml": "# a comment\n", "b.yaml": "---\n"}, "adds nothing to the cluster: it has no object"),
        (
            {f"{number}.yaml": NODE % f"node-{number}" for number in range(4)},
            "has more than 3 files; merge them, or name smaller directories one by one",
        ),
    ],
    ids=["no file with objects", "no object that scheduling reads", "no object", "too many files"],
)
def test_a_directory_that_cannot_be_read_is_one_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, files: dict[str, str | bytes], error: str
) -> None:
    monkeypatch.setattr(input_files, "_MAX_DIRECTORY_FILES", 3)
    write_files(tmp_path, files)
    assert errors_in(tmp_path) == [f"{tmp_path}: {error}"]


def test_an_error_about_a_directory_names_its_first_files(tmp_path: Path) -> None:
    write_files(tmp_path, {f"{number}.yaml": NODE % f"node-{number}" for number in range(5)})
    with pytest.raises(InputError) as caught:
        check_nodes(read_recording([str(tmp_path)]))
    files = ", ".join(f"{tmp_path}/{number}.yaml" for number in range(3))
    assert str(caught.value.errors[0]).startswith(f"{files} and 2 more: Node node-0: status.allocatable: is missing")


def test_a_directory_named_like_standard_input_is_not_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    write_files(tmp_path, {"-/a.yaml": NODE % "node"})
    assert list_files("-") == ["-"]
    assert list_files("./-") == ["./-/a.yaml"]


def test_a_file_named_stdin_is_another_source_than_standard_input(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    write_files(tmp_path, {"stdin": NODE % "from-a-file"})
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO((NODE % "from-standard-input").encode())))
    recording = read_recording(["-", "stdin"])
    assert [item.metadata.name for item in recording.objects] == ["from-standard-input", "from-a-file"]
    assert recording.sources == ("stdin", "./stdin")


def test_standard_input_named_twice_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO((NODE % "node").encode())))
    with pytest.raises(InputError) as caught:
        read_recording(["-", "-"])
    assert [str(error) for error in caught.value.errors] == ["stdin: is named twice; name it once"]


def test_a_file_that_is_named_with_its_directory_is_an_error(tmp_path: Path) -> None:
    write_files(tmp_path, {"a.yaml": NODE % "node"})
    assert errors_in(tmp_path, tmp_path / "a.yaml") == [f"{tmp_path}/a.yaml: is named twice; name it once"]
