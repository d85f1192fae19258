"""The request limiter: order, queue length and timeout."""

import asyncio
from collections.abc import Awaitable, Callable

import pytest

from extender.extender_api import limiter as limiter_module
from extender.extender_api.limiter import RequestLimiter
from extender.extender_api.request_limits import RequestError


def test_requests_run_in_their_order() -> None:
    done: list[int] = []

    async def handle(limiter: RequestLimiter, number: int) -> None:
        async with limiter:
            await asyncio.sleep(0)
            done.append(number)

    async def main() -> None:
        limiter = RequestLimiter()
        await asyncio.gather(*(handle(limiter, number) for number in range(5)))

    asyncio.run(main())
    assert done == [0, 1, 2, 3, 4]


def rejection_message(limiter: RequestLimiter, meanwhile: Callable[[], Awaitable[None]]) -> str:
    """Return the error of a request that comes while another runs."""

    async def main() -> str:
        async with limiter:
            with pytest.raises(RequestError) as caught:
                async with limiter:
                    await meanwhile()
        assert caught.value.status == 503
        async with limiter:  # and it is free again
            return caught.value.message

    return asyncio.run(main())


async def fail() -> None:
    raise AssertionError("the request must not run")


def test_a_request_is_rejected_at_once_when_the_queue_is_full() -> None:
    assert rejection_message(RequestLimiter(max_waiting=0), fail) == "0 requests are already waiting; retry later"


def test_a_request_is_rejected_after_its_timeout() -> None:
    message = rejection_message(RequestLimiter(timeout=0.01), fail)
    assert message == "the request waited 0.01 seconds in the queue; retry later"


def test_an_error_lets_the_next_request_run() -> None:
    async def main() -> None:
        limiter = RequestLimiter()
        for _ in range(2):
            with pytest.raises(LookupError):
                async with limiter:
                    raise LookupError

    asyncio.run(main())


def test_several_requests_may_run_at_once() -> None:
    async def main() -> None:
        limiter = RequestLimiter(max_concurrent=2, max_waiting=0)
        async with limiter, limiter:
            with pytest.raises(RequestError):
                await limiter.__aenter__()

    asyncio.run(main())


@pytest.mark.parametrize(("seconds_per_turn", "turns"), [(0.0, 5), (0.0004, 3), (0.002, 1)])
def test_other_tasks_run_for_five_turns_or_a_millisecond_between_two_requests(
    seconds_per_turn: float, turns: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    seconds = [0.0]
    monkeypatch.setattr(limiter_module, "monotonic", lambda: seconds[0])
    counted: list[None] = []

    async def count_turns() -> None:
        while True:
            await asyncio.sleep(0)
            seconds[0] += seconds_per_turn
            counted.append(None)

    async def main() -> int:
        limiter = RequestLimiter()
        task = asyncio.create_task(count_turns())
        await asyncio.sleep(0)
        async with limiter:
            counted.clear()
        async with limiter:
            task.cancel()
            return len(counted)

    assert asyncio.run(main()) == turns
