"""Limit what aiohttp buffers of a server's responses besides their bodies.

aiohttp queues each informational response (1xx), without a limit, and handles them all without a pause of the event
loop. It also queues responses that arrive while the connection is idle, and takes them for those of later requests.
"""

from typing import Any, Final

from aiohttp.client_proto import ResponseHandler
from aiohttp.http_exceptions import BadHttpMessage

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
