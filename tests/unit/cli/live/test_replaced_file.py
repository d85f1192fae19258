"""A file that a command writes is replaced only if all of it was written; links in /dev are written to."""

import subprocess
import sys
from pathlib import Path

import pytest

from extender.cli.live.replaced_file import open_replaced_file


def test_a_file_is_as_before_if_the_writer_fails(tmp_path: Path) -> None:
    file = tmp_path / "full.yaml"
    file.write_text("old")

    def write_a_part() -> None:
        with open_replaced_file(str(file)) as stream:
            stream.write(b"a part")
            raise OSError("disk full")

    with pytest.raises(OSError, match="disk full"):
        write_a_part()
    assert {each.name: each.read_text() for each in tmp_path.iterdir()} == {"full.yaml": "old"}


def test_a_file_is_replaced_at_the_end(tmp_path: Path) -> None:
    file = tmp_path / "full.yaml"
    with open_replaced_file(str(file), 0o600) as stream:
        stream.write(b"new")
        assert not file.exists()
    assert (file.read_text(), file.stat().st_mode & 0o777) == ("new", 0o600)
    assert [each.name for each in tmp_path.iterdir()] == ["full.yaml"]


@pytest.mark.parametrize("name", ["", ".", "/", "folder"])
def test_a_folder_is_not_replaced(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "folder").mkdir()
    with pytest.raises(IsADirectoryError), open_replaced_file(name):
        pass
    assert [each.name for each in tmp_path.iterdir()] == ["folder"]


def test_a_link_is_replaced_and_not_followed(tmp_path: Path) -> None:
    """Another user may have made it in a shared folder."""
    link, other_file = tmp_path / "link", tmp_path / "other"
    other_file.write_text("other")
    link.symlink_to(other_file)
    with open_replaced_file(str(link)) as stream:
        stream.write(b"new")
    assert (link.read_text(), link.is_symlink(), other_file.read_text()) == ("new", False, "other")


def test_standard_output_is_written_to_if_it_is_a_file(tmp_path: Path) -> None:
    """Root could replace the link /dev/stdout itself."""
    code = """
import sys
from extender.cli.live.replaced_file import open_replaced_file
with open_replaced_file("/dev/stdout") as stream:
    stream.write(b"new")
"""
    with (tmp_path / "out").open("wb") as output:
        subprocess.run([sys.executable, "-c", code], stdout=output, check=True)
    assert (tmp_path / "out").read_text() == "new"
    assert Path("/dev/stdout").is_symlink()
