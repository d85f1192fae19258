"""Connections of all our clients: idle ones are kept for a minute, and those with unread responses are aborted.

Bodies of responses are read whole within a limit, or with pauses between the chunks. aiohttp queues each informational
response (1xx) without a limit, and responses that arrive while the connection is idle; both are limited here.

A TLS connection that is closed waits for the peer's close_notify. If the peer is stopped or slow, the socket stays
open after its `aiohttp.ClientSession` was closed. So connections with unread data are aborted instead.

A signal tells waiting tasks that the API server answers again after an outage. A counter tells when many requests are
pending.
"""

import asyncio
import errno
import os
import socket
import ssl
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import AbstractAsyncContextManager, ExitStack, asynccontextmanager, contextmanager, nullcontext
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Final
from weakref import WeakValueDictionary

import aiohttp
from aiohttp.client_proto import ResponseHandler
from aiohttp.http_exceptions import BadHttpMessage

from extender.basics.input_limits import shorten
from extender.basics.tls_reads import limit_reads
from extender.client.errors import ResponseTooLargeError

MAX_INFORMATIONAL_RESPONSES: Final = 100
"""Limit of the informational responses to one request. Go has a limit for the bytes of their headers."""

MAX_HEADER_BYTES: Final = 64 << 10
"""Limit of each header of a response, and of its status line."""

MAX_HEADERS: Final = 1000
"""Limit of the headers of a response.

Source: Go 1.26, net/http/transport.go, Transport.MaxResponseHeaderBytes, which is 10 MiB in total.
"""

_SWITCHING_PROTOCOLS: Final = 101


class BoundedResponseHandler(ResponseHandler):
    """Skips informational responses, and closes a connection with too many of them or with unexpected data."""

    _informational_count = 0
    _has_response = False

    def set_response_params(self, **params: Any) -> None:
        """Expect the response to the next request."""
        self._informational_count, self._has_response = 0, False
        super().set_response_params(**params)

    def data_received(self, data: bytes) -> None:
        """Parse *data*, or abort the connection if the response is complete: no request has asked for *data*.

        Source: Go 1.26, net/http/transport.go, persistConn.readLoopPeekFailLocked.
        """
        if data and self._has_response and self._payload is not None and self._payload.is_eof():
            self.force_close()
            if self.transport is not None:
                self.transport.abort()
            return
        super().data_received(data)

    def feed_data(self, data: Any, size: int = 0) -> None:
        """Queue a response, unless it is informational."""
        code = data[0].code
        if code >= 200 or code == _SWITCHING_PROTOCOLS:
            self._has_response = True
            super().feed_data(data, size)
            return
        self._informational_count += 1
        if self._informational_count > MAX_INFORMATIONAL_RESPONSES and self.exception() is None:
            message = f"more than {MAX_INFORMATIONAL_RESPONSES} informational responses"
            self.set_exception(BadHttpMessage(message))


KEEPALIVE_SECONDS: Final = 60.0
"""Seconds for which an idle connection is kept."""

MAX_CONCURRENT_REQUESTS: Final = 32
"""Limit of concurrent requests, watches not included. More connections would cost the server more than they gain."""

MAX_PENDING_REQUESTS: Final = 2 * MAX_CONCURRENT_REQUESTS
"""With this number of pending requests, no further pod is scheduled. All connections are then busy, and more binding
cycles would only hold memory, which the garbage collector must examine."""

_MAX_PATCH_TURN_SECONDS: Final = 5.0
"""Seconds after which a patch does not hold up the next patch of its object any more."""


def open_session(**options: Any) -> aiohttp.ClientSession:
    """Return a session without cookies, decompression and a limit of connections. Call it in a running event loop."""
    return aiohttp.ClientSession(
        connector=_Connector(
            limit=0, keepalive_timeout=KEEPALIVE_SECONDS, socket_factory=lambda address: _Socket(*address[:3])
        ),
        cookie_jar=aiohttp.DummyCookieJar(),
        auto_decompress=False,
        max_line_size=MAX_HEADER_BYTES,
        max_field_size=MAX_HEADER_BYTES,
        max_headers=MAX_HEADERS,
        **options,
    )


