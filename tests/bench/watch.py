"""Memory, start-up time and CPU time of the informers on a large cluster.

    python tests/bench/watch.py [CASE ...] [--nodes 5000] [--pods 50000] [--rate 1000] [--seconds 10]

`extender schedule` reads the cluster over TLS from a simulated API server in this process: nodes of 13 kB with 48
images, running pods of 4 kB of a thousand deployments. `memory` prints the peak memory of the process and the seconds
until its informers have synced, most of which are spent in the simulated server. `heartbeats` prints the share of a
core for node heartbeats at a fixed rate; the first heartbeat of a node, which is decoded in full, is measured
separately. `churn` prints the share for events of pods of another scheduler: each pod is bound, runs and is deleted.
Prints one JSON line per case.
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

from tests.bench.arguments import check_names
from tests.bench.harness import cpu_seconds, peak_mb
from tests.bench.simulated_apiserver import SimulatedApiServer, run_simulated_apiserver
from tests.controlplane.programs import make_extender_command

CASES = ("memory", "heartbeats", "churn")


@asynccontextmanager
async def run_scheduler(config: Path, nodes: int) -> AsyncIterator[int]:
    """Run `extender schedule` until its informers have synced; yield its process id.

    Raises:
        SystemExit: it has read another number of nodes.
    """
    process = await asyncio.create_subprocess_exec(
        *make_extender_command("schedule", f"--config={config}", "--secure-port=0"),
        stderr=asyncio.subprocess.PIPE,
    )  # fmt: skip
    try:
        text = ""
        while process.stderr and "is synced" not in text:
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


async def measure_cpu(pid: int, sending: Awaitable[int]) -> dict[str, object]:
    """Measure the CPU time of a process while *sending* sends events; it returns their number."""
    cpu_before, started = cpu_seconds(pid), time.perf_counter()
    count = await sending
    seconds = time.perf_counter() - started
    cpu = cpu_seconds(pid) - cpu_before
    return {
        "a_second": round(count / seconds), "core_percent": round(cpu / seconds * 100, 1),
        "cpu_us_each": round(cpu / count * 1e6),
    }  # fmt: skip


async def measure_heartbeats(server: SimulatedApiServer, pid: int, args: argparse.Namespace) -> dict[str, object]:
    """Measure the CPU time of the first heartbeat of each node, and of the following ones."""
    first = await measure_cpu(pid, server.send_heartbeats(args.rate, args.nodes / args.rate))
    later = await measure_cpu(pid, server.send_heartbeats(args.rate, args.seconds))
    return {**later, "first_us_each": first["cpu_us_each"]}


async def measure_churn(server: SimulatedApiServer, pid: int, args: argparse.Namespace) -> dict[str, object]:
    """Measure the CPU time of pod churn, after a second of warm-up."""
    await server.send_churn(args.rate, 1.0)
    return await measure_cpu(pid, server.send_churn(args.rate, args.seconds))


async def measure(args: argparse.Namespace) -> None:
    """Run the cases on a simulated API server."""
    async with run_simulated_apiserver(args.nodes, args.pods) as (server, config):
        started = time.perf_counter()
        async with run_scheduler(config, args.nodes) as pid:
            size = {"nodes": args.nodes, "pods": args.pods}
            if "memory" in args.cases:
                seconds = round(time.perf_counter() - started, 2)
                cost = {"peak_rss_mb": peak_mb(pid), "seconds": seconds, "cpu_seconds": round(cpu_seconds(pid), 2)}
                print(json.dumps({"benchmark": "watch", "case": "memory", **size, **cost}), flush=True)
            for case, measure_case in (("heartbeats", measure_heartbeats), ("churn", measure_churn)):
                if case in args.cases:
                    result = await measure_case(server, pid, args)
                    print(json.dumps({"benchmark": "watch", "case": case, **size, **result}), flush=True)


def main() -> None:
    """Parse the command line and run the cases."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("cases", nargs="*", metavar="CASE", help=f"of {', '.join(CASES)}; all if none is named")
    parser.add_argument("--nodes", type=int, default=5000)
    parser.add_argument("--pods", type=int, default=50_000)
    parser.add_argument("--rate", type=float, default=1000, help="heartbeats or pod events per second (1,000)")
    parser.add_argument("--seconds", type=float, default=10, help="seconds of each measurement (10)")
    args = parser.parse_args()
    args.cases = check_names(parser, "case", args.cases, CASES) or CASES
    asyncio.run(measure(args))


if __name__ == "__main__":
    main()
