"""Errors at the start of `extender schedule`: one line each, and nothing stays open."""

import asyncio
import os
import signal
import socket
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path

import pytest

from extender.app.schedule import run
from extender.app.startup import StartError
from extender.cli.pflag import parse
from extender.cli.schedule import run_command
from extender.cli.schedule_flags import FLAGS
from extender.cli.schedule_options import make_schedule_options
from tests.controlplane.process import free_ports
from tests.unit.client.kubeconfig_files import write_exec_plugin, write_kubeconfig


def run_schedule(*words: str) -> int:
    return asyncio.run(run(make_schedule_options(parse(words, FLAGS))))


@contextmanager
def api_server(code: int, port: int = 0, on_request: Callable[[], None] = lambda: None) -> Iterator[str]:
    """Run an API server that responds to everything with *code*, and asks to retry in a minute; return its address."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            body = b'{"kind":"Status","message":"Unauthorized","reason":"Unauthorized","code":%d}' % code
            on_request()
            self.send_response(code)
            self.send_header("Retry-After", "60")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: object) -> None:
            """Do nothing."""

    server = HTTPServer(("127.0.0.1", port), Handler)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


@pytest.fixture
def closed_address() -> str:
    """An address without a listener."""
    return f"http://127.0.0.1:{free_ports(1)[0]}"


@pytest.fixture
def short_connect_timeout(monkeypatch: pytest.MonkeyPatch) -> None:
    """Wait only half a second for the API server."""
    monkeypatch.setattr("extender.app.schedule._CONNECT_TIMEOUT_SECONDS", 0.5)


@pytest.mark.usefixtures("short_connect_timeout")
def test_an_unreachable_api_server_is_an_error(closed_address: str) -> None:
    with pytest.raises(StartError) as caught:
        run_schedule(f"--master={closed_address}", "--secure-port=0")
    assert str(caught.value) == (
        f"the API server {closed_address} cannot be reached: connection refused; "
        "check --kubeconfig, --master and the network"
    )


def test_the_start_waits_for_an_api_server_that_starts_later(closed_address: str) -> None:
    done = threading.Event()

    def start_later() -> None:
        if not done.wait(0.5):
            with api_server(401, int(closed_address.rpartition(":")[2])):
                done.wait()

    with ThreadPoolExecutor() as executor:
        executor.submit(start_later)
        try:
            with pytest.raises(StartError, match="does not accept our credentials: Unauthorized"):
                run_schedule(f"--master={closed_address}", "--secure-port=0")
        finally:
            done.set()


def test_a_stop_signal_ends_the_wait_for_an_api_server_that_asks_to_retry_later() -> None:
    requested = threading.Event()

    async def main(*words: str) -> int:
        task = asyncio.create_task(run(make_schedule_options(parse(words, FLAGS))))
        assert await asyncio.to_thread(requested.wait, 20)
        os.kill(os.getpid(), signal.SIGTERM)
        return await asyncio.wait_for(task, 20)

    with api_server(429, on_request=requested.set) as address:
        assert asyncio.run(main(f"--master={address}", "--secure-port=0")) == 0


def test_rejected_credentials_are_an_error() -> None:
    with api_server(401) as address, pytest.raises(StartError) as caught:
        run_schedule(f"--master={address}", "--secure-port=0")
    assert str(caught.value) == f"the API server {address} does not accept our credentials: Unauthorized"


@pytest.mark.usefixtures("short_connect_timeout")
def test_the_credentials_are_loaded_once(closed_address: str, tmp_path: Path) -> None:
    plugin = write_exec_plugin(tmp_path, '{"token":"a"}')
    user = {"exec": {**plugin, "interactiveMode": "Never"}}
    kubeconfig = write_kubeconfig(tmp_path / "config", cluster={"server": closed_address}, user=user)
    with pytest.raises(StartError, match="cannot be reached"):
        run_schedule(f"--kubeconfig={kubeconfig}", "--secure-port=0")
    assert (tmp_path / "runs").read_text() == "me\n"


def test_a_port_in_use_is_an_error_before_any_request(closed_address: str) -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
        with pytest.raises(StartError) as caught:
            run_schedule(f"--master={closed_address}", f"--secure-port={port}", "--bind-address=127.0.0.1")
    message = f"failed to listen on 127.0.0.1:{port}: address already in use; choose another port with --secure-port"
    assert str(caught.value) == message


def test_a_missing_certificate_is_an_error(closed_address: str) -> None:
    port = closed_address.rpartition(":")[2]
    with pytest.raises(StartError, match=r"^open /no/x: no such file or directory$"):
        run_schedule(
            f"--master={closed_address}", "--bind-address=127.0.0.1", f"--secure-port={port}", "--tls-cert-file=/no/x",
            "--tls-private-key-file=/no/y",
        )  # fmt: skip


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--kubeconfig=/no/config"], "kubeconfig /no/config does not exist"),
        ([], "no kubeconfig: none given with --kubeconfig"),
    ],
    ids=["a file that is missing", "nothing at all"],
)
def test_missing_credentials_are_one_line_and_status_1(
    words: list[str], message: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], logs: None
) -> None:
    for name in ("KUBECONFIG", "HOME", "KUBERNETES_SERVICE_HOST"):
        monkeypatch.delenv(name, raising=False)
    assert run_command([*words, "--secure-port=0"], run) == 1
    lines = capsys.readouterr().err.splitlines()
    assert len(lines) == 1
    assert lines[0].startswith(f"extender: {message}")


@pytest.mark.usefixtures("short_connect_timeout")
def test_an_unreachable_api_server_is_one_line_and_status_1(
    closed_address: str, capsys: pytest.CaptureFixture[str], logs: Callable[[], None]
) -> None:
    assert run_command([f"--master={closed_address}", "--secure-port=0"], run) == 1
    assert len(capsys.readouterr().err.splitlines()) == 1
