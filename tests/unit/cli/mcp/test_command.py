"""`extender mcp` as a process: the official client on stdio and over HTTP, and invalid options."""

import asyncio
import json
import re
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import httpx2
import pytest
from mcp import Client
from mcp.client.stdio import StdioServerParameters
from mcp.types import TextContent

from extender.cli.mcp import command
from tests.unit.planning.clusters import as_list, node, pod

Run = Callable[..., tuple[int, str, str]]

INITIALIZE = {
    "jsonrpc": "2.0",
    "id": 1,
    "method": "initialize",
    "params": {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "test", "version": "1"}},
}
HEADERS = {"Accept": "application/json, text/event-stream", "Content-Type": "application/json"}


@pytest.fixture
def cluster(tmp_path: Path) -> str:
    path = tmp_path / "cluster.json"
    path.write_text(as_list([node("n1", "2"), node("n2", "2"), pod("a", "1", on="n1"), pod("big", "4")]))
    return str(path)


@pytest.fixture
def http_url(cluster: str) -> Iterator[str]:
    arguments = [sys.executable, "-m", "extender", "mcp", "-f", cluster, "--http", "--port", "0"]
    with subprocess.Popen(arguments, stderr=subprocess.PIPE, text=True) as process:
        try:
            assert process.stderr is not None
            line = process.stderr.readline()
            match = re.fullmatch(r"extender: MCP at (http://127\.0\.0\.1:\d+/mcp)\n", line)
            assert match is not None, line
            yield match.group(1)
        finally:
            process.terminate()


@pytest.fixture
def stdio_server(cluster: str) -> Iterator[subprocess.Popen[bytes]]:
    """Start a server on stdio that has answered its first request."""
    arguments = [sys.executable, "-m", "extender", "mcp", "-f", cluster]
    with subprocess.Popen(arguments, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        try:
            assert process.stdin is not None
            assert process.stdout is not None
            send(process, INITIALIZE)
            assert b'"serverInfo"' in process.stdout.readline()
            yield process
        finally:
            process.kill()


def send(process: subprocess.Popen[bytes], *messages: dict[str, Any]) -> None:
    assert process.stdin is not None
    process.stdin.writelines(json.dumps(message).encode() + b"\n" for message in messages)
    process.stdin.flush()


async def ask(client: Client) -> tuple[int, str, str]:
    tools = await client.list_tools()
    waiting = await client.call_tool("why_waiting", {"pod": "big"})
    drain = await client.call_tool("what_if", {"drain": ["n1"]})
    waiting_text, drain_text = waiting.content[0], drain.content[0]
    assert isinstance(waiting_text, TextContent)
    assert isinstance(drain_text, TextContent)
    return len(tools.tools), waiting_text.text, drain_text.text


def check(answers: tuple[int, str, str]) -> None:
    count, waiting, drain = answers
    assert count == 6
    assert "InsufficientCPU (2 nodes)" in waiting
    assert "default/a" in drain


def test_a_client_asks_on_stdio(cluster: str) -> None:
    async def main() -> tuple[int, str, str]:
        server = StdioServerParameters(command=sys.executable, args=["-m", "extender", "mcp", "-f", cluster])
        async with Client(server) as client:
            return await ask(client)

    check(asyncio.run(main()))


def test_ctrl_c_ends_a_server_that_waits_for_its_input(stdio_server: subprocess.Popen[bytes]) -> None:
    stdio_server.send_signal(signal.SIGINT)
    assert stdio_server.wait(30) == -signal.SIGINT


def test_a_client_that_ends_without_its_answer_leaves_no_error(stdio_server: subprocess.Popen[bytes]) -> None:
    assert stdio_server.stdout is not None
    assert stdio_server.stderr is not None
    stdio_server.stdout.close()
    # The end of the input cancels the last requests, so the first one must be answered before it.
    send(stdio_server, *({"jsonrpc": "2.0", "id": number, "method": "ping"} for number in range(2, 102)))
    assert stdio_server.stdin is not None
    stdio_server.stdin.close()
    assert stdio_server.wait(30) == 1
    assert stdio_server.stderr.read() == b""


def test_a_client_asks_over_http(http_url: str) -> None:
    async def main() -> tuple[int, str, str]:
        async with Client(http_url) as client:
            return await ask(client)

    check(asyncio.run(main()))


def test_http_refuses_other_hosts_other_origins_and_large_requests(http_url: str) -> None:
    with httpx2.Client(headers=HEADERS, trust_env=False) as client:
        assert client.post(http_url, json=INITIALIZE).status_code == 200
        assert client.post(http_url, json=INITIALIZE, headers={"Host": "example.com"}).status_code == 421
        assert client.post(http_url, json=INITIALIZE, headers={"Origin": "http://example.com"}).status_code == 403
        assert client.post(http_url, content=b"x" * 300_000).status_code == 413
        assert client.post(http_url, json=INITIALIZE).status_code == 200


def test_http_refuses_the_endless_stream_of_get(http_url: str) -> None:
    with httpx2.Client(headers=HEADERS, trust_env=False) as client:
        for method in ("GET", "DELETE", "PUT"):
            response = client.request(method, http_url)
            assert (response.status_code, response.headers["Allow"]) == (405, "POST")


def test_a_missing_file_is_an_error_before_the_first_question(extender: Run) -> None:
    status, _, err = extender("mcp", "-f", "missing.json")
    assert (status, err.splitlines()) == (
        2,
        ["extender: missing.json: no such file; check the path, or write - to read standard input"],
    )


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--port", "70000"), "70000; want 0 to 65535"),
        (("--port", "9000"), "Invalid value for --port: needs --http"),
        (("--max-age", "-1"), "-1.0; want 0 or more seconds"),
    ],
)
def test_an_option_that_is_out_of_range_or_has_no_effect_is_an_error(
    extender: Run, cluster: str, arguments: tuple[str, str], message: str
) -> None:
    status, _, err = extender("mcp", "-f", cluster, *arguments)
    assert status == 2
    assert message in err


def test_without_the_package_mcp_the_command_says_how_to_install_it(
    extender: Run, cluster: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(name: str) -> None:
        raise ModuleNotFoundError("No module named 'mcp'", name="mcp.server")

    monkeypatch.setattr(command, "import_module", fail)
    status, _, err = extender("mcp", "-f", cluster)
    assert status == 2
    assert "pip install 'kube-scheduler-extender[mcp]'" in err
