"""An HTTP server on loopback that answers as a test tells it to, and what it was asked."""

import asyncio
import json
import ssl
from collections import defaultdict, deque
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from types import TracebackType
from typing import Any, Self
from urllib.parse import parse_qsl, urlsplit

import msgspec

from extender.client.credentials import Credentials
from extender.client.kubeconfig import Place
from extender.client.pacing import Chance
from extender.client.transport import Transport
from extender.config.model import ClientConnection
from tests.unit.client.virtual_time import here

CUT = object()
"""In a stream: the connection is reset. As an answer: it is reset before any answer."""

SILENCE = object()
"""In a stream: nothing more comes, and the connection stays open. As an answer: none ever comes."""


@dataclass(frozen=True)
class Asked:
    """A request that arrived."""

    method: str
    path: str
    query: Mapping[str, str]
    headers: Mapping[str, str]
    body: Any
    at: float
    client: str = ""


@dataclass(frozen=True)
class Reply:
    """An answer at once."""

    status: int = 200
    body: Any = field(default_factory=dict)
    headers: Mapping[str, str] = field(default_factory=dict)

    def encoded(self) -> bytes:
        return self.body if isinstance(self.body, bytes) else msgspec.json.encode(self.body)


@dataclass(frozen=True)
class Stream:
    """A chunked answer: bytes are sent, numbers waited (seconds), dicts sent as lines; then CUT, SILENCE or the end."""

    steps: Sequence[Any] = ()


Answer = Reply | Stream | object


class Server:
    """The server. Answers are used up in order, by `METHOD /path`; an asked one that is missing fails the test."""

    def __init__(self, handler: Callable[[Asked], Answer] | None = None, *, tls: ssl.SSLContext | None = None) -> None:
        """*handler* answers what nothing was scripted for."""
        self.handler = handler
        self.tls = tls
        self.asked: list[Asked] = []
        self.unexpected: list[str] = []
        self._answers: dict[str, deque[Answer]] = defaultdict(deque)
        self._server: asyncio.Server | None = None
        self._open: set[asyncio.StreamWriter] = set()
        self.port = 0

    @property
    def url(self) -> str:
        return f"{'https' if self.tls else 'http'}://127.0.0.1:{self.port}"

    def on(self, what: str, *answers: Answer) -> None:
        self._answers[what].extend(answers)

    def of(self, what: str) -> list[Asked]:
        """The requests of this kind so far."""
        return [asked for asked in self.asked if f"{asked.method} {asked.path}" == what]

    async def start(self) -> None:
        self._server = await asyncio.start_server(self._serve, "127.0.0.1", self.port, ssl=self.tls)
        self.port = self._server.sockets[0].getsockname()[1]

    async def stop(self) -> None:
        """Refuse connections and cut those that are open."""
        assert self._server is not None
        self._server.close()
        for writer in list(self._open):
            writer.transport.abort()
        await self._server.wait_closed()

    async def __aenter__(self) -> Self:
        await self.start()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, fault: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.stop()
        await asyncio.sleep(0)
        if kind is None:
            assert self.unexpected == []

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._open.add(writer)
        try:
            while await self._one(reader, writer):
                pass
        except (ConnectionError, asyncio.IncompleteReadError, asyncio.CancelledError):
            pass
        finally:
            self._open.discard(writer)
            writer.close()

    async def _one(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> bool:
        head = (await reader.readuntil(b"\r\n\r\n")).decode().split("\r\n")
        method, target, _ = head[0].split(" ")
        headers = {name.lower(): value.strip() for name, _, value in (line.partition(":") for line in head[1:] if line)}
        body = await reader.readexactly(int(headers.get("content-length", 0)))
        parts = urlsplit(target)
        query = dict(parse_qsl(parts.query))
        content = json.loads(body) if body else None
        self.asked.append(Asked(method, parts.path, query, headers, content, here().time(), _client(writer)))
        return await self._answer(self._next(self.asked[-1]), writer)

    def _next(self, asked: Asked) -> Answer:
        answers = self._answers[f"{asked.method} {asked.path}"]
        if answers:
            return answers.popleft()
        if self.handler is not None:
            return self.handler(asked)
        self.unexpected.append(f"{asked.method} {asked.path} {asked.query}")
        return Reply(418, {"message": "the test expects no such request"})

    async def _answer(self, answer: Answer, writer: asyncio.StreamWriter) -> bool:
        if answer is CUT:
            writer.transport.abort()
            return False
        if answer is SILENCE:
            await asyncio.Event().wait()
        if isinstance(answer, Reply):
            body = answer.encoded()
            extra = "".join(f"{name}: {value}\r\n" for name, value in answer.headers.items())
            head = f"HTTP/1.1 {answer.status} Status\r\nContent-Type: application/json\r\n{extra}"
            writer.write(f"{head}Content-Length: {len(body)}\r\n\r\n".encode() + body)
            await writer.drain()
            return True
        assert isinstance(answer, Stream)
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n")
        for step in answer.steps:
            if step is CUT:
                await writer.drain()
                writer.transport.abort()
                return False
            if step is SILENCE:
                await asyncio.Event().wait()
            if isinstance(step, (int, float)):
                await asyncio.sleep(step)
                continue
            data = step if isinstance(step, bytes) else json.dumps(step).encode() + b"\n"
            writer.write(f"{len(data):x}\r\n".encode() + data + b"\r\n")
            await writer.drain()
        writer.write(b"0\r\n\r\n")
        await writer.drain()
        return True


def _client(writer: asyncio.StreamWriter) -> str:
    """The common name in the client's certificate."""
    certificate = writer.get_extra_info("peercert") or {}
    subject = dict(pair for part in certificate.get("subject", ()) for pair in part)
    return str(subject.get("commonName", ""))


def middle() -> float:
    """Chance without chance."""
    return 0.0


@asynccontextmanager
async def talking(
    server: Server, *, qps: float = -1.0, burst: int = 0, chance: Chance = middle
) -> AsyncIterator[Transport]:
    """A transport to *server*, without a bound on its rate unless asked for."""
    credentials = Credentials(Place(master=server.url), here())
    await credentials.current()
    transport = Transport(credentials, ClientConnection(qps=qps, burst=burst), "extender/test", here(), chance=chance)
    try:
        yield transport
    finally:
        await transport.close()


def failure(code: int, reason: str = "", message: str = "no", headers: Mapping[str, str] | None = None) -> Reply:
    """An answer that says no, as the API server words it."""
    body = {"kind": "Status", "status": "Failure", "message": message, "reason": reason, "code": code}
    return Reply(code, body, headers or {})
