"""uvicorn's HTTP protocol with timeouts, size limits, and the client certificate in the ASGI scope.

uvicorn itself does not pass the certificate to applications. It has no timeout for receiving a request or sending a
response, and no limit for the head of a request.
"""

from asyncio import AbstractEventLoop, TimerHandle, Transport
from typing import Any, Final

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol, RequestResponseCycle

CERTIFICATE_EXTENSION: Final = "tls.client_certificate"
"""Key in the scope's `extensions`: the client certificate in DER. TLS has verified that a CA signed it."""

TRANSFER_TIMEOUT: Final = 30.0
"""Timeout in seconds, from the start of a connection or request to the end of the request; also for a client to read a
response that fills the write buffer."""

MAX_CONNECTION_SECONDS: Final = 3600.0
"""Seconds after which a connection is closed with its next response."""

MAX_HEAD_BYTES: Final = 64 << 10
"""Limit of a request line with its headers if they arrive in several chunks."""

_HEAD_TOO_BIG: Final = b"HTTP/1.1 431 Request Header Fields Too Large\r\ncontent-length: 0\r\nconnection: close\r\n\r\n"


class _BufferedTransport:
    """Buffers the writes of one event loop iteration, and writes them to the transport at once.

    uvicorn writes the head and the body of a response separately. Without a buffer, each write would be a system call
    and would wake the client.
    """

    __slots__ = ("_chunks", "_loop", "_transport")

    def __init__(self, transport: Transport, loop: AbstractEventLoop) -> None:
        self._transport, self._loop = transport, loop
        self._chunks: list[bytes] = []

    def write(self, chunk: bytes) -> None:
        """Buffer *chunk* until the next iteration."""
        if not self._chunks:
            self._loop.call_soon(self.flush)
        self._chunks.append(chunk)

    def flush(self) -> None:
        """Write the buffered chunks."""
        chunks, self._chunks = self._chunks, []
        if chunks and not self._transport.is_closing():
            self._transport.writelines(chunks)

    def close(self) -> None:
        """Write the buffered chunks, and close the transport."""
        self.flush()
        self._transport.close()

    def abort(self) -> None:
        """Abort the transport."""
        self._transport.abort()

    def is_closing(self) -> bool:
        """Return whether the transport is closed or closing."""
        return self._transport.is_closing()


class BoundedHttpProtocol(HttpToolsProtocol):
    """HTTP/1.1 with the client certificate in the scope, and limits on time and size."""

    _deadline_timer: TimerHandle | None = None
    _deadline = 0.0
    _write_timer: TimerHandle | None = None
    _certificate: bytes | None = None
    _connection_end = 0.0
    _head_bytes: int | None = None

    def connection_made(self, transport: Transport) -> None:  # type: ignore[override]
        """Start the deadline of the first request."""
        super().connection_made(transport)
        buffered_transport: Any = _BufferedTransport(transport, self.loop)
        self.transport = buffered_transport
        ssl_object: Any = transport.get_extra_info("ssl_object")
        self._certificate = ssl_object.getpeercert(binary_form=True) if ssl_object is not None else None
        self._connection_end = self.loop.time() + MAX_CONNECTION_SECONDS
        self._start_deadline()

    def connection_lost(self, exc: Exception | None) -> None:
        """Cancel the timers."""
        if self._deadline_timer is not None:
            self._deadline_timer.cancel()
        self._cancel_write_timer()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        """Start a deadline if the connection was idle, and check the size of the head."""
        cycle: RequestResponseCycle | None = self.cycle
        if not self._deadline and (cycle is None or cycle.response_complete):
            self._start_deadline()
        super().data_received(data)
        if self._head_bytes is not None:
            self._head_bytes += len(data)
            if self._head_bytes > MAX_HEAD_BYTES and not self.transport.is_closing():
                self.transport.write(_HEAD_TOO_BIG)
                self.transport.close()

    def on_message_begin(self) -> None:
        """Start the request's deadline, and put the client certificate into its scope."""
        super().on_message_begin()
        self._start_deadline()
        self._head_bytes = 0
        certificate: Any = self._certificate
        if certificate:
            self.scope["extensions"] = {CERTIFICATE_EXTENSION: certificate}

    def on_headers_complete(self) -> None:
        """End the check of the head's size; make this request the last one of an old connection."""
        self._head_bytes = None
        super().on_headers_complete()
        if self.loop.time() > self._connection_end:
            self.cycle.keep_alive = False

    def on_message_complete(self) -> None:
        """End the request's deadline."""
        self._deadline = 0.0
        super().on_message_complete()

    def on_response_complete(self) -> None:
        """Write the buffered response before the application continues."""
        buffered_transport: Any = self.transport
        buffered_transport.flush()
        super().on_response_complete()

    def pause_writing(self) -> None:
        """Start the write timeout, because the client reads slower than we write."""
        super().pause_writing()
        self._write_timer = self.loop.call_later(TRANSFER_TIMEOUT, self.transport.abort)

    def resume_writing(self) -> None:
        """Cancel the write timeout."""
        self._cancel_write_timer()
        super().resume_writing()

    def _cancel_write_timer(self) -> None:
        if self._write_timer is not None:
            self._write_timer.cancel()
            self._write_timer = None

    def _start_deadline(self) -> None:
        """Start the deadline of a request. One timer serves many requests: it checks the deadline when it fires."""
        self._deadline = self.loop.time() + TRANSFER_TIMEOUT
        if self._deadline_timer is None:
            self._deadline_timer = self.loop.call_later(TRANSFER_TIMEOUT, self._check_deadline)

    def _check_deadline(self) -> None:
        self._deadline_timer = None
        remaining = self._deadline - self.loop.time()
        if not self._deadline or self.transport.is_closing():
            return
        if remaining > 0:
            self._deadline_timer = self.loop.call_later(remaining, self._check_deadline)
        else:
            self.transport.close()
