"""A process that cannot begin says why in one line, and nothing of what it opened is left behind."""

import asyncio
import socket
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, HTTPServer

import pytest

from extender.cli.flags import parse
from extender.cli.schedule import command
from extender.cli.schedule_flags import FLAGS
from extender.cli.schedule_options import options_of
from extender.process.entrance import StartError
from extender.process.running import run


def begun(*words: str) -> int:
    return asyncio.run(run(options_of(parse(words, FLAGS))))


@contextmanager
def api_server(code: int, port: int = 0) -> Iterator[str]:
    """An API server that answers everything with *code*; gives its address."""

    class Answers(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            body = b'{"kind":"Status","message":"Unauthorized","reason":"Unauthorized","code":%d}' % code
            self.send_response(code)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: object) -> None:
            """Nothing."""

    server = HTTPServer(("127.0.0.1", port), Answers)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


@pytest.fixture
def closed() -> str:
    """An address nobody listens at."""
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        port = taken.getsockname()[1]
    return f"http://127.0.0.1:{port}"


@pytest.fixture
def hasty(monkeypatch: pytest.MonkeyPatch) -> None:
    """The API server need not be waited for so long."""
    monkeypatch.setattr("extender.process.running._FIRST_ANSWER", 0.5)


@pytest.mark.usefixtures("hasty")
def test_an_api_server_that_is_not_there_is_told(closed: str) -> None:
    with pytest.raises(StartError) as caught:
        begun(f"--master={closed}", "--secure-port=0")
    told = str(caught.value)
    assert told == (
        f"the API server {closed} cannot be reached: cannot connect to {closed}: connection refused; "
        "check --kubeconfig, --master and the network"
    )


def test_an_api_server_that_comes_a_little_later_is_waited_for(closed: str) -> None:
    ended = threading.Event()

    def later() -> None:
        if not ended.wait(0.5):
            with api_server(401, int(closed.rpartition(":")[2])):
                ended.wait()

    with ThreadPoolExecutor() as others:
        others.submit(later)
        try:
            with pytest.raises(StartError, match="does not accept our credentials: Unauthorized"):
                begun(f"--master={closed}", "--secure-port=0")
        finally:
            ended.set()


def test_credentials_that_are_not_accepted_are_told() -> None:
    with api_server(401) as address, pytest.raises(StartError) as caught:
        begun(f"--master={address}", "--secure-port=0")
    assert str(caught.value) == f"the API server {address} does not accept our credentials: Unauthorized"


def test_a_port_in_use_is_told_before_anybody_is_asked(closed: str) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        with pytest.raises(StartError) as caught:
            begun(f"--master={closed}", f"--secure-port={port}", "--bind-address=127.0.0.1")
    told = f"failed to listen on 127.0.0.1:{port}: address already in use; choose another with --secure-port"
    assert str(caught.value) == told


def test_a_certificate_that_is_not_there_is_told(closed: str) -> None:
    port = closed.rpartition(":")[2]
    with pytest.raises(StartError, match=r"^open /no/x: no such file or directory$"):
        begun(
            f"--master={closed}", "--bind-address=127.0.0.1", f"--secure-port={port}", "--tls-cert-file=/no/x",
            "--tls-private-key-file=/no/y",
        )  # fmt: skip


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (["--kubeconfig=/no/config"], "kubeconfig /no/config does not exist"),
        ([], "no kubeconfig: none given with --kubeconfig"),
    ],
    ids=["a file that is missing", "nothing at all"],
)
def test_missing_credentials_are_one_line_and_status_1(
    words: list[str], told: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], logs: None
) -> None:
    for name in ("KUBECONFIG", "HOME", "KUBERNETES_SERVICE_HOST"):
        monkeypatch.delenv(name, raising=False)
    assert command([*words, "--secure-port=0"], run) == 1
    lines = capsys.readouterr().err.splitlines()
    assert len(lines) == 1
    assert lines[0].startswith(f"extender: {told}")


@pytest.mark.usefixtures("hasty")
def test_an_unreachable_api_server_is_one_line_and_status_1(
    closed: str, capsys: pytest.CaptureFixture[str], logs: Callable[[], None]
) -> None:
    assert command([f"--master={closed}", "--secure-port=0"], run) == 1
    assert len(capsys.readouterr().err.splitlines()) == 1
