"""What arrives while pieces are gathered waits in the kernel, and nothing of it is lost."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest

from extender.client.errors import UnreachableError
from extender.client.pieces import Pieces
from extender.client.transport import Request
from tests.unit.client.scripted import CUT, SILENCE, Server, Stream, talking
from tests.unit.client.virtual_time import run

WATCH = Request("GET", "/api/v1/nodes")


@asynccontextmanager
async def told(*steps: Any) -> AsyncIterator[Pieces]:
    """What comes of a server that sends *steps*."""
    async with Server() as server, talking(server) as transport:
        server.on("GET /api/v1/nodes", Stream(steps))
        async with transport.stream(WATCH, 60.0) as pieces:
            yield pieces


def reading(pieces: Pieces) -> bool:
    """Whether bytes are taken from the kernel."""
    connection = pieces._answer.connection
    assert connection is not None
    assert connection.transport is not None
    return connection.transport.is_reading()


def test_nothing_is_read_while_pieces_are_gathered() -> None:
    async def main() -> None:
        async with told(b"one", 0.005, b"two", 0.005, b"three", SILENCE) as pieces:
            arriving = aiter(pieces)
            assert await anext(arriving) == b"one"
            gathered = asyncio.create_task(pieces.gather(0.02))
            await asyncio.sleep(0.015)
            assert not reading(pieces)
            await gathered
            assert reading(pieces)
            assert await anext(arriving) == b"twothree"

    run(main())


def test_whoever_gives_up_gathering_can_go_on_reading() -> None:
    async def main() -> None:
        async with told(b"one", b"two", SILENCE) as pieces:
            with pytest.raises(TimeoutError):
                async with asyncio.timeout(0.001):
                    await pieces.gather(1.0)
            assert reading(pieces)

    run(main())


def test_a_body_that_has_ended_is_not_waited_for() -> None:
    async def main() -> None:
        async with told(b"one") as pieces:
            arriving = aiter(pieces)
            assert await anext(arriving) == b"one"
            await asyncio.sleep(1.0)
            async with asyncio.timeout(0.001):
                await pieces.gather(1.0)
            assert [piece async for piece in arriving] == []

    run(main())


def test_a_connection_that_breaks_meanwhile_is_found_afterwards() -> None:
    found: list[bytes] = []

    async def main() -> None:
        async with told(b"one", 0.005, b"two", CUT) as pieces:
            arriving = aiter(pieces)
            found.append(await anext(arriving))
            await pieces.gather(0.02)
            found.append(b"".join([piece async for piece in arriving]))

    with pytest.raises(UnreachableError):
        run(main())
    assert found == [b"one"]
