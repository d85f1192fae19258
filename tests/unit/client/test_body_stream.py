"""While reading is paused, data waits in the kernel, and none is lost."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import aiohttp
import pytest

from extender.client.connections import pause_reading
from extender.client.errors import InvalidResponseError, UnreachableError
from extender.client.transport import Request
from tests.unit.client.scripted_server import CUT, SILENCE, Reply, ScriptedServer, Stream, open_transport
from tests.unit.client.virtual_time import run

WATCH = Request("GET", "/api/v1/nodes")


@asynccontextmanager
async def watch_steps(*steps: Any) -> AsyncIterator[aiohttp.ClientResponse]:
    """The response to a watch of a server that sends *steps*."""
    async with ScriptedServer() as server, open_transport(server) as transport:
        server.respond("GET /api/v1/nodes", Stream(steps))
        async with transport.stream(WATCH, 60.0) as response:
            yield response


def is_reading(response: aiohttp.ClientResponse) -> bool:
    """Return whether the transport reads from its socket."""
    connection = response.connection
    assert connection is not None
    assert connection.transport is not None
    return connection.transport.is_reading()


def test_nothing_is_read_during_a_pause() -> None:
    async def main() -> None:
        async with watch_steps(b"one", 0.005, b"two", 0.005, b"three", SILENCE) as response:
            chunks = response.content.iter_any()
            assert await anext(chunks) == b"one"
            pause = asyncio.create_task(pause_reading(response, 0.02))
            await asyncio.sleep(0.015)
            assert not is_reading(response)
            await pause
            assert is_reading(response)
            assert await anext(chunks) == b"twothree"

    run(main())


def test_reading_resumes_after_a_cancelled_pause() -> None:
    async def main() -> None:
        async with watch_steps(b"one", b"two", SILENCE) as response:
            with pytest.raises(TimeoutError):
                async with asyncio.timeout(0.001):
                    await pause_reading(response, 1.0)
            assert is_reading(response)

    run(main())


def test_a_pause_returns_at_once_at_the_end_of_the_body() -> None:
    async def main() -> None:
        async with watch_steps(b"one") as response:
            chunks = response.content.iter_any()
            assert await anext(chunks) == b"one"
            await asyncio.sleep(1.0)
            async with asyncio.timeout(0.001):
                await pause_reading(response, 1.0)
            assert [chunk async for chunk in chunks] == []

    run(main())


def test_a_connection_that_breaks_during_a_pause_raises_afterwards() -> None:
    received: list[bytes] = []

    async def main() -> None:
        async with watch_steps(b"one", 0.005, b"two", CUT) as response:
            chunks = response.content.iter_any()
            received.append(await anext(chunks))
            await pause_reading(response, 0.02)
            received.append(b"".join([chunk async for chunk in chunks]))

    with pytest.raises(UnreachableError):
        run(main())
    assert received == [b"one"]


def test_a_response_of_one_object_is_limited() -> None:
    async def main() -> None:
        async with ScriptedServer() as server, open_transport(server) as transport:
            server.respond("GET /x", Reply(body=b"1" * 100), Reply(body=b"1" * 101))
            request = Request("GET", "/x", max_response_bytes=100)
            assert await transport.call(request) == b"1" * 100
            with pytest.raises(InvalidResponseError, match="GET /x: a response of more than 100 bytes"):
                await transport.call(request)

    run(main())
