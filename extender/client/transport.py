"""Send requests to the API server, with rate limits, credentials, timeouts and safe retries.

A request is retried at most ten times. It is retried if the server returns 429, or 500 and above, with a Retry-After
header. A GET is also retried if the connection broke. After the first 401, the request is retried with credentials that
are loaded again. Nothing else is retried here.

Source: client-go/rest/request.go, Request.request; client-go/rest/with_retry.go, withRetry.IsNextRetry (1.36).
"""

import asyncio
import platform
import random
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any, Final

import aiohttp
from aiohttp.abc import AbstractStreamWriter
from yarl import URL

from extender import __version__
from extender.client.connections import (
    PendingRequests,
    RecoverySignal,
    abort_unread,
    describe_connection_error,
    is_true_soon,
    open_session,
    read_body,
)
from extender.client.credentials import ActiveConfig, Credentials
from extender.client.errors import (
    ApiError,
    FencedError,
    InvalidResponseError,
    UnreachableError,
    make_error_from_response,
)
from extender.client.rate_limit import Jitter, make_token_bucket, parse_retry_after
from extender.config.model import ClientConnection
from extender.event_loop.turn_budget import wait_for_turn

USER_AGENT: Final = f"extender/{__version__} ({platform.system().lower()}/{platform.machine()})"
JSON: Final = "application/json"
MERGE_PATCH: Final = "application/merge-patch+json"
STRATEGIC_MERGE_PATCH: Final = "application/strategic-merge-patch+json"

MAX_ATTEMPTS: Final = 11
"""The first attempt and ten retries. Source: client-go/rest/request.go, NewRequest (1.36)."""

CONNECT_TIMEOUT: Final = 10.0
CALL_TIMEOUT: Final = 30.0
"""Default timeout of one attempt in seconds."""

_READ_BUFFER_BYTES: Final = 2**20
"""Read buffer of a response. With the default of 64 KiB, a watch of nodes in a large cluster would fall behind."""

MAX_RESPONSE_BYTES: Final = 16 << 20
"""Limit of a response that is one object; etcd's objects have 1.5 MiB at most."""

_MAX_BLOCKED_SECONDS: Final = 13.0
"""Limit of the age of a request that is sent after it was not allowed. A lease is usually valid for 15 seconds."""

_RECONNECT_SECONDS: Final = 1.0
_JITTER_FACTOR: Final = 0.25


@dataclass(slots=True)
class RequestAttempt:
    """One attempt of a request. It is reported when it ends; a watch is reported when it starts.

    Attributes:
        is_retry: whether the request was sent before.
        rate_limit_wait: the delay by the rate limit in seconds; None: no rate limit applies.
        response_bytes: the size of the response's body; None: it was not read to the end.
        code: the HTTP status; 0: no response.
    """

    method: str
    request_bytes: int
    is_retry: bool = False
    rate_limit_wait: float | None = None
    response_bytes: int | None = None
    code: int = 0
    seconds: float = 0.0


AttemptObserver = Callable[[RequestAttempt], None]
"""Called after each attempt."""


@dataclass(frozen=True, slots=True)
class Request:
    """One request.

    Attributes:
        method: `GET`, `POST`, `PUT`, `PATCH` or `DELETE`.
        path: the path relative to the server's URL, with a leading slash, escaped.
        query: the query parameters, not escaped.
        body: JSON, if any.
        timeout: the timeout of one attempt in seconds.
        is_allowed: the condition checked before each attempt, and again when its body is written; if it is false,
            nothing is sent.
        max_response_bytes: the limit of the response's body.
    """

    method: str
    path: str
    query: Mapping[str, str] = field(default_factory=dict)
    body: bytes | None = None
    content_type: str = JSON
    timeout: float = CALL_TIMEOUT
    is_allowed: Callable[[], bool] = lambda: True
    max_response_bytes: int = MAX_RESPONSE_BYTES


class _FencedBody(aiohttp.BytesPayload):
    """A body that is only written while `is_allowed` returns True.

    Between the call of aiohttp and the write, a connection may be opened, the event loop may run other tasks, or the
    process may be stopped. aiohttp sends the headers together with the body.
    """

    def __init__(self, request: Request) -> None:
        super().__init__(request.body or b"")
        self._request = request

    async def write_with_length(self, writer: AbstractStreamWriter, content_length: int | None) -> None:
        _check_allowed(self._request)
        await super().write_with_length(writer, content_length)


def _check_allowed(request: Request) -> None:
    if not request.is_allowed():
        raise FencedError(f"{request.method} {request.path}: not sent, because it is no longer allowed")


