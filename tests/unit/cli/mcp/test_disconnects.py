"""Requests whose client disconnects."""

import asyncio
import json
from typing import Any

import pytest
from starlette.types import Message, Receive, Scope, Send

from extender.cli.mcp import cluster_questions
from extender.cli.mcp.disconnects import DisconnectMiddleware
from extender.cli.mcp.loaded_cluster import LoadedCluster
from extender.cli.mcp.server import make_http_app, make_server
from tests.unit.cli.mcp.test_server import CLUSTER, make_source

SCOPE: dict[str, Any] = {"type": "http", "method": "POST", "path": "/mcp", "query_string": b""}
DISCONNECT: Message = {"type": "http.disconnect"}


def make_receive(*messages: Message, connected: asyncio.Event | None = None) -> Receive:
    """Return a receive function for *messages* and a disconnect, which comes when *connected* is set."""
    iterator = iter(messages)

    async def receive() -> Message:
        message = next(iterator, DISCONNECT)
        if message is DISCONNECT and connected is not None:
            await connected.wait()
        return message

    return receive


async def ignore(_: Message) -> None:
    pass


PARTS = {
    "while it waits for the answer": [{"type": "http.request", "body": b"{}"}],
    "before its body is complete": [{"type": "http.request", "body": b"{", "more_body": True}],
    "before its body": [],
}


@pytest.mark.parametrize("parts", PARTS.values(), ids=PARTS)
def test_a_request_ends_when_its_client_disconnects(parts: list[Message]) -> None:
    async def app(_scope: Scope, receive: Receive, _send: Send) -> None:
        while (await receive()).get("more_body"):
            pass
        await asyncio.Event().wait()

    asyncio.run(asyncio.wait_for(DisconnectMiddleware(app)(SCOPE, make_receive(*parts), ignore), 10))


def test_a_request_of_a_connected_client_is_answered() -> None:
    sent: list[Message] = []

    async def app(_scope: Scope, receive: Receive, send: Send) -> None:
        await send(await receive())

    async def send(message: Message) -> None:
        sent.append(message)

    async def main() -> None:
        receive = make_receive({"type": "http.request", "body": b"{}"}, connected=asyncio.Event())
        await asyncio.wait_for(DisconnectMiddleware(app)(SCOPE, receive, send), 10)

    asyncio.run(main())
    assert sent == [{"type": "http.request", "body": b"{}"}]


def test_a_question_ends_when_its_client_disconnects(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without sessions, there is no other way to cancel it, and other questions would wait for its end."""
    started, ended = asyncio.Event(), list[bool]()

    async def main() -> None:
        loop = asyncio.get_running_loop()

        def ask_without_end(loaded: LoadedCluster) -> str:
            loop.call_soon_threadsafe(started.set)
            try:
                for _ in range(10_000_000):
                    loaded.check_cancelled()
            except BaseException:
                ended.append(True)
                raise
            return ""

        monkeypatch.setattr(cluster_questions, "answer_summary", ask_without_end)
        params = {"name": "cluster_summary", "arguments": {}}
        body = json.dumps({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params}).encode()
        headers = {"host": "h:1", "content-type": "application/json", "accept": "application/json, text/event-stream"}
        scope = {**SCOPE, "headers": [(name.encode(), value.encode()) for name, value in headers.items()]}
        server = make_server(make_source(CLUSTER))
        app = make_http_app(server, ["h:1"])
        async with server.session_manager.run():
            receive = make_receive({"type": "http.request", "body": body}, connected=started)
            await asyncio.wait_for(app(scope, receive, ignore), 30)

    asyncio.run(main())
    assert ended == [True]
