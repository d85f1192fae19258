"""The result file of a sweep or an experiment: finished tasks, cut lines, other files, and digests."""

import errno
import fcntl
import json
from pathlib import Path
from types import SimpleNamespace

import pytest

from extender import __version__
from extender.analysis.input.input_errors import InputError
from extender.cli.planning import result_file
from extender.cli.planning.result_file import ResultFile, make_plugin_digest

HEAD = f'{{"sweep":"id","version":"{__version__}"}}\n'.encode()


def read_name(line: bytes) -> str:
    return str(json.loads(line)["scenario"])


def make_results(path: Path | str, inputs: str = "id") -> ResultFile[str]:
    return ResultFile(str(path), {"sweep": inputs}, read_name)


def make_line(name: str) -> bytes:
    return json.dumps({"scenario": name, "config": None}).encode() + b"\n"


def test_a_sweep_continues_after_the_last_complete_line(tmp_path: Path) -> None:
    path = tmp_path / "r.jsonl"
    first = make_results(path)
    assert first.open() == []
    first.append(make_line("a"))
    first.append(make_line("b")[:-5])  # the process was killed in the middle of a line
    first.close()
    second = make_results(path)
    assert second.open() == ["a"]
    second.append(make_line("b"))
    assert [values["scenario"] for values in second.read_values()] == ["a", "b"]
    assert path.read_bytes() == HEAD + make_line("a") + make_line("b")


def test_a_file_that_another_command_has_open_is_refused(tmp_path: Path) -> None:
    """Two commands would write each result twice, and each removes the line that the other one has not completed."""
    path = tmp_path / "r.jsonl"
    first, second = make_results(path), make_results(path)
    first.open()
    first.append(make_line("a")[:-5])
    with pytest.raises(InputError) as caught:
        second.open()
    message = "is in use by another command; wait for its end, or name another file"
    assert [str(line) for line in caught.value.errors] == [f"{path}: {message}"]
    assert path.read_bytes() == HEAD + make_line("a")[:-5]
    first.close()
    assert second.open() == []
    second.close()


def test_a_file_system_without_locks_is_no_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: int) -> None:
        raise OSError(errno.ENOLCK, "No locks available")

    monkeypatch.setattr(fcntl, "flock", refuse)
    assert make_results(tmp_path / "r.jsonl").open() == []


def test_without_a_path_the_lines_stay_in_memory() -> None:
    results = make_results("")
    assert results.open() == []
    results.append(make_line("a"))
    assert list(results.read_lines()) == [make_line("a")]


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (HEAD.replace(b"id", b"other"), "holds the results of other inputs: sweep; delete it, or name another file"),
        (
            HEAD.replace(__version__.encode(), b"0.0.9"),
            "holds the results of other inputs: version; delete it, or name another file",
        ),
        (b'{"trace":"id","version":"1"}\n', "holds no results of this command; name another file"),
        (b"[1]\n", "holds no results of this command; name another file"),
        (HEAD + b'{"x":1}\n', "holds no results of this command; name another file"),
        (b"text\n", "holds no results of this command; name another file"),
    ],
    ids=["another sweep", "another version", "another command", "a list", "other lines", "no JSON"],
)
def test_another_file_is_refused_and_not_changed(tmp_path: Path, content: bytes, message: str) -> None:
    path = tmp_path / "r.jsonl"
    path.write_bytes(content)
    with pytest.raises(InputError) as caught:
        make_results(path).open()
    assert str(caught.value) == f"{path}: {message}"
    assert path.read_bytes() == content


def test_a_file_that_cannot_be_written_is_named(tmp_path: Path) -> None:
    with pytest.raises(InputError) as caught:
        make_results(tmp_path / "missing" / "r.jsonl").open()
    assert str(caught.value) == f"{tmp_path}/missing/r.jsonl: cannot be read or written: No such file or directory"


def test_a_device_is_refused_because_it_may_have_no_end() -> None:
    with pytest.raises(InputError) as caught:
        make_results("/dev/full").open()
    assert str(caught.value) == "/dev/full: is no regular file"


def test_a_full_disk_is_named_with_its_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    results = make_results(tmp_path / "r.jsonl")
    results.open()
    monkeypatch.setattr(results, "_path", Path("/dev/full"))
    with pytest.raises(OSError, match="No space left on device") as caught:
        results.append(make_line("a"))
    assert caught.value.filename == "/dev/full"


@pytest.mark.parametrize(
    ("file", "changes"),
    [
        ("one_file_plugin.py", True),
        ("plugin_folder/score.py", True),
        ("plugin_folder/other/part.py", True),
        ("another_module.py", False),
    ],
)
def test_the_digest_changes_with_each_file_of_a_plugin_package(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, file: str, changes: bool
) -> None:
    for name in ("one_file_plugin.py", "another_module.py", "plugin_folder/__init__.py", "plugin_folder/other/part.py"):
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("weight = 1\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    entry_points = [SimpleNamespace(module="one_file_plugin"), SimpleNamespace(module="plugin_folder.score")]
    monkeypatch.setattr(result_file, "find_installed_entry_points", lambda: entry_points)
    before = make_plugin_digest()
    assert make_plugin_digest() == before
    (tmp_path / file).write_text("weight = 2\n")
    assert (make_plugin_digest() != before) is changes
