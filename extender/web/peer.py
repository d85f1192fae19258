"""The certificate of a caller, where the application can see it; uvicorn itself keeps it from applications."""

from typing import Any, Final

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

EXTENSION: Final = "tls.client_certificate"
"""Key in the scope's `extensions`: the caller's certificate in DER. TLS has checked that an authority signed it."""


class PeerProtocol(HttpToolsProtocol):
    """HTTP/1.1 with the caller's certificate in the scope."""

    def on_message_begin(self) -> None:
        """A request begins: its scope is made."""
        super().on_message_begin()
        secure: Any = self.transport.get_extra_info("ssl_object")
        certificate = secure.getpeercert(binary_form=True) if secure is not None else None
        if certificate:
            self.scope["extensions"] = {EXTENSION: certificate}
