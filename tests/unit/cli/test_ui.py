"""The command `extender ui`, run as a process: its address, its pages, and the end of the process."""

import asyncio
import re
import shlex
import signal
import socket
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from html import unescape
from pathlib import Path
from threading import Event, Thread
from urllib.error import HTTPError
from urllib.request import Request, urlopen

import pytest

from extender.fake_apiserver.server import FakeApiServer

ROOT = Path(__file__).parents[3]
DEMO = "docs/examples/demo/cluster.yaml"
RunExtender = Callable[..., tuple[int, str, str]]


@contextmanager
def run_ui() -> Iterator[tuple[subprocess.Popen[str], str]]:
    """Run the command with the option `--port 0`; return the process and the address that it prints."""
    command = [sys.executable, "-m", "extender", "ui", "-f", DEMO, "--override", "--port", "0", "--no-browser"]
    with subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None
            line = process.stdout.readline()
            match = re.fullmatch(r"The pages are at (http://127\.0\.0\.1:\d+/ui/)\n", line)
            assert match is not None, line
            yield process, match.group(1)
        finally:
            process.kill()


@pytest.fixture(scope="module")
def url() -> Iterator[str]:
    """The address of a running command."""
    with run_ui() as (_, address):
        yield address


def test_the_pages_are_served_at_the_printed_address(url: str) -> None:
    with urlopen(url) as response:  # noqa: S310  loopback
        assert "12 nodes" in response.read().decode()
        assert response.headers["x-frame-options"] == "DENY"


def test_a_page_shows_the_command_that_prints_the_same(url: str) -> None:
    with urlopen(f"{url}pods/batch/month-end") as response:  # noqa: S310  loopback
        assert f"extender explain -f {DEMO} --override batch/month-end" in response.read().decode()


def test_a_request_that_names_another_host_is_rejected(url: str) -> None:
    with pytest.raises(HTTPError) as caught:
        urlopen(Request(url, headers={"Host": "evil.example"}))  # noqa: S310  loopback
    assert caught.value.code == 421
    caught.value.close()


def test_a_used_port_is_one_line_that_names_the_flag(extender: RunExtender) -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = str(listener.getsockname()[1])
        status, out, err = extender("ui", "-f", str(ROOT / DEMO), "--port", port, "--no-browser")
    assert (status, out) == (1, "")
    assert err.endswith(
        f"failed to listen on 127.0.0.1:{port}: address already in use; choose another port with --port\n"
    )


def test_a_missing_file_is_one_line(extender: RunExtender) -> None:
    status, out, err = extender("ui", "-f", "missing.json", "--no-browser")
    assert (status, out) == (2, "")
    assert err == "extender: missing.json: no such file; check the path, or write - to read standard input\n"


def test_without_a_file_and_a_cluster_is_one_line(extender: RunExtender, tmp_path: Path) -> None:
    status, out, err = extender("ui", "--kubeconfig", str(tmp_path / "none"), "--no-browser")
    assert (status, out) == (2, "")
    assert "kubeconfig" in err
    assert err.count("\n") == 1


def test_a_live_cluster_is_shown_with_the_options_that_select_it(tmp_path: Path) -> None:
    """The API server is the fake one, and the pods of its cluster are on the pages."""
    with run_fake_cluster(tmp_path) as kubeconfig:
        command = [sys.executable, "-m", "extender", "ui", "--kubeconfig", str(kubeconfig), "--port", "0"]
        with subprocess.Popen([*command, "--no-browser"], cwd=ROOT, stdout=subprocess.PIPE, text=True) as process:
            try:
                assert process.stdout is not None
                address = process.stdout.readline().split()[-1]
                with urlopen(f"{address}pods/default/web") as response:  # noqa: S310  loopback
                    html = response.read().decode()
            finally:
                process.terminate()  # also after a failure, which would otherwise wait for the process
    assert "fits on none of 1 node: 1 node has too little cpu" in html
    assert f"extender explain --kubeconfig {shlex.quote(str(kubeconfig))} default/web" in unescape(html)


@contextmanager
def run_fake_cluster(folder: Path) -> Iterator[Path]:
    """Serve a node and a pod that waits inside the block, in another thread; return the kubeconfig."""
    node = {
        "apiVersion": "v1", "kind": "Node", "metadata": {"name": "n1"},
        "status": {"allocatable": {"cpu": "1", "pods": "10"}, "capacity": {"cpu": "1", "pods": "10"}},
    }  # fmt: skip
    pod = {
        "apiVersion": "v1", "kind": "Pod", "metadata": {"name": "web", "namespace": "default"},
        "spec": {"containers": [{"name": "a", "image": "a", "resources": {"requests": {"cpu": "2"}}}]},
    }  # fmt: skip
    started, stopping = Event(), Event()

    async def serve() -> None:
        async with FakeApiServer() as server:
            server.api.create_from_manifest(node)
            server.api.create_from_manifest(pod)
            (folder / "kubeconfig").write_text(server.kubeconfig())
            started.set()
            await asyncio.to_thread(stopping.wait)

    thread = Thread(target=asyncio.run, args=(serve(),))
    thread.start()
    try:
        assert started.wait(60)
        yield folder / "kubeconfig"
    finally:
        stopping.set()
        thread.join()


def test_an_invalid_port_is_rejected(extender: RunExtender) -> None:
    assert extender("ui", "-f", str(ROOT / DEMO), "--port", "65536", "--no-browser")[0] == 2


def test_a_signal_ends_the_command_without_an_error() -> None:
    with run_ui() as (process, _):
        process.send_signal(signal.SIGINT)
        assert process.wait(30) == 0
        assert process.stderr is not None
        assert process.stderr.read() == ""
