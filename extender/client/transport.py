"""Requests to the API server over one session: paced, identified, repeated where that is safe, never waiting for ever.

A request is repeated (ten times at most) when the server says so, with 429 or 500 and above and a Retry-After; a GET
also when the connection broke. A 401 has the credentials read again, once. Nothing else is repeated here. Source:
client-go's rest.Request and with_retry.
"""

import asyncio
import errno
import os
import random
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any, Final

import aiohttp
from yarl import URL

from extender.basics.clock import Clock
from extender.client.connections import connector, give_up
from extender.client.credentials import Access, Credentials
from extender.client.errors import AnswerError, FencedError, UnreachableError, of_answer
from extender.client.pacing import Chance, bucket, retry_after
from extender.client.pieces import Pieces
from extender.config.model import ClientConnection

JSON: Final = "application/json"
MERGE_PATCH: Final = "application/merge-patch+json"
STRATEGIC_MERGE_PATCH: Final = "application/strategic-merge-patch+json"

MOST_TRIES: Final = 11
"""The first and ten more. Source: client-go's rest.Request."""

MOST_AT_ONCE: Final = 32
"""Requests under way at once, beside watches; with more, new connections cost the server more than they bring."""

CONNECT_SECONDS: Final = 10.0
CALL_SECONDS: Final = 30.0
"""How long one try may take from start to end unless the caller says otherwise."""

_READ_BYTES: Final = 2**20
"""What is read of an answer before anybody asks for it. A watch of nodes that is looked at a hundred times a second
would fall behind with the 64 KiB that are usual."""

_BROKEN_WAIT: Final = 1.0
_JITTER: Final = 0.25


@dataclass(slots=True)
class Try:
    """One try of a request, as it is told when it is over; a watch is when it begins.

    Attributes:
        method: as of the request.
        again: the request was sent before.
        waited: seconds, for our own rate; None: it was not held to that.
        sent: bytes of the body.
        received: bytes of the answer's body; None: it was not read to its end.
        code: the HTTP status; 0: no answer.
        seconds: it took.
    """

    method: str
    sent: int
    again: bool = False
    waited: float | None = None
    received: int | None = None
    code: int = 0
    seconds: float = 0.0


Observe = Callable[[Try], None]
"""Told of each try."""


def _nobody(one: Try) -> None:
    """Reports to nobody."""


def _always() -> bool:
    """No condition."""
    return True


@dataclass(frozen=True, slots=True)
class Request:
    """One request.

    Attributes:
        method: `GET`, `POST`, `PUT`, `PATCH` or `DELETE`.
        path: below the server's URL, with a slash in front, already escaped.
        query: parameters, not yet escaped.
        body: JSON, if any.
        content_type: of the body.
        seconds: one try may take so long.
        allowed: asked immediately before each try, after any wait; if it says no, nothing is sent.
    """

    method: str
    path: str
    query: Mapping[str, str] = field(default_factory=dict)
    body: bytes | None = None
    content_type: str = JSON
    seconds: float = CALL_SECONDS
    allowed: Callable[[], bool] = _always


