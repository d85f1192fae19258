"""Connection settings of all our clients: idle connections are kept for a minute, unread responses are aborted.

Closing a TLS connection waits for the peer's close_notify. If a stopped or slow peer does not send it in time, the
socket outlives the session. So unread connections are aborted instead.
"""

from typing import Final

import aiohttp

KEEPALIVE_SECONDS: Final = 60.0
"""Seconds for which an idle connection is kept."""


def make_connector() -> aiohttp.TCPConnector:
    """Return a connector without a connection limit. Call it in a running event loop."""
    return aiohttp.TCPConnector(limit=0, keepalive_timeout=KEEPALIVE_SECONDS)


def abort_unread(response: aiohttp.ClientResponse) -> None:
    """Abort the connection of *response* unless its body was read to the end."""
    connection = response.connection
    if connection is not None and connection.transport is not None:
        connection.transport.abort()