class _Connector(aiohttp.TCPConnector):
    """A connector whose connections have limits."""

    def __init__(self, **options: Any) -> None:
        super().__init__(**options)
        factory: Any = partial(BoundedResponseHandler, loop=self._loop)
        self._factory = factory


class _Socket(socket.socket):
    """A socket that leaves its file descriptor open when it is deleted while a transport has it.

    If the peer resets a connection before TLS is set up, `create_connection` of uvloop closes the file descriptor, and
    the socket keeps the number. A deleted `socket.socket` closes its number, which then belongs to another connection
    or file.
    """

    def __del__(self) -> None:
        """Close the socket, unless a transport of uvloop has it."""
        if self.fileno() != -1:  # a socket that could not be opened lacks the attributes that `close` reads
            self.close()  # uvloop counts as a user of the socket, like a file of `makefile`, so this then does nothing


def make_client_context(*, ca_file: str | None = None, ca_pem: str | None = None, insecure: bool) -> ssl.SSLContext:
    """Return the TLS context of a client; *insecure* skips the verification of the server's certificate.

    The CAs are those in *ca_file* or *ca_pem*; those of the system if both are None.

    Raises:
        OSError: a CA cannot be read. ssl.SSLError is an OSError.
    """
    context = ssl.create_default_context(cafile=ca_file, cadata=ca_pem)
    limit_reads(context)
    # Clusters' own CAs often lack extensions that Python 3.13 requires and Go does not.
    context.verify_flags &= ~getattr(ssl, "VERIFY_X509_STRICT", ssl.VerifyFlags(0))
    if insecure:
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
    return context


def describe_connection_error(error: Exception, peer: str) -> str:
    """Describe an error of aiohttp in one line, without the representations of its objects.

    *peer* says what the server should be, such as `API server`.
    """
    match error:
        case aiohttp.ClientProxyConnectionError():
            # The error of the proxy itself: its address is not that of the server, which may be reachable.
            text = f"the proxy {error.host}:{error.port}: {_describe_system_error(error.os_error)}"
        case aiohttp.ClientHttpProxyError():
            text = f"the proxy responded with status {error.status}: {error.message}"
        case aiohttp.ClientConnectorCertificateError():
            text = str(error.certificate_error)
        case aiohttp.ClientConnectorSSLError():
            text = f"no TLS connection ({error.os_error}); is this the port of the {peer}, and does it have https?"
        case aiohttp.ClientConnectorError():
            text = _describe_system_error(error.os_error)
        case aiohttp.ClientResponseError():
            text = f"not an HTTP response: {error.message}"
        case TimeoutError():
            text = "no response in time"
        case _:
            text = str(error)
    return shorten(" ".join(text.split())) or type(error).__name__


def _describe_system_error(error: OSError) -> str:
    is_system_error = error.errno in errno.errorcode  # the resolver has its own error numbers
    return os.strerror(error.errno or 0).lower() if is_system_error else str(error)


def abort_unread(response: aiohttp.ClientResponse) -> None:
    """Abort the connection of *response* unless its body was read to the end."""
    connection = response.connection
    if connection is not None and connection.transport is not None:
        connection.transport.abort()


class RecoverySignal:
    """Tells tasks that the API server answers again.

    The transports of a process share one signal, so that a successful request of any task ends the back-off of others.

    Attributes:
        success_count: the number of successful requests.
    """

    def __init__(self) -> None:
        self.success_count = 0
        self._waiting_count = 0
        self._succeeded = asyncio.Event()

    def record_success(self) -> None:
        """Record that a request succeeded, and wake the waiting tasks."""
        self.success_count += 1
        if self._waiting_count:
            self._succeeded.set()
            self._succeeded = asyncio.Event()

    async def wait(self, seconds: float, success_count: int) -> bool:
        """Wait until there are more than *success_count* successes, at most *seconds*; return whether there are."""
        if self.success_count > success_count:
            return True
        self._waiting_count += 1
        try:
            async with asyncio.timeout(seconds):
                await self._succeeded.wait()
        except TimeoutError:
            return False
        finally:
            self._waiting_count -= 1
        return True


