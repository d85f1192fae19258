"""How late the event loop is while pods are placed and another scheduler asks beside it.

    python tests/bench/lag.py [--nodes 5000] [--measure 3000] [--rate 50]

`extender serve --standalone` drains the basic workload on a real control plane, and answers so many filter requests a
second about all nodes meanwhile. Its own histogram says how late timers were during that time: `p99_ms` is the upper
bound of the bucket that the 99th percentile is in. One JSON line.
"""

import argparse
import asyncio
import json
import os
import re
import signal
import sys
import time
from pathlib import Path
from statistics import median, quantiles

import aiohttp

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from tests.bench.cluster import POD_PATHS, Crowd, control_plane, crowd
from tests.bench.verbs import compact
from tests.bench.workloads import pod_body
from tests.controlplane.plane import SCHEDULER, ControlPlane
from tests.controlplane.process import free_ports

BUCKET = re.compile(r'extender_event_loop_lag_seconds_bucket\{le="([^"]+)"\} (\S+)')


async def buckets(session: aiohttp.ClientSession, url: str) -> dict[float, float]:
    """Upper bound in milliseconds -> samples up to it."""
    async with session.get(f"{url}/metrics") as reply:
        return {float(bound) * 1000: float(count) for bound, count in BUCKET.findall(await reply.text())}


def percentile(before: dict[float, float], after: dict[float, float], share: float) -> float:
    """The upper bound of the bucket it is in."""
    counted = {bound: after[bound] - before[bound] for bound in after}
    total = max(counted.values())
    return next(bound for bound, count in sorted(counted.items()) if count >= share * total)


async def ask(session: aiohttp.ClientSession, url: str, args: argparse.Namespace, done: asyncio.Event) -> list[float]:
    """Filter requests at a steady rate until *done*; milliseconds each took."""
    rest = b',"Nodes":null,"NodeNames":' + compact([f"node-{number}" for number in range(args.nodes)]) + b"}"
    times: list[float] = []

    async def one(number: int) -> None:
        pod = {**pod_body("basic", number, "asked"), "status": {"phase": "Pending"}}
        began = time.perf_counter()
        async with session.post(f"{url}/filter", data=b'{"Pod":' + compact(pod) + rest) as reply:
            answer = await reply.read()
        if reply.status == 200 and b'"Error":""' in answer[-30:]:
            times.append((time.perf_counter() - began) * 1000)

    async with asyncio.TaskGroup() as group:
        began = time.perf_counter()
        while not done.is_set():
            if args.asked <= (time.perf_counter() - began) * args.rate:
                group.create_task(one(args.asked))
                args.asked += 1
            await asyncio.sleep(0.25 / args.rate)
    return times


async def measure(plane: ControlPlane, client: Crowd, args: argparse.Namespace) -> dict[str, object]:
    """One drain with requests beside it."""
    await client.empty()
    await client.nodes(args.nodes)
    port = free_ports(1)[0]
    config = plane.configure(
        {"clientConnection": {"kubeconfig": str(plane.kubeconfig(SCHEDULER)), "qps": 5000, "burst": 5000}}
    )
    command = [sys.executable, "-m", "extender", "serve", "--standalone", f"--config={config}", f"--port={port}"]
    command.append("--authorization-always-allow-paths=/metrics,/healthz,/readyz,/livez")
    process = plane.run(command, "extender")
    await asyncio.to_thread(process.says, "knows the cluster", 120)
    url = f"http://127.0.0.1:{port}"
    await client.create(POD_PATHS["init"], (pod_body("basic", number, "init", "init") for number in range(200)))
    await client.until_bound("init", 120)
    os.kill(process.pid, signal.SIGSTOP)
    bodies = (pod_body("basic", number, "measure", "measure") for number in range(args.measure))
    await client.create(POD_PATHS["measure"], bodies)
    os.kill(process.pid, signal.SIGCONT)
    async with aiohttp.ClientSession() as session:
        before, began, done = await buckets(session, url), time.perf_counter(), asyncio.Event()
        asking = asyncio.create_task(ask(session, url, args, done))
        left = await client.until_bound("measure", 300, 0.1)
        done.set()
        times, seconds = await asking, time.perf_counter() - began
        after = await buckets(session, url)
    return {
        "benchmark": "lag", "nodes": args.nodes, "measure": args.measure, "unscheduled": left,
        "pods_per_s": round(args.measure / seconds), "asked": args.asked, "answered": len(times),
        "lag_p50_ms": percentile(before, after, 0.5), "lag_p99_ms": percentile(before, after, 0.99),
        "filter_p50_ms": round(median(times), 1), "filter_p99_ms": round(quantiles(times, n=100)[98], 1),
    }  # fmt: skip


async def main_async(args: argparse.Namespace) -> None:
    """On a control plane of its own."""
    with control_plane() as plane:
        async with crowd(plane) as client:
            print(json.dumps(await measure(plane, client, args)), flush=True)


def main() -> None:
    """Parse the command line, run, print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--nodes", type=int, default=5000)
    parser.add_argument("--measure", type=int, default=3000, help="pods placed meanwhile (3,000)")
    parser.add_argument("--rate", type=float, default=50, help="filter requests a second (50)")
    asyncio.run(main_async(parser.parse_args(namespace=argparse.Namespace(asked=0))))


if __name__ == "__main__":
    main()
