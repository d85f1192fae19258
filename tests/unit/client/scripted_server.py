"""An HTTP server on loopback with scripted responses, which records its requests."""

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
from extender.client.kubeconfig import CredentialSource
from extender.client.rate_limit import Jitter
from extender.client.transport import Transport
from extender.config.model import ClientConnection
from tests.controlplane.process import free_ports
from tests.unit.client.virtual_time import current_loop

CUT = object()
"""In a stream: reset the connection. As a response: reset it before any response."""

SILENCE = object()
"""In a stream: send nothing more, and leave the connection open. As a response: never respond."""


@dataclass(frozen=True)
class ReceivedRequest:
    """A received request."""

    method: str
    path: str
    query: Mapping[str, str]
    headers: Mapping[str, str]
    body: Any
    at: float
    client: str = ""
    client_port: int = 0


@dataclass(frozen=True)
class Reply:
    """A response sent at once."""

    status: int = 200
    body: Any = field(default_factory=dict)
    headers: Mapping[str, str] = field(default_factory=dict)

    def encoded(self) -> bytes:
        return self.body if isinstance(self.body, bytes) else msgspec.json.encode(self.body)


@dataclass(frozen=True)
class Stream:
    """A chunked response: bytes are sent, numbers are delays (seconds), dicts are lines; CUT or SILENCE end it."""

    steps: Sequence[Any] = ()


ScriptedResponse = Reply | Stream | object


class ScriptedServer:
    """The server. Responses are used in order, by `METHOD /path`; a request without one fails the test.

    Attributes:
        requests: the requests, without those of the next attribute.
        resource_version: the resource version in the response to a list of one object, which needs no script.
    """

    def __init__(
        self, handler: Callable[[ReceivedRequest], ScriptedResponse] | None = None, *, tls: ssl.SSLContext | None = None
    ) -> None:
        """*handler* responds to requests without a scripted response."""
        self.handler = handler
        self.tls = tls
        self.requests: list[ReceivedRequest] = []
        self.unexpected: list[str] = []
        self.resource_version = str(2**62)
        self._responses: dict[str, deque[ScriptedResponse]] = defaultdict(deque)
        self._server: asyncio.Server | None = None
        self._open: set[asyncio.StreamWriter] = set()
        self.port = 0

    @property
    def url(self) -> str:
        return f"{'https' if self.tls else 'http'}://127.0.0.1:{self.port}"

    def respond(self, request_line: str, *responses: ScriptedResponse) -> None:
        self._responses[request_line].extend(responses)

    def requests_to(self, request_line: str) -> list[ReceivedRequest]:
        """Return the requests so far with this method and path."""
        return [request for request in self.requests if f"{request.method} {request.path}" == request_line]

    async def start(self) -> None:
        """Listen, after a stop on the same port: it is not one that the system gives to others in the meantime."""
        self.port = self.port or free_ports(1)[0]
        self._server = await asyncio.start_server(self._serve, "127.0.0.1", self.port, ssl=self.tls)

    async def stop(self) -> None:
        """Close the listener and abort open connections."""
        assert self._server is not None
        self._server.close()
        for writer in list(self._open):
            writer.transport.abort()
        await self._server.wait_closed()

    async def __aenter__(self) -> Self:
        await self.start()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.stop()
        await asyncio.sleep(0)
        if kind is None:
            assert self.unexpected == []

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._open.add(writer)
        try:
            while await self._serve_request(reader, writer):
                pass
        except (ConnectionError, asyncio.IncompleteReadError, asyncio.CancelledError):
            pass
        finally:
            self._open.discard(writer)
            writer.close()

    async def _serve_request(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> bool:
        head = (await reader.readuntil(b"\r\n\r\n")).decode().split("\r\n")
        method, target, _ = head[0].split(" ")
        headers = {name.lower(): value.strip() for name, _, value in (line.partition(":") for line in head[1:] if line)}
        body = await reader.readexactly(int(headers.get("content-length", 0)))
        url = urlsplit(target)
        query = dict(parse_qsl(url.query))
        content = json.loads(body) if body else None
        if query.get("limit") == "1":
            return await self._send_response(
                Reply(body={"metadata": {"resourceVersion": self.resource_version}}), writer
            )
        client, client_port = _get_client_name(writer), writer.get_extra_info("peername")[1]
        self.requests.append(
            ReceivedRequest(method, url.path, query, headers, content, current_loop().time(), client, client_port)
        )
        return await self._send_response(self._take_response(self.requests[-1]), writer)

    def _take_response(self, request: ReceivedRequest) -> ScriptedResponse:
        responses = self._responses[f"{request.method} {request.path}"]
        if responses:
            return responses.popleft()
        if self.handler is not None:
            return self.handler(request)
        self.unexpected.append(f"{request.method} {request.path} {request.query}")
        return Reply(418, {"message": "the test expects no such request"})

    async def _send_response(self, response: ScriptedResponse, writer: asyncio.StreamWriter) -> bool:
        if response is CUT:
            writer.transport.abort()
            return False
        if response is SILENCE:
            await asyncio.Event().wait()
        if isinstance(response, Reply):
            body = response.encoded()
            extra = "".join(f"{name}: {value}\r\n" for name, value in response.headers.items())
            head = f"HTTP/1.1 {response.status} Status\r\nContent-Type: application/json\r\n{extra}"
            writer.write(f"{head}Content-Length: {len(body)}\r\n\r\n".encode() + body)
            await writer.drain()
            return True
        assert isinstance(response, Stream)
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n")
        for step in response.steps:
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


def _get_client_name(writer: asyncio.StreamWriter) -> str:
    """Return the common name in the client's certificate."""
    certificate = writer.get_extra_info("peercert") or {}
    subject = dict(pair for part in certificate.get("subject", ()) for pair in part)
    return str(subject.get("commonName", ""))


def no_jitter() -> float:
    """Return 0: no jitter."""
    return 0.0


@asynccontextmanager
async def open_transport(
    server: ScriptedServer, *, qps: float = -1.0, burst: int = 0, jitter: Jitter = no_jitter
) -> AsyncIterator[Transport]:
    """A transport to *server*, by default without a rate limit."""
    credentials = Credentials(CredentialSource(master=server.url), current_loop())
    await credentials.get_current_config()
    transport = Transport(credentials, ClientConnection(qps=qps, burst=burst), "extender/test", jitter=jitter)
    try:
        yield transport
    finally:
        await transport.close()


def failure_reply(code: int, reason: str = "", message: str = "no", headers: Mapping[str, str] | None = None) -> Reply:
    """Return a failure response with a metav1.Status."""
    body = {"kind": "Status", "status": "Failure", "message": message, "reason": reason, "code": code}
    return Reply(code, body, headers or {})
