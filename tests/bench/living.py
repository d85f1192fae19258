"""What a user notices on a real control plane: how soon a scheduler is ready, and how soon a new pod has its node.

    python tests/bench/living.py [startup|latency ...] [--nodes 5000] [--pods 50000] [--measure 300]

`startup` is the time from the start of `extender schedule` until it is ready, with that many pods on the nodes, and its
modules compiled, as pip and the image leave them;
`latency` the time from a pod's being told by a watch to its node's being told, one pod after another, on a cluster
where nothing else happens. One JSON line each.
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

from tests.bench.cluster import POD_PATHS, Crowd, control_plane, cpu_seconds, crowd, peak_mb
from tests.bench.named import all_known
from tests.bench.workloads import pod_body
from tests.controlplane.plane import ControlPlane
from tests.controlplane.process import Process

CASES = ("startup", "latency")


def running_pod(number: int, nodes: int) -> dict[str, Any]:
    """A pod that has its node from the beginning."""
    body = pod_body("basic", number, "init", "init")
    return {**body, "spec": {**body["spec"], "nodeName": f"node-{number % nodes}"}}


def begin(plane: ControlPlane) -> Process:
    """`extender schedule`."""
    fast = {"kubeconfig": str(plane.kubeconfig("system:kube-scheduler")), "qps": 5000, "burst": 5000}
    return plane.ours({"clientConnection": fast})


async def startup(plane: ControlPlane, args: argparse.Namespace) -> None:
    """Start it, and see when it knows the cluster."""
    began = time.perf_counter()
    process = begin(plane)
    while "knows the cluster" not in process.printed():
        await asyncio.to_thread(process.pause, 0.02)
        if time.perf_counter() - began > 300:
            raise SystemExit(f"the scheduler does not become ready:\n{process.tail()}")
    seconds = time.perf_counter() - began
    line = {
        "benchmark": "living", "case": "startup", "nodes": args.nodes, "pods": args.pods, "seconds": round(seconds, 2),
        "cpu_seconds": round(cpu_seconds(process.pid), 2), "peak_rss_mb": peak_mb(process.pid),
    }  # fmt: skip
    print(json.dumps(line), flush=True)
    plane.end(process)


@contextmanager
def compiled(plane: ControlPlane) -> Iterator[None]:
    """Modules are compiled once, by a first start with an empty cluster, and not written beside the sources."""
    with tempfile.TemporaryDirectory(prefix="bench-") as folder:
        os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
        os.environ["PYTHONPYCACHEPREFIX"] = folder
        first = begin(plane)
        first.says("knows the cluster", 300)
        plane.end(first)
        yield


@asynccontextmanager
async def told(client: Crowd) -> AsyncIterator[asyncio.Queue[tuple[float, str, bool]]]:
    """When a watch told of each pod that is measured: the moment, its name, whether it had a node."""
    found: asyncio.Queue[tuple[float, str, bool]] = asyncio.Queue()
    since = (await client.call("GET", f"{POD_PATHS['measure']}?limit=1"))["metadata"]["resourceVersion"]

    async def read() -> None:
        async with client.watch(POD_PATHS["measure"], since) as lines:
            async for line in lines:
                now = time.perf_counter()
                thing = msgspec.json.decode(line)["object"]
                found.put_nowait((now, thing["metadata"]["name"], bool(thing["spec"].get("nodeName"))))

    task = asyncio.create_task(read())
    yield found
    task.cancel()


async def latency(plane: ControlPlane, client: Crowd, args: argparse.Namespace) -> None:
    """One pod after another."""
    process = begin(plane)
    await asyncio.to_thread(process.says, "knows the cluster", 300)
    times: list[float] = []
    async with told(client) as moments:
        for number in range(args.measure):
            await client.call("POST", POD_PATHS["measure"], pod_body("basic", number, "measure", "measure"))
            added = math.nan
            while True:
                moment, name, bound = await asyncio.wait_for(moments.get(), 60)
                if name == f"measure-{number}" and bound:
                    break
                if name == f"measure-{number}" and math.isnan(added):
                    added = moment
            times.append((moment - added) * 1000)
    line = {
        "benchmark": "living", "case": "latency", "nodes": args.nodes, "pods": len(times),
        "p50_ms": round(median(times), 2), "p99_ms": round(quantiles(times, n=100, method="inclusive")[98], 2),
    }  # fmt: skip
    print(json.dumps(line), flush=True)
    plane.end(process)


async def measure(args: argparse.Namespace) -> None:
    """Run what is asked for."""
    with control_plane() as plane, compiled(plane):
        async with crowd(plane) as client:
            await client.empty()
            await client.nodes(args.nodes)
            if "latency" in args.cases:
                await latency(plane, client, args)
            if "startup" in args.cases:
                await client.create(POD_PATHS["init"], (running_pod(number, args.nodes) for number in range(args.pods)))
                await startup(plane, args)


def main() -> None:
    """Parse the command line, run, print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("cases", nargs="*", metavar="CASE", help=f"of {', '.join(CASES)}; all if none is named")
    parser.add_argument("--nodes", type=int, default=5000)
    parser.add_argument("--pods", type=int, default=50_000)
    parser.add_argument("--measure", type=int, default=300, help="pods whose latency is measured (300)")
    args = parser.parse_args()
    args.cases = all_known(parser, "case", args.cases, CASES) or CASES
    asyncio.run(measure(args))


if __name__ == "__main__":
    main()
