"""Connections as all of our clients keep them: used again for a minute, and gone at once when they are given up.

A TLS connection is closed with a farewell that the peer answers. A peer that was stopped, or is slow, does not answer
in time, and then the socket outlives the session.
"""

from typing import Final

import aiohttp

KEPT_SECONDS: Final = 60.0
"""An idle connection is kept so long."""


def connector() -> aiohttp.TCPConnector:
    """As many connections as are asked for. Call it in a running event loop."""
    return aiohttp.TCPConnector(limit=0, keepalive_timeout=KEPT_SECONDS)


def give_up(answer: aiohttp.ClientResponse) -> None:
    """Drop the connection of an *answer* that was not read to its end, without a farewell; if it was, do nothing."""
    connection = answer.connection
    if connection is not None and connection.transport is not None:
        connection.transport.abort()
