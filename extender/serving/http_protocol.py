"""Extend uvicorn's HTTP protocol with timeouts, size limits, and the client certificate in the ASGI scope.

uvicorn itself does not pass the client certificate to applications. It has no timeout for receiving a request or
sending a response. It does not limit the number and the size of a request's headers, chunk extensions and
trailers.
"""

from asyncio import AbstractEventLoop, TimerHandle, Transport
from typing import Any, Final

import httptools
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol, RequestResponseCycle

from extender.serving.connection_acceptor import OpenConnection
from extender.serving.rejection_log import RejectionLog, format_client

CERTIFICATE_EXTENSION: Final = "tls.client_certificate"
"""Key of the client certificate (DER) in the scope's `extensions`. TLS has verified that a trusted CA signed it."""

TRANSFER_TIMEOUT: Final = 30.0
"""Timeout in seconds for receiving a request, and for writing a response to a slow client.

The timeout for receiving starts with the connection, or with the first byte of a request. The timeout for writing
starts when the write buffer is full.
"""

MAX_CONNECTION_SECONDS: Final = 3600.0
"""Age in seconds after which a connection is closed when its next response is complete."""

MAX_HEAD_BYTES: Final = 64 << 10
"""Limit of the size of a request line with its headers."""

MAX_HEADERS: Final = 100
"""Limit of the headers of a request, trailers included. A header of three bytes takes 170 bytes of memory.

Source: Apache HTTP Server, LimitRequestFields.
"""

MAX_FRAMING_RATIO: Final = 8
"""Limit of framing bytes per byte of the body. Framing bytes are chunk sizes, chunk extensions and trailers.

The framing of a chunk of one byte takes 5 bytes.
"""

MAX_PIPELINED_REQUESTS: Final = 16
"""Limit of requests on one connection that wait for the response to an earlier request."""

_RESPONSE_HEAD: Final = (
    b"HTTP/1.1 %d %s\r\ncontent-type: text/plain; charset=utf-8\r\ncontent-length: %d\r\nconnection: close\r\n\r\n"
)
_STATUS_TEXTS: Final = {400: b"Bad Request", 431: b"Request Header Fields Too Large"}

_BODY_HEADERS: Final = (b"content-length", b"transfer-encoding")

_REJECTED_SECONDS: Final = 1.0
"""Seconds after which the connection of a rejected request is closed, even if the client does not close TLS."""

_invalid_request_log: Final = RejectionLog("Rejected an invalid HTTP request")

_MAX_PARSED_BYTES: Final = 64 << 10
"""Number of bytes that are parsed before the limits are checked."""

_MAX_BUFFERED_BYTES: Final = 256 * 1024
"""The number of buffered bytes from which the buffer is flushed at once."""


class _InvalidRequestError(Exception):
    """The request is rejected with status `status` and a body of one line."""

    def __init__(self, status: int, message: str) -> None:
        super().__init__(message)
        self.status, self.message = status, message


class _BufferedTransport:
    """Buffers the writes of one iteration of the event loop, and passes them to the transport together.

    uvicorn writes the head and the body of a response separately. Without a buffer, each write would be a system call
    and would wake the client. A large response is passed on in parts, so that the application waits until the client
    has read them, and other tasks run meanwhile.
    """

    __slots__ = ("_chunks", "_loop", "_size", "_transport")

    def __init__(self, transport: Transport, loop: AbstractEventLoop) -> None:
        self._transport, self._loop = transport, loop
        self._chunks: list[bytes] = []
        self._size = 0

    def write(self, chunk: bytes) -> None:
        """Buffer *chunk* until the next iteration, or until the buffer is full."""
        if not chunk:  # asyncio of Python 3.13 never finishes to write it, and does not close the connection
            return
        if not self._chunks:
            self._loop.call_soon(self.flush)
        self._chunks.append(chunk)
        self._size += len(chunk)
        if self._size >= _MAX_BUFFERED_BYTES:
            self.flush()

    def flush(self) -> None:
        chunks, self._chunks, self._size = self._chunks, [], 0
        if chunks and not self._transport.is_closing():
            self._transport.writelines(chunks)

    def close(self) -> None:
        """Write the buffered chunks, and close the transport."""
        self.flush()
        self._transport.close()

    def abort(self) -> None:
        self._transport.abort()

    def is_closing(self) -> bool:
        return self._transport.is_closing()


