"""Event loop lag while pods are scheduled and another scheduler sends filter requests.

    python tests/bench/lag.py [--nodes 5000] [--measure 10000] [--rate 50]

`extender serve --standalone` drains the basic workload on a real control plane and serves filter requests about all
nodes at a fixed rate. Its histogram has the lag of timers, sampled 20 times per second. Prints one JSON line.
"""

import argparse
import asyncio
import json
import math
import os
import re
import signal
import sys
import time
from pathlib import Path
from statistics import median, quantiles

import aiohttp

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from tests.bench.harness import POD_PATHS, BulkClient, open_bulk_client, run_control_plane
from tests.bench.verbs import encode
from tests.bench.workloads import pod_body
from tests.controlplane.control_plane import SCHEDULER, ControlPlane
from tests.controlplane.process import free_ports
from tests.controlplane.programs import make_extender_command

BUCKET = re.compile(r'extender_event_loop_lag_seconds_bucket\{le="([^"]+)"\} (\S+)')


async def read_buckets(session: aiohttp.ClientSession, url: str) -> dict[float, float]:
    """Return the number of samples by upper bound in milliseconds."""
    async with session.get(f"{url}/metrics") as response:
        return {float(bound) * 1000: float(count) for bound, count in BUCKET.findall(await response.text())}


def percentile(before: dict[float, float], after: dict[float, float], share: float) -> float:
    """Return the percentile in milliseconds, interpolated in its bucket as by PromQL's histogram_quantile."""
    counts = {bound: after[bound] - before[bound] for bound in sorted(after)}
    rank = share * max(counts.values())
    bounds = [0.0, *counts]
    index = next(index for index, count in enumerate(counts.values()) if count >= rank)
    lower, upper = bounds[index], bounds[index + 1]
    below, within = counts.get(lower, 0.0), counts[upper]
    return round(lower + (upper - lower) * (rank - below) / (within - below), 1) if upper < math.inf else lower


async def send_requests(
    session: aiohttp.ClientSession, url: str, args: argparse.Namespace, done: asyncio.Event
) -> list[float]:
    """Send filter requests at a fixed rate until *done*; return the milliseconds of each."""
    body_end = b',"Nodes":null,"NodeNames":' + encode([f"node-{number}" for number in range(args.nodes)]) + b"}"
    times: list[float] = []

    async def send(number: int) -> None:
        pod = {**pod_body("basic", number, "requested"), "status": {"phase": "Pending"}}
        started = time.perf_counter()
        async with session.post(f"{url}/filter", data=b'{"Pod":' + encode(pod) + body_end) as response:
            content = await response.read()
        if response.status == 200 and b'"Error":""' in content[-30:]:
            times.append((time.perf_counter() - started) * 1000)

    async with asyncio.TaskGroup() as group:
        started = time.perf_counter()
        while not done.is_set():
            if args.request_count <= (time.perf_counter() - started) * args.rate:
                group.create_task(send(args.request_count))
                args.request_count += 1
            await asyncio.sleep(0.25 / args.rate)
    return times


async def measure(plane: ControlPlane, client: BulkClient, args: argparse.Namespace) -> dict[str, object]:
    """Run a drain with concurrent requests."""
    await client.delete_all()
    await client.create_nodes(args.nodes)
    port = free_ports(1)[0]
    config = plane.write_configuration(
        {"clientConnection": {"kubeconfig": str(plane.write_kubeconfig(SCHEDULER)), "qps": 5000, "burst": 5000}}
    )
    command = make_extender_command("serve", "--standalone", f"--config={config}", f"--port={port}")
    command.append("--authorization-always-allow-paths=/metrics,/healthz,/readyz,/livez")
    process = plane.start_program(command, "extender")
    await asyncio.to_thread(process.wait_for_output, "is synced", 120)
    url = f"http://127.0.0.1:{port}"
    await client.create(POD_PATHS["init"], (pod_body("basic", number, "init", "init") for number in range(200)))
    await client.wait_until_bound("init", 120)
    os.kill(process.pid, signal.SIGSTOP)
    bodies = (pod_body("basic", number, "measure", "measure") for number in range(args.measure))
    await client.create(POD_PATHS["measure"], bodies)
    os.kill(process.pid, signal.SIGCONT)
    async with aiohttp.ClientSession() as session:
        before, started, done = await read_buckets(session, url), time.perf_counter(), asyncio.Event()
        request_task = asyncio.create_task(send_requests(session, url, args, done))
        unscheduled = await client.wait_until_bound("measure", 300, 0.1)
        done.set()
        times, seconds = await request_task, time.perf_counter() - started
        after = await read_buckets(session, url)
    return {
        "benchmark": "lag", "nodes": args.nodes, "measure": args.measure, "unscheduled": unscheduled,
        "pods_per_s": round(args.measure / seconds), "asked": args.request_count, "answered": len(times),
        "lag_p50_ms": percentile(before, after, 0.5), "lag_p99_ms": percentile(before, after, 0.99),
        "filter_p50_ms": round(median(times), 1), "filter_p99_ms": round(quantiles(times, n=100)[98], 1),
    }  # fmt: skip


async def main_async(args: argparse.Namespace) -> None:
    """Start a control plane and run the benchmark."""
    with run_control_plane() as plane:
        async with open_bulk_client(plane) as client:
            print(json.dumps(await measure(plane, client, args)), flush=True)


def main() -> None:
    """Parse the command line and run the benchmark."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--nodes", type=int, default=5000)
    parser.add_argument("--measure", type=int, default=10_000, help="pods scheduled in the measurement (10,000)")
    parser.add_argument("--rate", type=float, default=50, help="filter requests per second (50)")
    asyncio.run(main_async(parser.parse_args(namespace=argparse.Namespace(request_count=0))))


if __name__ == "__main__":
    main()
