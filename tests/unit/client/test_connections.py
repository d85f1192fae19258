"""The recovery signal: waiting tasks wake when a request succeeds."""

import asyncio

from extender.client.connections import RecoverySignal
from tests.unit.client.virtual_time import current_loop, run


def test_a_success_ends_the_wait_of_all_tasks() -> None:
    async def main() -> None:
        signal = RecoverySignal()
        start_time = current_loop().time()
        tasks = [asyncio.create_task(signal.wait(30, 0)) for _ in range(2)]
        await asyncio.sleep(5)
        signal.record_success()
        assert await asyncio.gather(*tasks) == [True, True]
        assert current_loop().time() == start_time + 5

    run(main())


def test_a_success_before_the_wait_counts_if_it_is_newer_than_the_failure() -> None:
    async def main() -> None:
        signal = RecoverySignal()
        signal.record_success()
        start_time = current_loop().time()
        assert await signal.wait(30, 0) is True
        assert await signal.wait(30, 1) is False
        assert current_loop().time() == start_time + 30

    run(main())
