"""Connections of the service: the caller's certificate where the application can see it, and no end of waiting.

uvicorn itself keeps the certificate from applications, waits for ever for a request that never ends, for an answer that
is never read, and lets a request's head be as long as it likes.
"""

from asyncio import AbstractEventLoop, TimerHandle, Transport
from typing import Any, Final

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol, RequestResponseCycle

EXTENSION: Final = "tls.client_certificate"
"""Key in the scope's `extensions`: the caller's certificate in DER. TLS has checked that an authority signed it."""

PATIENCE: Final = 30.0
"""Seconds a caller has from the start of a connection, or of a request on it, until all of the request is there; and
to read an answer that is not on its way yet."""

LONGEST: Final = 3600.0
"""Seconds after which a connection ends with the answer it is waiting for."""

MOST_HEAD: Final = 64 << 10
"""Bytes a request line and its headers may have when they come in pieces."""

_HEAD_TOO_BIG: Final = b"HTTP/1.1 431 Request Header Fields Too Large\r\ncontent-length: 0\r\nconnection: close\r\n\r\n"


class _Gathered:
    """Writes to a transport, all of one round of the event loop at once.

    uvicorn writes the head of an answer and its body one after the other; sent apart, each takes a system call of ours
    and wakes the caller.
    """

    __slots__ = ("_loop", "_pieces", "_transport")

    def __init__(self, transport: Transport, loop: AbstractEventLoop) -> None:
        self._transport, self._loop = transport, loop
        self._pieces: list[bytes] = []

    def write(self, piece: bytes) -> None:
        """Send *piece*, soon."""
        if not self._pieces:
            self._loop.call_soon(self.flush)
        self._pieces.append(piece)

    def flush(self) -> None:
        """Send what was written."""
        pieces, self._pieces = self._pieces, []
        if pieces and not self._transport.is_closing():
            self._transport.writelines(pieces)

    def close(self) -> None:
        """No more will be written; what was is sent."""
        self.flush()
        self._transport.close()

    def abort(self) -> None:
        """End the connection now."""
        self._transport.abort()

    def is_closing(self) -> bool:
        """Whether it was closed, or the caller is gone."""
        return self._transport.is_closing()


class PeerProtocol(HttpToolsProtocol):
    """HTTP/1.1 with the caller's certificate in the scope, and bounds on what a caller may take of us."""

    _timer: TimerHandle | None = None
    _deadline = 0.0
    _writing: TimerHandle | None = None
    _certificate: bytes | None = None
    _until = 0.0
    _head: int | None = None

    def connection_made(self, transport: Transport) -> None:  # type: ignore[override]
        """A caller is there; a request is to follow soon."""
        super().connection_made(transport)
        gathered: Any = _Gathered(transport, self.loop)
        self.transport = gathered
        secure: Any = transport.get_extra_info("ssl_object")
        self._certificate = secure.getpeercert(binary_form=True) if secure is not None else None
        self._until = self.loop.time() + LONGEST
        self._expect()

    def connection_lost(self, exc: Exception | None) -> None:
        """The caller is gone."""
        if self._timer is not None:
            self._timer.cancel()
        self._written()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        """Bytes came in; even those that begin no request end the patience that idle connections enjoy."""
        answered: RequestResponseCycle | None = self.cycle
        if not self._deadline and (answered is None or answered.response_complete):
            self._expect()
        super().data_received(data)
        if self._head is not None:
            self._head += len(data)
            if self._head > MOST_HEAD and not self.transport.is_closing():
                self.transport.write(_HEAD_TOO_BIG)
                self.transport.close()

    def on_message_begin(self) -> None:
        """A request begins: its scope is made."""
        super().on_message_begin()
        self._expect()
        self._head = 0
        certificate: Any = self._certificate
        if certificate:
            self.scope["extensions"] = {EXTENSION: certificate}

    def on_headers_complete(self) -> None:
        """The request's head is there; on an old connection it is the last one."""
        self._head = None
        super().on_headers_complete()
        if self.loop.time() > self._until:
            self.cycle.keep_alive = False

    def on_message_complete(self) -> None:
        """All of the request is there."""
        self._deadline = 0.0
        super().on_message_complete()

    def on_response_complete(self) -> None:
        """All of the answer was written: it leaves before whoever wrote it goes on."""
        gathered: Any = self.transport
        gathered.flush()
        super().on_response_complete()

    def pause_writing(self) -> None:
        """The caller reads slower than we write."""
        super().pause_writing()
        self._writing = self.loop.call_later(PATIENCE, self.transport.abort)

    def resume_writing(self) -> None:
        """The caller has read most of it."""
        self._written()
        super().resume_writing()

    def _written(self) -> None:
        if self._writing is not None:
            self._writing.cancel()
            self._writing = None

    def _expect(self) -> None:
        """All of a request is to be there in time. One timer serves many requests: it looks when it goes off."""
        self._deadline = self.loop.time() + PATIENCE
        if self._timer is None:
            self._timer = self.loop.call_later(PATIENCE, self._late)

    def _late(self) -> None:
        self._timer = None
        left = self._deadline - self.loop.time()
        if not self._deadline or self.transport.is_closing():
            return
        if left > 0:
            self._timer = self.loop.call_later(left, self._late)
        else:
            self.transport.close()
