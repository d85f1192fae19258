"""CPU time of `extender schedule --ui` for open pages, and the duration of attempts meanwhile.

    python tests/bench/live_pages.py [--nodes 20] [--pods 120] [--pages 50] [--seconds 60] [--rate 1]

Pods are created at a fixed rate, and half of them are too large. The pages are Cluster, Waiting pods, Queue and
Decisions in equal parts. Their readers do what the browser does: they read the stream of events, and request the page
again after a change. Prints one JSON line: the CPU time of the scheduler in percent of a core without and with the
readers, and the mean duration of an attempt.
"""

import argparse
import asyncio
import json
import os
import re
import sys
import tempfile
import time
from pathlib import Path

import aiohttp

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from tests.ui.live_scheduler import READER, LiveScheduler, make_node, make_pod, run_live_scheduler

_TICKS = os.sysconf("SC_CLK_TCK")
_ATTEMPTS = re.compile(r"scheduler_scheduling_attempt_duration_seconds_(sum|count)\{[^}]*\} (\S+)")
_PAGES = {
    "cluster": ("events/changes", ("", "data/cluster")),
    "waiting": ("events/changes", ("waiting",)),
    "queue": ("events/queue", ()),
    "decisions": ("events/decisions", ()),
}


class Readers:
    """The readers of the pages. `event_count` and `request_count` are their sums."""

    def __init__(self, session: aiohttp.ClientSession, url: str) -> None:
        self._session, self._url = session, url
        self.event_count = self.request_count = 0

    async def read(self, page: str) -> None:
        """Read a page until cancelled."""
        events, paths = _PAGES[page]
        version = None
        while True:
            async with self._session.get(self._url + events) as response:
                async for line in response.content:
                    if not line.startswith(b"data: "):
                        continue
                    self.event_count += 1
                    latest = json.loads(line.removeprefix(b"data: ")).get("version")
                    if latest != version:
                        version = latest
                        await self._request(paths)

    async def _request(self, paths: tuple[str, ...]) -> None:
        for path in paths:
            async with self._session.get(self._url + path) as response:
                await response.read()
                assert response.status == 200, response.status
            self.request_count += 1


def read_cpu_seconds(pid: int) -> float:
    """Return the CPU time of a process."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / _TICKS


async def read_attempts(session: aiohttp.ClientSession, url: str) -> dict[str, float]:
    """Return the number of attempts, and the sum of their durations in seconds."""
    totals = {"sum": 0.0, "count": 0.0}
    async with session.get(f"{url.removesuffix('ui/')}metrics") as response:
        for name, value in _ATTEMPTS.findall(await response.text()):
            totals[name] += float(value)
    return totals


async def wait_for_first_attempts(session: aiohttp.ClientSession, url: str) -> None:
    """Wait until the scheduler makes no attempt for some seconds."""
    count = -1.0
    while (latest := (await read_attempts(session, url))["count"]) != count:
        count = latest
        await asyncio.sleep(5.0)


async def measure(
    scheduler: LiveScheduler, session: aiohttp.ClientSession, args: argparse.Namespace
) -> dict[str, float]:
    """Create pods at the rate, and return the CPU time in percent of a core and the mean duration of an attempt."""
    start_time, start_cpu = time.monotonic(), read_cpu_seconds(scheduler.process.pid)
    before, number = await read_attempts(session, scheduler.url), 0
    while (elapsed := time.monotonic() - start_time) < args.seconds:
        if number < elapsed * args.rate:
            pod = make_pod(f"new-{start_time:.0f}-{number}", cpu="64" if number % 2 else "10m")
            await asyncio.to_thread(scheduler.create, pod)
            number += 1
        await asyncio.sleep(0.02)
    cpu_seconds = read_cpu_seconds(scheduler.process.pid) - start_cpu
    after = await read_attempts(session, scheduler.url)
    attempts = max(after["count"] - before["count"], 1.0)
    return {
        "cpu_percent": round(100 * cpu_seconds / (time.monotonic() - start_time), 2),
        "attempt_ms": round(1000 * (after["sum"] - before["sum"]) / attempts, 2),
    }


async def measure_both(scheduler: LiveScheduler, args: argparse.Namespace) -> dict[str, object]:
    """Measure without and with readers."""
    options = aiohttp.TCPConnector(ssl=False, limit=0)
    timeout = aiohttp.ClientTimeout(total=None)
    headers = {"Authorization": f"Bearer {READER}"}
    async with aiohttp.ClientSession(connector=options, timeout=timeout, headers=headers) as session:
        await wait_for_first_attempts(session, scheduler.url)
        alone = await measure(scheduler, session, args)
        readers = Readers(session, scheduler.url)
        names = list(_PAGES)
        tasks = [asyncio.create_task(readers.read(names[number % len(names)])) for number in range(args.pages)]
        await asyncio.sleep(10.0)  # connections and the first requests
        readers.event_count = readers.request_count = 0
        with_pages = await measure(scheduler, session, args)
        for task in tasks:
            assert not task.done(), task
            task.cancel()
    return {
        "benchmark": "live_pages", "nodes": args.nodes, "pods": args.pods, "pages": args.pages, "rate": args.rate,
        "cpu_percent": with_pages["cpu_percent"], "cpu_percent_without_pages": alone["cpu_percent"],
        "cpu_percent_for_pages": round(with_pages["cpu_percent"] - alone["cpu_percent"], 2),
        "attempt_ms": with_pages["attempt_ms"], "attempt_ms_without_pages": alone["attempt_ms"],
        "events": readers.event_count, "requests": readers.request_count, "load": os.getloadavg()[0],
    }  # fmt: skip


def main() -> None:
    """Parse the command line and run the benchmark."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--nodes", type=int, default=20)
    parser.add_argument("--pods", type=int, default=120, help="pods at the start, a tenth of them too large (120)")
    parser.add_argument("--pages", type=int, default=50)
    parser.add_argument("--seconds", type=float, default=60.0, help="length of each of the two measurements (60)")
    parser.add_argument("--rate", type=float, default=1.0, help="pods created per second (1)")
    args = parser.parse_args()
    nodes = [make_node(f"n{number}", cpu="16") for number in range(args.nodes)]
    pods = [make_pod(f"p{number}", cpu="10m" if number % 10 else "64") for number in range(args.pods)]
    flags = ("--authorization-always-allow-paths=/metrics",)
    with tempfile.TemporaryDirectory() as folder, run_live_scheduler(Path(folder), *nodes, *pods, flags=flags) as run:
        print(json.dumps(asyncio.run(measure_both(run, args))), flush=True)


if __name__ == "__main__":
    main()