class Transport:
    """Connections to the API server. Use them in one event loop, and close them.

    Watches have connections of their own. The buffers of a TLS connection grow to the largest read and never shrink,
    and a watch has the largest reads. If requests and watches took turns, the buffers of all connections would grow.

    Attributes:
        recovery: the signal that the API server answers again.
        pending: limits and counts the requests, watches not included.
    """

    def __init__(
        self,
        credentials: Credentials,
        connection: ClientConnection,
        user_agent: str = USER_AGENT,
        *,
        jitter: Jitter | None = None,
        observe: AttemptObserver = lambda _: None,
        recovery: RecoverySignal | None = None,
    ) -> None:
        """Create the transport without opening a connection.

        Args:
            credentials: the server's address and our credentials.
            connection: the settings; `qps` and `burst` limit the rate of all requests except watches.
            user_agent: the User-Agent header.
            jitter: the source of random numbers from 0 up to 1, which spread retries.
            observe: the callback after each attempt.
            recovery: the signal that the API server answers again; None: a new one.
        """
        self.recovery, self.pending = recovery or RecoverySignal(), PendingRequests()
        self._credentials = credentials
        self._bucket = make_token_bucket(connection.qps, connection.burst)
        self._user_agent = user_agent
        self._clock = credentials.clock
        self._jitter = jitter or random.Random().random  # noqa: S311  spreads load, keeps no secret
        self._observe = observe
        self._sessions: dict[bool, aiohttp.ClientSession] = {}  # by whether it is for watches

    async def close(self) -> None:
        """Close all connections."""
        while self._sessions:
            _, session = self._sessions.popitem()
            await session.close()

    async def call(self, request: Request) -> bytes:
        """Send *request* and return the response's body.

        A request that is not allowed is sent if it is allowed within a second. A scheduling attempt may block the event
        loop for longer than the deadline for a renewal of the lease, and the renewal follows the attempt at once. A
        request that has waited for longer is dropped, because the process was stopped meanwhile, for example.

        Raises:
            ApiError: see `errors` for its subclasses.
        """
        loop = asyncio.get_running_loop()
        start_time = loop.time()
        with self.pending.include_request():
            try:
                return await self._call(request)
            except FencedError:  # it was not sent
                if loop.time() - start_time > _MAX_BLOCKED_SECONDS or not await is_true_soon(request.is_allowed):
                    raise
                return await self._call(request)

    async def _call(self, request: Request) -> bytes:
        active_config = await self._credentials.get_current_config()
        has_new_credentials = False
        for remaining_attempts in range(MAX_ATTEMPTS - 1, -1, -1):
            attempt = RequestAttempt(
                request.method,
                len(request.body or b""),
                remaining_attempts < MAX_ATTEMPTS - 1,
                await self._wait_for_rate_limit(),
            )
            try:
                async with self.pending.wait_for_connection(request.method, request.path):
                    await wait_for_turn()
                    _check_allowed(request)
                    code, headers, body = await self._send_once(request, active_config, attempt)
            except UnreachableError as error:
                # A GET can be repeated; a write may have been executed.
                if request.method != "GET" or not error.connection_broken or not remaining_attempts:
                    raise
                await self._sleep_with_jitter(_RECONNECT_SECONDS)
                continue
            if code < 300:
                return body
            if code == 401 and not has_new_credentials and remaining_attempts:
                has_new_credentials = True
                active_config = await self._credentials.replace_rejected(active_config)
                continue
            wait = self._get_retry_after(code, headers)
            if wait is None or not remaining_attempts:
                raise make_error_from_response(code, body)
            await self._sleep_with_jitter(wait)
        raise AssertionError("the last attempt returns or raises")

    def _get_retry_after(self, code: int, headers: Mapping[str, str]) -> float | None:
        """Return the seconds after which the request may be repeated, or None."""
        return parse_retry_after(headers.get("Retry-After"), self._clock.now()) if code == 429 or code >= 500 else None

    async def _sleep_with_jitter(self, seconds: float) -> None:
        """Sleep for *seconds* plus a random part, so that clients rejected together retry at different times."""
        with self.pending.exclude_request():
            await asyncio.sleep(seconds * (1.0 + _JITTER_FACTOR * self._jitter()))

    async def _wait_for_rate_limit(self) -> float:
        """Wait for our rate limit; return the seconds waited."""
        if self._bucket is None:
            return 0.0
        wait = self._bucket.reserve(self._clock.monotonic())
        if wait > 0:
            try:
                await asyncio.sleep(wait)
            except asyncio.CancelledError:
                self._bucket.cancel()
                raise
        return wait

    async def _send_once(
        self, request: Request, active_config: ActiveConfig, attempt: RequestAttempt
    ) -> tuple[int, Mapping[str, str], bytes]:
        timeout = aiohttp.ClientTimeout(total=request.timeout, sock_connect=min(CONNECT_TIMEOUT, request.timeout))
        async with self._open_response(request, active_config, timeout, attempt) as response:
            await wait_for_turn()
            body = await read_body(response, request.max_response_bytes)
            attempt.response_bytes = len(body)
            return response.status, response.headers, body

    @asynccontextmanager
    async def stream(self, request: Request, idle_timeout: float) -> AsyncIterator[aiohttp.ClientResponse]:
        """Open a watch, and yield its response; `content.iter_any()` yields the chunks of the body as they arrive.

        Watches have no rate limit and are not retried, except after a 401. The caller retries after the `retry_after`
        of the error.

        After *idle_timeout* seconds without data, the connection counts as dead.

        Raises:
            ApiError: a failure status, or no response.
            UnreachableError: the connection broke; also raised while the body is read.

        Source: client-go/rest/request.go, Request.Watch (1.36).
        """
        active_config = await self._credentials.get_current_config()
        timeout = aiohttp.ClientTimeout(sock_connect=CONNECT_TIMEOUT, sock_read=idle_timeout)
        for is_retry in (False, True):
            attempt = RequestAttempt(request.method, 0, is_retry=is_retry)
            async with self._open_response(request, active_config, timeout, attempt, stream=True) as response:
                if response.status < 300:
                    yield response
                    return
                if response.status != 401 or is_retry:
                    error = make_error_from_response(response.status, await read_body(response, MAX_RESPONSE_BYTES))
                    error.retry_after = self._get_retry_after(response.status, response.headers)
                    raise error
            active_config = await self._credentials.replace_rejected(active_config)

    @asynccontextmanager
    async def _open_response(
        self,
        request: Request,
        active_config: ActiveConfig,
        timeout: aiohttp.ClientTimeout,
        attempt: RequestAttempt,
        *,
        stream: bool = False,
    ) -> AsyncIterator[aiohttp.ClientResponse]:
        """Make one attempt and yield its response. An error of the connection is raised as ApiError.

        This includes errors that occur while the caller reads the body.
        """
        target = f"{request.method} {request.path}"
        start_time, server = self._clock.monotonic(), active_config.config.server

        def report_attempt() -> None:
            attempt.seconds = self._clock.monotonic() - start_time
            if 0 < attempt.code < 300:
                self.recovery.record_success()
            self._observe(attempt)

        try:
            async with self._get_session(for_watches=stream).request(
                request.method,
                URL(server + request.path, encoded=True).extend_query(request.query),  # yarl would decode %2F
                data=None if request.body is None else _FencedBody(request),
                headers=self._make_headers(request, active_config),
                timeout=timeout,
                read_bufsize=_READ_BUFFER_BYTES,
                **_make_connection_options(active_config),
            ) as response:
                attempt.code = response.status
                if stream:
                    report_attempt()
                try:
                    yield response
                finally:
                    abort_unread(response)
        except (aiohttp.ClientError, OSError, RuntimeError) as error:
            if isinstance(error, RuntimeError) and attempt.code:
                raise  # from the caller that reads the response
            if isinstance(error, aiohttp.ClientConnectorCertificateError):
                self._credentials.reload_soon(active_config)
            raise _translate_error(error, target, server) from error
        finally:
            if not (stream and attempt.code):
                report_attempt()

    def _make_headers(self, request: Request, active_config: ActiveConfig) -> list[tuple[str, str]]:
        headers = [
            *active_config.config.headers,
            ("Accept", JSON),
            # Without compression, a small response cannot expand to a large one.
            ("Accept-Encoding", "identity"),
            ("User-Agent", self._user_agent),
        ]
        if request.body is not None:
            headers.append(("Content-Type", request.content_type))
        return headers

    def _get_session(self, *, for_watches: bool) -> aiohttp.ClientSession:
        session = self._sessions.get(for_watches)
        if session is None:
            session = self._sessions[for_watches] = open_session(read_bufsize=2**18)
        return session


