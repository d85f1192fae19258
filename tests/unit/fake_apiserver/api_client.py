"""An HTTP client for tests of the fake API server."""

import asyncio
import json
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any

import aiohttp

from extender.fake_apiserver.server import FakeApiServer
from tests.unit.fake_apiserver.builders import ManualClock, Object

PODS = "/api/v1/namespaces/default/pods"


@dataclass
class HttpResponse:
    """The HTTP status, the headers, and the body as parsed JSON."""

    code: int
    headers: Any
    body: Any


@dataclass
class Client:
    """An HTTP client of one server."""

    session: aiohttp.ClientSession
    url: str

    async def request(
        self, method: str, path: str, body: Any = None, media_type: str = "application/json", **headers: str
    ) -> HttpResponse:
        data = None if body is None else body if isinstance(body, bytes) else json.dumps(body).encode()
        all_headers = {"Content-Type": media_type, **headers}
        async with self.session.request(method, self.url + path, data=data, headers=all_headers) as response:
            raw = await response.read()
            return HttpResponse(response.status, response.headers, json.loads(raw) if raw.startswith(b"{") else raw)

    async def get(self, path: str, **headers: str) -> Any:
        return (await self.request("GET", path, **headers)).body

    @asynccontextmanager
    async def watch(self, path: str, **headers: str) -> AsyncIterator[AsyncIterator[Object]]:
        """Yield the events of a watch."""
        async with self.session.get(self.url + path, headers=headers) as response:
            yield (json.loads(line) async for line in response.content)

    async def watch_all(self, path: str, **headers: str) -> list[Object]:
        """Return all events of a watch that ends."""
        async with self.watch(path, **headers) as events:
            return [event async for event in events]


def run(
    test: Callable[[Any, Client], Awaitable[None]],
    timeout: float = 10,
    server_type: type[FakeApiServer] = FakeApiServer,
    **options: Any,
) -> None:
    """Run *test* with a server of its own, for at most *timeout* seconds."""

    async def body() -> None:
        async with server_type(**{"clock": ManualClock(), **options}) as server, aiohttp.ClientSession() as session:
            await asyncio.wait_for(test(server, Client(session, server.url)), timeout)

    asyncio.run(body())


def event_summary(event: Object) -> tuple[str, str]:
    """Return the type of an event and the name of its object."""
    return event["type"], event["object"]["metadata"].get("name", "")
