"""The result file of a sweep: finished scenarios, cut lines, and other files."""

import json
from pathlib import Path

import pytest

from extender.analysis.input.input_errors import InputError
from extender.cli.planning.result_file import ResultFile


def make_line(name: str) -> bytes:
    return json.dumps({"scenario": name, "config": None}).encode() + b"\n"


def test_a_sweep_continues_after_the_last_complete_line(tmp_path: Path) -> None:
    path = tmp_path / "r.jsonl"
    first = ResultFile(str(path), "id")
    assert first.open() == set()
    first.append(make_line("a"))
    first.append(make_line("b")[:-5])  # the process was killed in the middle of a line
    second = ResultFile(str(path), "id")
    assert second.open() == {("a", None)}
    second.append(make_line("b"))
    assert [values["scenario"] for values in second.read_values()] == ["a", "b"]
    assert path.read_bytes() == b'{"sweep":"id"}\n' + make_line("a") + make_line("b")


def test_without_a_path_the_lines_stay_in_memory() -> None:
    results = ResultFile("", "id")
    assert results.open() == set()
    results.append(make_line("a"))
    assert list(results.read_lines()) == [make_line("a")]


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b'{"sweep":"other"}\n', "holds the results of another sweep or cluster; delete it, or name another file"),
        (b"[1]\n", "holds no results of a sweep; name another file"),
        (b'{"sweep":"id"}\n{"x":1}\n', "holds no results of a sweep; name another file"),
        (b"text\n", "holds no results of a sweep; name another file"),
    ],
    ids=["another sweep", "a list", "other lines", "no JSON"],
)
def test_another_file_is_refused_and_not_changed(tmp_path: Path, content: bytes, message: str) -> None:
    path = tmp_path / "r.jsonl"
    path.write_bytes(content)
    with pytest.raises(InputError) as caught:
        ResultFile(str(path), "id").open()
    assert str(caught.value) == f"{path}: {message}"
    assert path.read_bytes() == content


def test_a_file_that_cannot_be_written_is_named(tmp_path: Path) -> None:
    with pytest.raises(InputError) as caught:
        ResultFile(str(tmp_path), "id").open()
    assert str(caught.value) == f"{tmp_path}: cannot be read or written: Is a directory"
