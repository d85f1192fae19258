"""Whose turn it is: order, a bound on the line, a bound on the wait."""

import asyncio
from collections.abc import Awaitable, Callable

import pytest

from extender.web.turns import Turns
from extender.web.wire import RequestError


def test_requests_have_their_turns_in_the_order_they_came() -> None:
    done: list[int] = []

    async def one(turns: Turns, number: int) -> None:
        async with turns:
            await asyncio.sleep(0)
            done.append(number)

    async def go() -> None:
        turns = Turns()
        await asyncio.gather(*(one(turns, number) for number in range(5)))

    asyncio.run(go())
    assert done == [0, 1, 2, 3, 4]


def refused(turns: Turns, meanwhile: Callable[[], Awaitable[None]]) -> str:
    """What a request is told that comes while another has its turn."""

    async def go() -> str:
        async with turns:
            with pytest.raises(RequestError) as caught:
                async with turns:
                    await meanwhile()
        assert caught.value.status == 503
        async with turns:  # and it is free again
            return caught.value.message

    return asyncio.run(go())


async def nothing() -> None:
    raise AssertionError("it had no turn")


def test_who_comes_when_the_line_is_full_is_told_so_at_once() -> None:
    assert refused(Turns(waiting=0), nothing) == "0 requests are waiting already; ask again later"


def test_who_waited_too_long_is_told_so() -> None:
    assert refused(Turns(seconds=0.01), nothing) == "waited 0.01 seconds for a turn; ask again later"


def test_a_turn_that_ends_in_a_fault_is_over() -> None:
    async def go() -> None:
        turns = Turns()
        for _ in range(2):
            with pytest.raises(LookupError):
                async with turns:
                    raise LookupError

    asyncio.run(go())


def test_several_may_have_their_turn_at_once() -> None:
    async def go() -> None:
        turns = Turns(at_once=2, waiting=0)
        async with turns, turns:
            with pytest.raises(RequestError):
                await turns.__aenter__()

    asyncio.run(go())