class BoundedHttpProtocol(HttpToolsProtocol):
    """HTTP/1.1 protocol with limits on time and size, and with the client certificate in the scope."""

    _deadline_timer: TimerHandle | None = None
    _deadline = 0.0
    _write_timer: TimerHandle | None = None
    _certificate: bytes | None = None
    _connection_end = 0.0
    _is_in_head = True
    _framing_bytes = 0
    _body_bytes = 0
    _header_count = 0

    _is_authenticated = False

    open_connection: OpenConnection | None = None
    """The connection among those of its port."""

    def connection_made(self, transport: Transport) -> None:  # type: ignore[override]
        """Start the deadline of the first request."""
        super().connection_made(transport)
        buffered_transport: Any = _BufferedTransport(transport, self.loop)
        self.transport = buffered_transport
        ssl_object: Any = transport.get_extra_info("ssl_object")
        self._certificate = ssl_object.getpeercert(binary_form=True) if ssl_object is not None else None
        self._is_authenticated = ssl_object is None or bool(self._certificate)
        if self.open_connection is not None:
            self.open_connection.abort = transport.abort
        self._connection_end = self.loop.time() + MAX_CONNECTION_SECONDS
        self._start_deadline()

    def connection_lost(self, exc: Exception | None) -> None:
        """Cancel the timers, and report the end of the connection."""
        if self.open_connection is not None:
            self.open_connection.remove()
        if self._deadline_timer is not None:
            self._deadline_timer.cancel()
        self._cancel_write_timer()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        """Parse *data*, reject an invalid request, and start a deadline if the connection was idle."""
        if self.transport.is_closing():
            return
        cycle: RequestResponseCycle | None = self.cycle
        if not self._deadline and (cycle is None or cycle.response_complete):
            self._start_deadline()
        self._unset_keepalive_if_required()
        try:
            for start in range(0, len(data), _MAX_PARSED_BYTES):
                self._parse(data[start : start + _MAX_PARSED_BYTES] if len(data) > _MAX_PARSED_BYTES else data)
        except httptools.HttpParserUpgrade:
            self.cycle.keep_alive = False  # serve the request without the upgrade, and do not parse later data
        except httptools.HttpParserCallbackError as error:
            reason = error.__context__
            if not isinstance(reason, _InvalidRequestError):  # an invalid URL
                reason = _InvalidRequestError(400, f"not an HTTP/1.1 request: {reason}")
            self._reject(reason)
        except httptools.HttpParserError as error:
            self._reject(_InvalidRequestError(400, f"not an HTTP/1.1 request: {error}"))
        except _InvalidRequestError as error:
            self._reject(error)

    def _parse(self, data: bytes) -> None:
        """Parse *data*, at most `_MAX_PARSED_BYTES`, because the parser copies a header as long as it is incomplete.

        Raises:
            _InvalidRequestError: the current request has too many bytes besides its body.
            httptools.HttpParserError: the request is invalid.
        """
        self._framing_bytes += len(data)
        self.parser.feed_data(data)
        if self._framing_bytes > MAX_HEAD_BYTES + MAX_FRAMING_RATIO * self._body_bytes:
            if self._is_in_head:
                raise _InvalidRequestError(431, "the headers are too big")
            raise _InvalidRequestError(400, "the chunk extensions or trailers are too big")

    def on_message_begin(self) -> None:
        """Start the request's deadline, and put the client certificate into its scope."""
        super().on_message_begin()
        self._start_deadline()
        self._is_in_head, self._body_bytes, self._header_count = True, 0, 0
        certificate: Any = self._certificate
        if certificate:
            self.scope["extensions"] = {CERTIFICATE_EXTENSION: certificate}

    def on_header(self, name: bytes, value: bytes) -> None:
        """Add a header, or ignore a trailer.

        Raises:
            _InvalidRequestError: there are too many.
        """
        self._header_count += 1
        if self._header_count > MAX_HEADERS:
            raise _InvalidRequestError(431, f"more than {MAX_HEADERS} headers")
        if self._is_in_head:
            super().on_header(name, value)

    def on_headers_complete(self) -> None:
        """Check the headers. If the connection is too old, close it after this request.

        Raises:
            _InvalidRequestError: the headers are too big, the path has a line break, the transfer encoding is not
                supported, a request with a body asks for another protocol, or too many requests wait on the
                connection.
        """
        self._is_in_head = False
        if len(self.url) + sum(len(name) + len(value) for name, value in self.headers) > MAX_HEAD_BYTES:
            raise _InvalidRequestError(431, "the headers are too big")
        if b"%0a" in self.url.partition(b"?")[0].lower():  # at the end, Starlette would ignore it
            raise _InvalidRequestError(400, "the path has a line break")
        encodings = [value for name, value in self.headers if name == b"transfer-encoding"]
        if encodings and (len(encodings) > 1 or encodings[0].strip().lower() != b"chunked"):
            raise _InvalidRequestError(400, "Transfer-Encoding: only chunked is supported")
        if self.parser.should_upgrade() and any(
            name in _BODY_HEADERS and value != b"0" for name, value in self.headers
        ):  # the parser would skip the body
            raise _InvalidRequestError(400, "the header Upgrade is not supported in a request with a body")
        if len(self.pipeline) >= MAX_PIPELINED_REQUESTS:
            raise _InvalidRequestError(400, f"more than {MAX_PIPELINED_REQUESTS} requests wait on this connection")
        super().on_headers_complete()
        if self.open_connection is not None:
            self.open_connection.start_request()
        if self.loop.time() > self._connection_end:
            self.cycle.keep_alive = False

    def on_body(self, body: bytes) -> None:
        """Buffer a part of the body."""
        self._framing_bytes -= len(body)
        self._body_bytes += len(body)
        super().on_body(body)

    def on_message_complete(self) -> None:
        """End the request's deadline."""
        self._deadline = 0.0
        self._framing_bytes = 0
        super().on_message_complete()

    def _reject(self, error: _InvalidRequestError) -> None:
        """Log an invalid request, respond to it, and close the connection."""
        _invalid_request_log.log({"from": format_client(self.client), "err": error.message}, self.loop.time())
        cycle: RequestResponseCycle | None = self.cycle
        if cycle is None or cycle.response_complete or not cycle.response_started:
            body = error.message.encode()
            self.transport.write(_RESPONSE_HEAD % (error.status, _STATUS_TEXTS[error.status], len(body)) + body)
        self.transport.close()
        self.loop.call_later(_REJECTED_SECONDS, self.transport.abort)  # else TLS waits 30 s for the client's close
        parser: Any = None
        self.parser = parser  # has a copy of the incomplete header

    def on_response_complete(self) -> None:
        """Write the buffered response before the application continues."""
        buffered_transport: Any = self.transport
        buffered_transport.flush()
        if self.open_connection is not None and not self.pipeline:
            self.open_connection.end_request(is_authenticated=self._is_authenticated)
        super().on_response_complete()

    def pause_writing(self) -> None:
        """Start the write timeout, because the write buffer is full."""
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
        """Set the deadline of the current request. One timer serves many requests, and checks the latest deadline."""
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
            return
        if self._framing_bytes:
            message = f"the request did not arrive within {TRANSFER_TIMEOUT:g} s"
            _invalid_request_log.log({"from": format_client(self.client), "err": message}, self.loop.time())
        self.transport.close()
