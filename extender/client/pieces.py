"""The body of an answer that keeps coming, piece by piece."""

import asyncio
from collections.abc import AsyncIterator

import aiohttp


class Pieces:
    """Iterate over it once. A piece is what has arrived since the last one, bytes, never empty.

    Args:
        answer: whose body it is.
    """

    __slots__ = ("_answer",)

    def __init__(self, answer: aiohttp.ClientResponse) -> None:
        self._answer = answer

    def __aiter__(self) -> AsyncIterator[bytes]:
        return self._answer.content.iter_any()

    async def gather(self, seconds: float) -> None:
        """Let what arrives in so many *seconds* wait in the kernel, so that it is read, and decrypted, at once."""
        connection = self._answer.connection
        transport = connection.transport if connection is not None else None
        if transport is None:  # the end of the body is here already
            return
        transport.pause_reading()
        try:
            await asyncio.sleep(seconds)
        finally:
            if not transport.is_closing():
                transport.resume_reading()