def _translate_error(error: aiohttp.ClientError | OSError | RuntimeError, target: str, server: str) -> ApiError:
    """Return the ApiError of an exception of aiohttp or of the event loop; *target* is the request."""
    match error:
        case aiohttp.ClientConnectionError(__cause__=FencedError() as cause):
            return FencedError(cause.message)
        case aiohttp.ClientConnectorError() | aiohttp.ConnectionTimeoutError() | aiohttp.ClientHttpProxyError():
            description = describe_connection_error(error, "API server")
            message = f"cannot connect to {server}: {description}"
            return UnreachableError(message, maybe_sent=False, connect_error=description)
        case aiohttp.ClientPayloadError():
            return UnreachableError(f"{target}: the response ended early", maybe_sent=True, connection_broken=True)
        case aiohttp.InvalidURL():
            return UnreachableError(f"{server} is not a URL of an API server", maybe_sent=False)
        case TimeoutError():
            return UnreachableError(f"{target}: no response in time", maybe_sent=True)
        case aiohttp.ClientResponseError():
            return InvalidResponseError(f"{target}: {describe_connection_error(error, 'API server')}")
        case _:  # uvloop raises RuntimeError if the peer resets a connection while TLS is set up
            return UnreachableError(f"{target}: {error}", maybe_sent=True, connection_broken=True)


def _make_connection_options(active_config: ActiveConfig) -> dict[str, Any]:
    """Return aiohttp's connection options. Redirects are not followed, since they would send our token elsewhere."""
    config = active_config.config
    options: dict[str, Any] = {"allow_redirects": False}
    if active_config.tls is not None:
        options["ssl"] = active_config.tls
    if config.server_name:
        options["server_hostname"] = config.server_name
    if config.proxy_url:
        options["proxy"] = config.proxy_url
    return options
