"""Start-up time and scheduling latency on a real control plane.

    python tests/bench/latency.py [startup|latency ...] [--nodes 5000] [--pods 50000] [--measure 300]
        [--by ours] [--workload basic] [--runs 1]

`startup` is the time from the start of `extender schedule` until it is ready, with the given number of pods on the
nodes and with compiled modules, as after an installation. `latency` is the time from the watch event of a new pod to
the one of its node, one pod after another, on an otherwise idle cluster; `--by` names the schedulers of
`tests/bench/drain.py` that are measured in turn. Prints one JSON line per case, scheduler and turn.
"""

import argparse
import asyncio
import json
import math
import os
import sys
import tempfile
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path
from statistics import median, quantiles
from typing import Any

import msgspec

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from tests.bench.arguments import check_names
from tests.bench.drain import SCHEDULERS, start
from tests.bench.harness import POD_PATHS, BulkClient, cpu_seconds, open_bulk_client, peak_mb, run_control_plane
from tests.bench.workloads import SPECS, pod_body
from tests.controlplane.control_plane import ControlPlane

CASES = ("startup", "latency")
WARM_UP = 20
"""Pods before the measured ones: the first pod waits for the start of the scheduler."""


def running_pod(number: int, nodes: int) -> dict[str, Any]:
    """Make an assigned pod."""
    body = pod_body("basic", number, "init", "init")
    return {**body, "spec": {**body["spec"], "nodeName": f"node-{number % nodes}"}}


async def measure_startup(plane: ControlPlane, args: argparse.Namespace) -> None:
    """Measure the start of the scheduler until its informers have synced."""
    started = time.perf_counter()
    process, _ = start(plane, "ours")
    while "is synced" not in process.output():
        await asyncio.to_thread(process.pause, 0.02)
        if time.perf_counter() - started > 300:
            raise SystemExit(f"the scheduler does not become ready:\n{process.tail()}")
    seconds = time.perf_counter() - started
    line = {
        "benchmark": "latency", "case": "startup", "nodes": args.nodes, "pods": args.pods, "seconds": round(seconds, 2),
        "cpu_seconds": round(cpu_seconds(process.pid), 2), "peak_rss_mb": peak_mb(process.pid),
    }  # fmt: skip
    print(json.dumps(line), flush=True)
    plane.stop_program(process)


@contextmanager
def compile_modules(plane: ControlPlane) -> Iterator[None]:
    """Compile the modules by a first start on an empty cluster, into a cache folder outside of the sources."""
    with tempfile.TemporaryDirectory(prefix="bench-") as folder:
        os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
        os.environ["PYTHONPYCACHEPREFIX"] = folder
        first, _ = start(plane, "ours")
        first.wait_for_output("is synced", 300)
        plane.stop_program(first)
        yield


@asynccontextmanager
async def watch_pods(client: BulkClient) -> AsyncIterator[asyncio.Queue[tuple[float, str, bool]]]:
    """Watch the measured pods; yield a queue of time, pod name, and whether the pod has a node."""
    events: asyncio.Queue[tuple[float, str, bool]] = asyncio.Queue()
    since = (await client.call("GET", f"{POD_PATHS['measure']}?limit=1"))["metadata"]["resourceVersion"]

    async def read() -> None:
        async with client.watch(POD_PATHS["measure"], since) as lines:
            async for line in lines:
                time_ = time.perf_counter()
                pod = msgspec.json.decode(line)["object"]
                events.put_nowait((time_, pod["metadata"]["name"], bool(pod["spec"].get("nodeName"))))

    task = asyncio.create_task(read())
    yield events
    task.cancel()


async def measure_latency(
    plane: ControlPlane, client: BulkClient, scheduler_name: str, args: argparse.Namespace
) -> dict[str, Any]:
    """Measure the latency of pods one after another, on nodes without other pods."""
    await client.delete_all()
    await client.create_nodes(args.nodes)
    _, processes = start(plane, scheduler_name)
    times: list[float] = []
    async with watch_pods(client) as events:
        for number in range(WARM_UP + args.measure):
            await client.call("POST", POD_PATHS["measure"], pod_body(args.workload, number, "measure", "measure"))
            added = math.nan
            while True:
                event_time, name, bound = await asyncio.wait_for(events.get(), 60)
                if name == f"measure-{number}" and bound:
                    break
                if name == f"measure-{number}" and math.isnan(added):
                    added = event_time
            times.append((event_time - added) * 1000)
    for process in processes:
        plane.stop_program(process)
    measured = times[WARM_UP:]
    return {
        "benchmark": "latency", "case": "latency", "by": scheduler_name, "workload": args.workload,
        "nodes": args.nodes, "pods": len(measured), "p50_ms": round(median(measured), 2),
        "p99_ms": round(quantiles(measured, n=100, method="inclusive")[98], 2),
    }  # fmt: skip


async def measure(args: argparse.Namespace) -> None:
    """Run the cases on a control plane."""
    with run_control_plane() as plane, compile_modules(plane):
        async with open_bulk_client(plane) as client:
            turns = [scheduler_name for _ in range(args.runs) for scheduler_name in args.by]
            for scheduler_name in turns if "latency" in args.cases else ():
                print(json.dumps(await measure_latency(plane, client, scheduler_name, args)), flush=True)
            if "startup" in args.cases:
                await client.delete_all()
                await client.create_nodes(args.nodes)
                await client.create(POD_PATHS["init"], (running_pod(number, args.nodes) for number in range(args.pods)))
                await measure_startup(plane, args)


def main() -> None:
    """Parse the command line and run the cases."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("cases", nargs="*", metavar="CASE", help=f"of {', '.join(CASES)}; all if none is named")
    parser.add_argument("--nodes", type=int, default=5000)
    parser.add_argument("--pods", type=int, default=50_000)
    parser.add_argument("--measure", type=int, default=300, help="pods whose latency is measured (300)")
    parser.add_argument("--by", type=lambda text: text.split(","), default=["ours"], help=",".join(SCHEDULERS))
    parser.add_argument("--workload", choices=SPECS, default="basic", help="the pods whose latency is measured (basic)")
    parser.add_argument("--runs", type=int, default=1, help="turns of the schedulers (1)")
    args = parser.parse_args()
    check_names(parser, "scheduler", args.by, SCHEDULERS)
    args.cases = check_names(parser, "case", args.cases, CASES) or CASES
    asyncio.run(measure(args))


if __name__ == "__main__":
    main()
