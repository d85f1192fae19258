"""Runs `extender schedule` with a probe in its event loop, which appends a JSON line per interval to a file.

    python tests/soak/measured_scheduler.py FILE SECONDS [flags of `extender schedule`]

Each line is the summary of a timer of 20 ms: the fewest tasks, and the percentile and the maximum of its lag. It also
has the number of memory blocks that Python has allocated.
"""

import asyncio
import json
import sys
from pathlib import Path
from typing import Final

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from extender.app.options import ScheduleOptions
from extender.app.schedule import run
from extender.basics import gc_tuning
from extender.cli.schedule import run_command
from tests.soak.samples import summarize_timer

_TIMER_SECONDS: Final = 0.02


async def probe(file: Path, interval: float) -> None:
    """Append a line per *interval* seconds to *file* until cancelled."""
    loop, lags, task_counts = asyncio.get_running_loop(), list[float](), list[int]()
    next_line = loop.time() + interval
    while True:
        expected = loop.time() + _TIMER_SECONDS
        await asyncio.sleep(_TIMER_SECONDS)
        now = loop.time()
        lags.append(max(0.0, now - expected) * 1000)
        task_counts.append(len(asyncio.all_tasks()) - 1)  # without this one
        if now >= next_line:
            with file.open("a") as stream:
                line = {**summarize_timer(lags, task_counts), "allocated_blocks": sys.getallocatedblocks()}
                stream.write(json.dumps(line) + "\n")
            lags.clear()
            task_counts.clear()
            next_line = now + interval


def main() -> int:
    """Run the scheduler and the probe in one event loop; return the scheduler's exit status."""
    file, interval = Path(sys.argv[1]), float(sys.argv[2])

    async def run_with_probe(options: ScheduleOptions) -> int:
        task = asyncio.create_task(probe(file, interval), name="probe")
        try:
            return await run(options)
        finally:
            task.cancel()

    gc_tuning.set_gc_thresholds()
    return run_command(sys.argv[3:], run_with_probe)


if __name__ == "__main__":
    sys.exit(main())
