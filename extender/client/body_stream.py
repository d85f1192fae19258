"""Bodies of responses: read whole within a limit, or in chunks as they arrive."""

import asyncio
from collections.abc import AsyncIterator

import aiohttp

from extender.client.errors import ResponseTooLargeError


class BodyStream:
    """Yields the chunks of a body as they arrive: bytes, never empty. It can be iterated or read once.

    Args:
        response: the response.
    """

    __slots__ = ("_response",)

    def __init__(self, response: aiohttp.ClientResponse) -> None:
        self._response = response

    def __aiter__(self) -> AsyncIterator[bytes]:
        return self._response.content.iter_any()

    async def read(self, max_bytes: int) -> bytes:
        """Return the whole body; see `read_body`."""
        return await read_body(self._response, max_bytes)

    async def pause_reading(self, seconds: float) -> None:
        """Stop reading for *seconds*. Data collects in the kernel, and is then read in one piece."""
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
