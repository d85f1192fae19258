"""Files, pipes and devices are read up to a limit."""

import os
import socket
from pathlib import Path

import pytest

from extender.basics import input_limits
from extender.basics.input_limits import (
    MAX_CERTIFICATE_BYTES,
    MAX_CONFIG_BYTES,
    MAX_CREDENTIAL_BYTES,
    MAX_KUBECONFIG_BYTES,
    MAX_RECORDING_BYTES,
    MAX_YAML_BYTES,
    InputLimitError,
    collect_limited,
    format_size,
    read_limited_file,
    shorten,
)


def error_of(file: Path | str, max_bytes: int = 10) -> str:
    with pytest.raises(InputLimitError) as caught:
        read_limited_file(file, max_bytes)
    return str(caught.value)


def test_the_limits_of_sizes_are_those_in_the_documentation() -> None:
    limits = (
        MAX_RECORDING_BYTES,
        MAX_YAML_BYTES,
        MAX_CONFIG_BYTES,
        MAX_KUBECONFIG_BYTES,
        MAX_CREDENTIAL_BYTES,
        MAX_CERTIFICATE_BYTES,
    )
    assert [format_size(limit) for limit in limits] == ["2 GiB", "256 MiB", "1 MiB", "16 MiB", "1 MiB", "16 MiB"]


def test_a_file_of_the_maximum_size_is_read_and_a_longer_one_is_not(tmp_path: Path) -> None:
    file = tmp_path / "file"
    file.write_bytes(b"0123456789")
    assert read_limited_file(file, 10) == b"0123456789"
    assert error_of(file, 9) == "has more than 9 bytes"


def test_a_sparse_file_of_a_terabyte_is_read_only_up_to_the_limit(tmp_path: Path) -> None:
    file = tmp_path / "file"
    with file.open("wb") as stream:
        stream.truncate(1024**4)
    assert error_of(file, 1024**2) == "has more than 1 MiB"


@pytest.mark.parametrize("device", ["/dev/zero", "/dev/random", "/dev/null"])
def test_a_device_is_not_read(device: str) -> None:
    assert error_of(device) == "is a device; name a file with text"


def test_a_socket_is_not_read(tmp_path: Path) -> None:
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(tmp_path / "socket"))
        with pytest.raises((OSError, InputLimitError)):
            read_limited_file(tmp_path / "socket", 10)


def test_a_directory_and_a_missing_file_are_errors_of_the_system(tmp_path: Path) -> None:
    with pytest.raises(IsADirectoryError):
        read_limited_file(tmp_path, 10)
    with pytest.raises(FileNotFoundError):
        read_limited_file(tmp_path / "missing", 10)


def test_a_pipe_is_read_to_its_end_and_up_to_the_limit() -> None:
    for text, max_bytes, want in ((b"0123456789", 10, b"0123456789"), (b"", 10, b"")):
        reader, writer = os.pipe()
        os.write(writer, text)
        os.close(writer)
        assert read_limited_file(f"/dev/fd/{reader}", max_bytes) == want
        os.close(reader)
    reader, writer = os.pipe()
    os.write(writer, b"0123456789")
    assert error_of(f"/dev/fd/{reader}", 9) == "has more than 9 bytes"


def test_a_named_pipe_without_a_writer_is_an_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert input_limits.PIPE_WRITER_TIMEOUT_SECONDS == 10
    monkeypatch.setattr(input_limits, "PIPE_WRITER_TIMEOUT_SECONDS", 0)
    os.mkfifo(tmp_path / "pipe")
    assert error_of(tmp_path / "pipe") == "is a pipe without a writer; start the command that writes to it"


def test_a_pipe_with_an_idle_writer_is_an_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert input_limits.PIPE_DATA_TIMEOUT_SECONDS == 300
    monkeypatch.setattr(input_limits, "PIPE_DATA_TIMEOUT_SECONDS", 0)
    reader, writer = os.pipe()
    os.write(writer, b"begin")
    assert error_of(f"/dev/fd/{reader}") == "is a pipe whose writer sent nothing for 0 s; check the command"
    os.close(reader)
    os.close(writer)


def test_chunks_are_read_up_to_the_first_invalid_one() -> None:
    chunks = iter([b"a", b"\0", b"c"])
    assert collect_limited(chunks, 10, lambda chunk: b"\0" in chunk) == b"a\0"
    assert list(chunks) == [b"c"]


def test_a_long_text_in_a_message_is_shortened() -> None:
    assert shorten("abc", 3) == "abc"
    assert shorten("abcd", 3) == "abc... (4 characters)"
    assert shorten("x" * 10_000_000) == "x" * 1000 + "... (10000000 characters)"
