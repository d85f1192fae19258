"""Bodies of responses: read whole within a limit, or with pauses between the chunks."""

import asyncio

import aiohttp

from extender.client.errors import ResponseTooLargeError


async def pause_reading(response: aiohttp.ClientResponse, seconds: float) -> None:
    """Stop reading a body for *seconds*. Data collects in the kernel, and is then read in one piece."""
    connection = response.connection
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
