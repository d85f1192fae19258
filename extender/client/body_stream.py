"""The body of a streaming response, in chunks."""

import asyncio
from collections.abc import AsyncIterator

import aiohttp


class BodyStream:
    """Yields the chunks of a body as they arrive: bytes, never empty. It can be iterated once.

    Args:
        response: the response.
    """

    __slots__ = ("_response",)

    def __init__(self, response: aiohttp.ClientResponse) -> None:
        self._response = response

    def __aiter__(self) -> AsyncIterator[bytes]:
        return self._response.content.iter_any()

    async def pause_reading(self, seconds: float) -> None:
        """Stop reading for *seconds*. Data collects in the kernel, and is then read and decrypted at once."""
        connection = self._response.connection
        transport = connection.transport if connection is not None else None
        if transport is None:  # the whole body has arrived
            return
        transport.pause_reading()
        try:
            await asyncio.sleep(seconds)
        finally:
            if not transport.is_closing():
                transport.resume_reading()
