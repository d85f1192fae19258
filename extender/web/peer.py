"""Connections of the service: the caller's certificate where the application can see it, and no end of waiting.

uvicorn itself keeps the certificate from applications, and waits for ever for a request that never ends.
"""

from asyncio import TimerHandle, Transport
from typing import Any, Final

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

EXTENSION: Final = "tls.client_certificate"
"""Key in the scope's `extensions`: the caller's certificate in DER. TLS has checked that an authority signed it."""

PATIENCE: Final = 30.0
"""Seconds a caller has from the start of a connection, or of a request on it, until all of the request is there."""


class PeerProtocol(HttpToolsProtocol):
    """HTTP/1.1 with the caller's certificate in the scope, and a deadline for each request."""

    _deadline: TimerHandle | None = None

    def connection_made(self, transport: Transport) -> None:  # type: ignore[override]
        """A caller is there; a request is to follow soon."""
        super().connection_made(transport)
        self._expect()

    def connection_lost(self, exc: Exception | None) -> None:
        """The caller is gone."""
        self._expect_nothing()
        super().connection_lost(exc)

    def on_message_begin(self) -> None:
        """A request begins: its scope is made."""
        super().on_message_begin()
        self._expect()
        secure: Any = self.transport.get_extra_info("ssl_object")
        certificate = secure.getpeercert(binary_form=True) if secure is not None else None
        if certificate:
            self.scope["extensions"] = {EXTENSION: certificate}

    def on_message_complete(self) -> None:
        """All of the request is there."""
        self._expect_nothing()
        super().on_message_complete()

    def _expect(self) -> None:
        self._expect_nothing()
        self._deadline = self.loop.call_later(PATIENCE, self._late)

    def _expect_nothing(self) -> None:
        if self._deadline is not None:
            self._deadline.cancel()
            self._deadline = None

    def _late(self) -> None:
        if not self.transport.is_closing():
            self.transport.close()
