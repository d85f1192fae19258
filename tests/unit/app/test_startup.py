"""The startup of a serving process: listening sockets, certificates and stop signals."""

import asyncio
import os
import resource
import signal
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from extender.app.startup import (
    StartError,
    check_open_file_limit,
    handle_signals,
    load_certificate,
    open_listening_socket,
)
from extender.serving.serving_options import ServingOptions


def test_a_listening_socket_is_closed_at_the_end_of_the_block() -> None:
    with open_listening_socket(ServingOptions("127.0.0.1", 0), "--port") as listener:
        address = listener.getsockname()
        socket.create_connection(address).close()
    with pytest.raises(ConnectionRefusedError):
        socket.create_connection(address)


def test_a_port_in_use_is_an_error_with_the_flag() -> None:
    with open_listening_socket(ServingOptions("127.0.0.1", 0), "--port") as listener:
        port = listener.getsockname()[1]
        with (
            pytest.raises(StartError) as caught,
            open_listening_socket(ServingOptions("127.0.0.1", port), "--secure-port"),
        ):
            pass
    message = f"failed to listen on 127.0.0.1:{port}: address already in use; choose another port with --secure-port"
    assert str(caught.value) == message


def test_a_missing_certificate_is_an_error(tmp_path: Path) -> None:
    options = ServingOptions("127.0.0.1", 0, cert_file=str(tmp_path / "tls.crt"), key_file=str(tmp_path / "tls.key"))
    with pytest.raises(StartError, match=r"tls\.crt: no such file or directory$"):
        load_certificate(options)


def test_signals_call_their_functions_inside_the_block() -> None:
    async def main() -> list[str]:
        calls: list[str] = []
        with handle_signals(lambda: calls.append("stop"), lambda: calls.append("dump")):
            for number in (signal.SIGUSR2, signal.SIGTERM):
                os.kill(os.getpid(), number)
                await asyncio.sleep(0)
        return calls

    assert asyncio.run(main()) == ["dump", "stop"]


def test_usr2_does_not_end_a_process_without_a_dump() -> None:
    async def main() -> None:
        with handle_signals(lambda: None):
            os.kill(os.getpid(), signal.SIGUSR2)
            await asyncio.sleep(0)

    asyncio.run(main())


@pytest.mark.parametrize(("soft", "hard", "raised"), [(64, 64, 64), (12, 100, 100), (12, resource.RLIM_INFINITY, 8448)])
def test_the_limit_of_open_files_is_raised(soft: int, hard: int, raised: int, monkeypatch: pytest.MonkeyPatch) -> None:
    limits: list[tuple[int, int]] = []
    monkeypatch.setattr(resource, "getrlimit", lambda _: (soft, hard))
    monkeypatch.setattr(resource, "setrlimit", lambda _, new_limits: limits.append(new_limits))
    check_open_file_limit()
    assert limits == [(raised, hard)]


@pytest.mark.parametrize("command", ["serve --without-cluster --port=0", "schedule --master=http://127.0.0.1:1"])
def test_a_low_limit_of_open_files_is_one_error_line(command: str) -> None:
    shell_command = f"ulimit -n 20 && exec {sys.executable} -m extender {command}"
    process = subprocess.run(["/bin/sh", "-c", shell_command], capture_output=True, text=True, check=False)
    assert (process.returncode, process.stderr) == (
        1, "extender: the limit of open files is 20; want 64 or more (ulimit -n)\n",
    )  # fmt: skip
