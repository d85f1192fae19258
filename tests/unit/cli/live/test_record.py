"""The file of a recording: it replaces an old one, and no link leads the writer to another file."""

import errno
import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any, BinaryIO

import pytest

from extender.analysis.input.input_errors import InputError
from extender.analysis.recorded_cluster import Recording
from extender.cli.live.record import write_recording_file

Command = Callable[..., tuple[int, str, str]]


def test_the_recording_is_not_written_through_a_link(tmp_path: Path) -> None:
    other_file, file = tmp_path / "other", tmp_path / "cluster.json"
    other_file.write_text("other")
    (tmp_path / ".cluster.json.partial").symlink_to(other_file)
    assert write_recording_file(Recording(), str(file), ()) == 0
    assert other_file.read_text() == "other"
    assert json.loads(file.read_text())["items"] == []
    assert file.stat().st_mode & 0o777 == 0o600


def test_on_a_full_disk_the_old_file_stays_and_no_part_of_the_new_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def write_until_full(_: Recording, file: BinaryIO, **__: Any) -> int:
        file.write(b"[")
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr("extender.cli.live.record.write_recording", write_until_full)
    (tmp_path / "c.json").write_text("old")
    with pytest.raises(InputError, match="cannot be written: No space left on device"):
        write_recording_file(Recording(), str(tmp_path / "c.json"), ())
    assert {file.name: file.read_text() for file in tmp_path.iterdir()} == {"c.json": "old"}


def test_a_device_is_written_to_and_not_replaced(tmp_path: Path) -> None:
    device = tmp_path / "null"
    device.symlink_to(os.devnull)
    assert write_recording_file(Recording(), str(device), ()) == 0
    assert device.is_symlink()
    assert [file.name for file in tmp_path.iterdir()] == ["null"]


def test_a_pipe_is_written_to_and_not_replaced(tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    reader = os.open(pipe, os.O_RDONLY | os.O_NONBLOCK)
    assert write_recording_file(Recording(), str(pipe), ()) == 0
    assert json.loads(os.read(reader, 65536))["items"] == []
    os.close(reader)
    assert pipe.is_fifo()


@pytest.mark.usefixtures("no_cluster")
def test_without_a_cluster_no_recording_is_recommended(extender: Command, tmp_path: Path) -> None:
    """The command writes recordings; it has no -f."""
    status, out, err = extender("record", "-o", str(tmp_path / "cluster.json"))
    assert (status, out) == (2, "")
    assert err.endswith("and this is not a pod of a cluster; pass --kubeconfig\n")


def test_the_message_names_the_file(extender: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def read_nothing(*_: object, **__: object) -> Recording:
        return Recording(sources=("https://10.0.0.1",))

    monkeypatch.setattr("extender.app.cluster_reader.read_cluster_kinds", read_nothing)
    file = str(tmp_path / "c.json")
    assert extender("record", "-o", file) == (0, "", f"extender: recorded 0 objects of https://10.0.0.1 in {file}\n")
    assert extender("record", "-o", "-")[2] == "extender: recorded 0 objects of https://10.0.0.1\n"
