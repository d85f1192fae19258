"""What the sandbox's tests share: a clock that is set by hand, small manifests, and a client that speaks HTTP."""

import asyncio
import json
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any

import aiohttp

from extender.sandbox.api import Api
from extender.sandbox.server import Sandbox

Object = dict[str, Any]

PODS = "/api/v1/namespaces/default/pods"
START = 1_700_000_000.0
"""2023-11-14T22:13:20Z."""


@dataclass
class HandClock:
    """A clock that stands still until it is set."""

    seconds: float = START

    def monotonic(self) -> float:
        return self.seconds

    def now(self) -> float:
        return self.seconds


def an_api() -> Api:
    """An API whose clock stands at START."""
    return Api(clock=HandClock())


def a_pod(name: str = "web", **spec: Any) -> Object:
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name},
        "spec": {"containers": [{"name": "c", "image": "app:1"}], **spec},
    }


def a_node(name: str = "n1") -> Object:
    status = {"capacity": {"cpu": "4", "memory": "8Gi", "pods": "110"}}
    return {"apiVersion": "v1", "kind": "Node", "metadata": {"name": name}, "status": status}


def a_binding(node: str, name: str = "web", **meta: str) -> Object:
    return {
        "apiVersion": "v1",
        "kind": "Binding",
        "metadata": {"name": name, **meta},
        "target": {"kind": "Node", "name": node},
    }


@dataclass
class Answer:
    """An answer: the status of HTTP, the headers, and the body as parsed JSON."""

    code: int
    headers: Any
    body: Any


@dataclass
class Client:
    """Sends requests to one sandbox."""

    session: aiohttp.ClientSession
    url: str

    async def ask(
        self, method: str, path: str, body: Any = None, media: str = "application/json", **headers: str
    ) -> Answer:
        data = None if body is None else body if isinstance(body, bytes) else json.dumps(body).encode()
        sent = {"Content-Type": media, **headers}
        async with self.session.request(method, self.url + path, data=data, headers=sent) as answer:
            text = await answer.read()
            return Answer(answer.status, answer.headers, json.loads(text) if text.startswith(b"{") else text)

    async def get(self, path: str, **headers: str) -> Any:
        return (await self.ask("GET", path, **headers)).body

    @asynccontextmanager
    async def watch(self, path: str, **headers: str) -> AsyncIterator[AsyncIterator[Object]]:
        """The events of a watch, one by one."""
        async with self.session.get(self.url + path, headers=headers) as answer:
            yield (json.loads(line) async for line in answer.content)

    async def watched(self, path: str, **headers: str) -> list[Object]:
        """All events of a watch that ends."""
        async with self.watch(path, **headers) as events:
            return [event async for event in events]


def run(scenario: Callable[[Sandbox, Client], Awaitable[None]], patience: float = 10, **options: Any) -> None:
    """Runs a test against a sandbox of its own; it may take *patience* seconds at most."""

    async def whole() -> None:
        async with Sandbox(**{"clock": HandClock(), **options}) as sandbox, aiohttp.ClientSession() as session:
            await asyncio.wait_for(scenario(sandbox, Client(session, sandbox.url)), patience)

    asyncio.run(whole())


def told(event: Object) -> tuple[str, str]:
    """The type of an event and the name of its object."""
    return event["type"], event["object"]["metadata"].get("name", "")
