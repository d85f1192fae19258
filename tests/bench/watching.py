"""What it costs to know a large cluster: memory, seconds until it is known, and processor time for what happens there.

    python tests/bench/watching.py [CASE ...] [--nodes 5000] [--pods 50000] [--rate 1000] [--seconds 10]

`extender schedule` reads the cluster over TLS from a server in this process that makes the objects up while they are
read: nodes of 13 kB with 48 images, running pods of 4 kB of a thousand deployments. `memory` prints the peak of the
process and the seconds until it knew the cluster, most of which this server took; `heartbeats` what share of one core
it spends while so many nodes a second tell that they are alive, as all of them did once before: the first report of a
node is read whole, and its cost is printed apart. `churn` prints that share while so many events a second tell of pods
that others place: each comes to a node, runs, and is deleted. One JSON line each.
"""

import argparse
import asyncio
import json
import re
import sys
import time
from collections.abc import AsyncIterator, Awaitable
from contextlib import asynccontextmanager
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from tests.bench.canned import Canned, canned
from tests.bench.cluster import cpu_seconds, peak_mb
from tests.bench.named import all_known

CASES = ("memory", "heartbeats", "churn")


@asynccontextmanager
async def scheduler(config: Path, nodes: int) -> AsyncIterator[int]:
    """`extender schedule` that knows the cluster: its process id.

    Raises:
        SystemExit: it knows another number of nodes.
    """
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-m", "extender", "schedule", f"--config={config}", "--secure-port=0",
        stderr=asyncio.subprocess.PIPE,
    )  # fmt: skip
    try:
        text = ""
        while process.stderr and "knows the cluster" not in text:
            line = await process.stderr.readline()
            if not line:
                raise SystemExit(f"extender schedule ended:\n{text}")
            text += line.decode()
        if not re.search(rf"nodes\W+{nodes}\b", text):
            raise SystemExit(f"not all {nodes} nodes are known:\n{text}")
        yield process.pid
    finally:
        process.terminate()
        await process.communicate()


async def share_of_core(pid: int, telling: Awaitable[int]) -> dict[str, object]:
    """What it costs to be told what *telling* tells."""
    before, began = cpu_seconds(pid), time.perf_counter()
    told = await telling
    passed = time.perf_counter() - began
    spent = cpu_seconds(pid) - before
    return {
        "a_second": round(told / passed), "core_percent": round(spent / passed * 100, 1),
        "cpu_us_each": round(spent / told * 1e6),
    }  # fmt: skip


async def heartbeats(server: Canned, pid: int, args: argparse.Namespace) -> dict[str, object]:
    """What heartbeats cost: the first of each node, and those after it, which most are."""
    first = await share_of_core(pid, server.heartbeats(args.rate, args.nodes / args.rate))
    later = await share_of_core(pid, server.heartbeats(args.rate, args.seconds))
    return {**later, "first_us_each": first["cpu_us_each"]}


async def churn(server: Canned, pid: int, args: argparse.Namespace) -> dict[str, object]:
    """What pods cost that come and go, after those of a second."""
    await server.churn(args.rate, 1.0)
    return await share_of_core(pid, server.churn(args.rate, args.seconds))


async def measure(args: argparse.Namespace) -> None:
    """Run what is asked for."""
    async with canned(args.nodes, args.pods) as (server, config):
        began = time.perf_counter()
        async with scheduler(config, args.nodes) as pid:
            size = {"nodes": args.nodes, "pods": args.pods}
            if "memory" in args.cases:
                seconds = round(time.perf_counter() - began, 2)
                cost = {"peak_rss_mb": peak_mb(pid), "seconds": seconds, "cpu_seconds": round(cpu_seconds(pid), 2)}
                print(json.dumps({"benchmark": "watching", "case": "memory", **size, **cost}), flush=True)
            for case, measured in (("heartbeats", heartbeats), ("churn", churn)):
                if case in args.cases:
                    found = await measured(server, pid, args)
                    print(json.dumps({"benchmark": "watching", "case": case, **size, **found}), flush=True)


def main() -> None:
    """Parse the command line, run, print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("cases", nargs="*", metavar="CASE", help=f"of {', '.join(CASES)}; all if none is named")
    parser.add_argument("--nodes", type=int, default=5000)
    parser.add_argument("--pods", type=int, default=50_000)
    parser.add_argument("--rate", type=float, default=1000, help="heartbeats, and events about pods, a second (1,000)")
    parser.add_argument("--seconds", type=float, default=10, help="of each (10)")
    args = parser.parse_args()
    args.cases = all_known(parser, "case", args.cases, CASES) or CASES
    asyncio.run(measure(args))


if __name__ == "__main__":
    main()
