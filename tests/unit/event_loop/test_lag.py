"""The lag of the event loop."""

import asyncio
from collections.abc import Callable
from itertools import chain, repeat

import pytest
import uvloop

from extender.event_loop import lag


@pytest.mark.parametrize("loop_factory", [asyncio.new_event_loop, uvloop.new_event_loop])
def test_the_lag_of_a_timer_is_the_time_after_its_delay(
    loop_factory: Callable[[], asyncio.AbstractEventLoop], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A timer of 50 ms that starts at 10.0 is 30 ms late at 10.08; one that is early has no lag."""
    times = chain([10.0, 10.08, 20.0, 20.049, 30.0, 30.051], repeat(40.0))
    monkeypatch.setattr(lag, "perf_counter", lambda: next(times))
    samples: list[float] = []

    async def measure() -> None:
        enough = asyncio.Event()

        def observe(seconds: float) -> None:
            samples.append(seconds)
            if len(samples) == 3:
                enough.set()

        task = asyncio.create_task(lag.observe_lag(observe))
        await enough.wait()
        task.cancel()

    with asyncio.Runner(loop_factory=loop_factory) as runner:
        runner.run(measure())
    assert samples == pytest.approx([0.03, 0.0, 0.001])