class Transport:
    """One session with the API server. Use it in one event loop, and close it."""

    def __init__(
        self,
        credentials: Credentials,
        connection: ClientConnection,
        user_agent: str,
        clock: Clock,
        *,
        chance: Chance | None = None,
        observe: Observe = _nobody,
    ) -> None:
        """Opens nothing yet.

        Args:
            credentials: where the server is and who we are.
            connection: its `qps` and `burst` bound all requests but watches.
            user_agent: such as `extender/1.0 (linux/amd64) scheduler`.
            clock: for pacing.
            chance: numbers from 0 up to 1, which spread repeated requests.
            observe: told of each try.
        """
        self._credentials = credentials
        self._bucket = bucket(connection.qps, connection.burst)
        self._agent = user_agent
        self._clock = clock
        self._chance = chance or random.Random().random  # noqa: S311  spreads load, keeps no secret
        self._observe = observe
        self._turn = asyncio.Semaphore(MOST_AT_ONCE)
        self._session: aiohttp.ClientSession | None = None

    async def close(self) -> None:
        """Close all connections."""
        if self._session is not None:
            await self._session.close()
            self._session = None

    async def call(self, request: Request) -> bytes:
        """Send *request* and give the answer's body.

        Raises:
            ApiError: by its kind, see `errors`.
        """
        access = await self._credentials.current()
        renewed = False
        for further in range(MOST_TRIES - 1, -1, -1):
            one = Try(request.method, len(request.body or b""), further < MOST_TRIES - 1, await self._pace())
            try:
                async with self._turn:
                    if not request.allowed():
                        raise FencedError(f"{request.method} {request.path}: not sent, as it is no longer ours to send")
                    code, headers, body = await self._once(request, access, one)
            except UnreachableError as fault:
                # What a GET asks for can be asked again; a write may have been carried out.
                if request.method != "GET" or not fault.broken or not further:
                    raise
                await self._wait(_BROKEN_WAIT)
                continue
            if code < 300:
                return body
            if code == 401 and not renewed:
                renewed = True
                access = await self._credentials.refused(access)
                continue
            wait = retry_after(headers.get("Retry-After"), self._clock.now()) if code == 429 or code >= 500 else None
            if wait is None or not further:
                raise of_answer(code, body)
            await self._wait(wait)
        raise AssertionError("the last try returns or raises")

    async def _wait(self, seconds: float) -> None:
        """At least *seconds*; a little longer by chance, so that clients turned away together come back apart."""
        await asyncio.sleep(seconds * (1.0 + _JITTER * self._chance()))

    async def _pace(self) -> float:
        """Wait for our own rate; seconds."""
        if self._bucket is None:
            return 0.0
        wait = self._bucket.take(self._clock.monotonic())
        if wait > 0:
            try:
                await asyncio.sleep(wait)
            except asyncio.CancelledError:
                self._bucket.give_back()
                raise
        return wait

    async def _once(self, request: Request, access: Access, one: Try) -> tuple[int, Mapping[str, str], bytes]:
        timeout = aiohttp.ClientTimeout(total=request.seconds, sock_connect=min(CONNECT_SECONDS, request.seconds))
        async with self._sent(request, access, timeout, one) as answer:
            body = await answer.read()
            one.received = len(body)
            return answer.status, answer.headers, body

    @asynccontextmanager
    async def stream(self, request: Request, quiet: float) -> AsyncIterator[Pieces]:
        """The body of a successful answer, piece by piece, as long as it comes.

        Not paced and not repeated, but for a 401. Source: client-go's Request.Watch.

        Args:
            request: a watch; its `seconds` bound the wait for the answer's beginning.
            quiet: seconds without a byte after which the connection counts as dead.

        Raises:
            ApiError: the server refuses, or cannot be reached; UnreachableError also later, when the stream breaks.
        """
        access = await self._credentials.current()
        timeout = aiohttp.ClientTimeout(sock_connect=CONNECT_SECONDS, sock_read=quiet)
        for renewed in (False, True):
            one = Try(request.method, 0, again=renewed)
            async with self._sent(request, access, timeout, one, stream=True) as answer:
                if answer.status < 300:
                    yield Pieces(answer)
                    return
                if answer.status != 401 or renewed:
                    raise of_answer(answer.status, await answer.read())
            access = await self._credentials.refused(access)

    @asynccontextmanager
    async def _sent(
        self, request: Request, access: Access, timeout: aiohttp.ClientTimeout, one: Try, *, stream: bool = False
    ) -> AsyncIterator[aiohttp.ClientResponse]:
        """The answer to one try; every fault of the connection, also later while reading, in our own terms."""
        where = f"{request.method} {request.path}"
        began = self._clock.monotonic()

        def over() -> None:
            one.seconds = self._clock.monotonic() - began
            self._observe(one)

        try:
            async with self._open().request(
                request.method,
                # Paths come escaped; yarl would take an escaped slash apart.
                URL(access.identity.server + request.path, encoded=True).extend_query(request.query),
                data=request.body,
                headers=self._headers(request, access),
                timeout=timeout,
                read_bufsize=_READ_BYTES,
                **_reaching(access),
            ) as answer:
                one.code = answer.status
                if stream:
                    over()
                try:
                    yield answer
                finally:
                    give_up(answer)
        except (aiohttp.ClientConnectorError, aiohttp.ConnectionTimeoutError, aiohttp.ClientHttpProxyError) as fault:
            raise UnreachableError(f"cannot connect to {access.identity.server}: {_why(fault)}", sent=False) from fault
        except aiohttp.ClientPayloadError as fault:
            raise UnreachableError(f"{where}: the answer was cut short", sent=True, broken=True) from fault
        except aiohttp.InvalidURL as fault:
            raise UnreachableError(f"{access.identity.server} is not a URL of an API server", sent=False) from fault
        except TimeoutError as fault:
            raise UnreachableError(f"{where}: no answer in time", sent=True) from fault
        except aiohttp.ClientResponseError as fault:
            raise AnswerError(f"{where}: not an HTTP answer: {fault.message}") from fault
        except (aiohttp.ClientError, OSError) as fault:
            raise UnreachableError(f"{where}: {fault}", sent=True, broken=True) from fault
        finally:
            if not (stream and one.code):
                over()

    def _headers(self, request: Request, access: Access) -> list[tuple[str, str]]:
        headers = [
            *access.identity.headers,
            ("Accept", JSON),
            # Bodies are read as they are: nothing to unpack, nothing that unpacks to more than was sent.
            ("Accept-Encoding", "identity"),
            ("User-Agent", self._agent),
        ]
        if request.body is not None:
            headers.append(("Content-Type", request.content_type))
        return headers

    def _open(self) -> aiohttp.ClientSession:
        if self._session is None:
            self._session = aiohttp.ClientSession(
                connector=connector(), cookie_jar=aiohttp.DummyCookieJar(), auto_decompress=False, read_bufsize=2**18
            )
        return self._session


def _why(fault: aiohttp.ClientError | TimeoutError) -> str:
    """What went wrong with a connection, without aiohttp's own objects in it."""
    if isinstance(fault, aiohttp.ClientConnectorCertificateError):
        return str(fault.certificate_error)
    if isinstance(fault, aiohttp.ClientConnectorError):
        known = fault.os_error.errno in errno.errorcode  # what the resolver says has numbers of its own
        return os.strerror(fault.os_error.errno or 0).lower() if known else str(fault.os_error)
    return "no answer in time" if isinstance(fault, TimeoutError) else str(fault)


def _reaching(access: Access) -> dict[str, Any]:
    """How to reach the server, as aiohttp takes it. A redirect is not followed: it would carry our token elsewhere."""
    identity = access.identity
    found: dict[str, Any] = {"allow_redirects": False}
    if access.tls is not None:
        found["ssl"] = access.tls
    if identity.server_name:
        found["server_hostname"] = identity.server_name
    if identity.proxy:
        found["proxy"] = identity.proxy
    return found