@dataclass(slots=True)
class PendingRequests:
    """Limits and counts the requests of one transport that use a connection or wait for one.

    Attributes:
        on_capacity: the function that is called when `has_capacity` becomes true.
        count: the number of requests. Those that wait before a retry, or for another patch of their object, are not
            included: they need no connection.
        connection_limit: limits the requests that use a connection.
    """

    on_capacity: Callable[[], None] = lambda: None
    count: int = 0
    connection_limit: asyncio.Semaphore = field(default_factory=lambda: asyncio.Semaphore(MAX_CONCURRENT_REQUESTS))
    _patch_locks: WeakValueDictionary[str, asyncio.Lock] = field(default_factory=WeakValueDictionary)

    def wait_for_connection(self, method: str, path: str) -> AbstractAsyncContextManager[None]:
        """Wait until a request may use a connection. Patches of one object are sent one after the other.

        Whenever another write of the object comes first, the API server makes a patch again from the new object. Many
        concurrent patches, such as those that reserve a shared claim for its pods, would take it most of its time. A
        patch without a response holds up the next one for `_MAX_PATCH_TURN_SECONDS` only.

        Source: apiserver/pkg/registry/generic/registry/store.go, Store.Update;
        apiserver/pkg/storage/etcd3/store.go, store.GuaranteedUpdate (1.37).
        """
        return self._wait_for_turn_and_connection(path) if method == "PATCH" else self.connection_limit

    @asynccontextmanager
    async def _wait_for_turn_and_connection(self, path: str) -> AsyncIterator[None]:
        lock = self._patch_locks.setdefault(path, asyncio.Lock())
        with self.exclude_request() if lock.locked() else nullcontext():
            await lock.acquire()
        with ExitStack() as turn:
            turn.callback(lock.release)
            timer = asyncio.get_running_loop().call_later(_MAX_PATCH_TURN_SECONDS, turn.close)
            try:
                async with self.connection_limit:
                    yield
            finally:
                timer.cancel()

    def has_capacity(self) -> bool:
        """Return whether fewer than `MAX_PENDING_REQUESTS` requests are pending."""
        return self.count < MAX_PENDING_REQUESTS

    @contextmanager
    def include_request(self) -> Iterator[None]:
        """Count a request in the `with` block."""
        self.count += 1
        try:
            yield
        finally:
            self._remove_request()

    @contextmanager
    def exclude_request(self) -> Iterator[None]:
        """Do not count a request in the `with` block, although it has begun."""
        self._remove_request()
        try:
            yield
        finally:
            self.count += 1

    def _remove_request(self) -> None:
        self.count -= 1
        if self.count == MAX_PENDING_REQUESTS - 1:
            self.on_capacity()


async def pause_reading(response: aiohttp.ClientResponse, seconds: float) -> None:
    """Stop reading a body for *seconds*. Data collects in the kernel, and is then read in one piece."""
    connection = response.connection
    transport = connection.transport if connection is not None else None
    if transport is None:  # the whole body has arrived
        return
    transport.pause_reading()
    try:
        await asyncio.sleep(seconds)
    finally:
        if not transport.is_closing():
            transport.resume_reading()


async def read_body(response: aiohttp.ClientResponse, max_bytes: int) -> bytes:
    """Return the whole body.

    Raises:
        ResponseTooLargeError: the body has more than *max_bytes*.
        aiohttp.ClientError: the connection broke.
    """
    chunks: list[bytes] = []
    size = 0
    async for chunk in response.content.iter_any():
        size += len(chunk)
        if size > max_bytes:
            raise ResponseTooLargeError(
                f"{response.method} {response.url.path}: a response of more than {max_bytes} bytes"
            )
        chunks.append(chunk)
    return b"".join(chunks)


async def is_true_soon(condition: Callable[[], bool]) -> bool:
    """Return whether *condition* is true within a second; check it 20 times."""
    for _ in range(20):
        await asyncio.sleep(0.05)
        if condition():
            return True
    return False
