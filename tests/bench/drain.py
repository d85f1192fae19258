"""How fast pods that wait are placed on a real control plane, by kube-scheduler and by ours in turn.

    python tests/bench/drain.py [--nodes 5000] [--init 2000] [--measure 2000] [--runs 1] [--by ours,kube] [WORKLOAD ...]

A scheduler places the first pods, is stopped while those that are measured are created, and goes on: the time runs from
then until the last has its node. `ours` is `extender schedule`, `kube` is kube-scheduler, `called` is kube-scheduler
with `extender serve` as its extender for filter and prioritize, by names. One JSON line a run, and a summary a
workload: the median of each, and of the ratios to kube-scheduler in the same turn.
"""

import argparse
import asyncio
import json
import os
import signal
import sys
import time
from collections import defaultdict
from pathlib import Path
from statistics import median
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from tests.bench.cluster import POD_PATHS, Crowd, control_plane, cpu_seconds, crowd, peak_mb
from tests.bench.workloads import SPECS, pod_body
from tests.controlplane.plane import ControlPlane
from tests.controlplane.process import Process, free_ports

WAYS = ("ours", "kube", "called")


def begin(plane: ControlPlane, way: str) -> tuple[Process, list[Process]]:
    """The scheduler, and everybody whose work counts."""
    fast = {"kubeconfig": str(plane.kubeconfig("system:kube-scheduler")), "qps": 5000, "burst": 5000}
    configuration: dict[str, Any] = {"clientConnection": fast}
    if way == "ours":
        ours = plane.ours(configuration)
        return ours, [ours]
    if way == "kube":
        kube = plane.scheduler(configuration)
        return kube, [kube]
    port = free_ports(1)[0]
    serve = [sys.executable, "-m", "extender", "serve", f"--kubeconfig={plane.kubeconfig()}", f"--port={port}"]
    answering = plane.run(serve, "extender")
    answering.says("the extender knows the cluster", 60)
    extender = {
        "urlPrefix": f"http://127.0.0.1:{port}", "filterVerb": "filter", "prioritizeVerb": "prioritize", "weight": 1,
        "nodeCacheCapable": True,
    }  # fmt: skip
    kube = plane.scheduler({**configuration, "extenders": [extender]})
    return kube, [kube, answering]


async def drain(plane: ControlPlane, crowd: Crowd, way: str, workload: str, args: argparse.Namespace) -> dict[str, Any]:
    """One run on an empty cluster."""
    await crowd.empty()
    await crowd.nodes(args.nodes)
    scheduler, workers = begin(plane, way)
    try:
        await crowd.create(POD_PATHS["init"], (pod_body(workload, n, "init", "init") for n in range(args.init)))
        if await crowd.until_bound("init", args.patience):
            raise SystemExit(f"{way} does not place the first pods:\n{scheduler.tail()}")
        await crowd.until_quiet("init")
        os.kill(scheduler.pid, signal.SIGSTOP)
        await crowd.create(
            POD_PATHS["measure"], (pod_body(workload, n, "measure", "measure") for n in range(args.measure))
        )
        before = [cpu_seconds(each.pid) for each in workers]
        began = time.perf_counter()
        os.kill(scheduler.pid, signal.SIGCONT)
        left = await crowd.until_bound("measure", args.patience, 0.1)
        seconds = time.perf_counter() - began
        spent = sum(map(cpu_seconds, (each.pid for each in workers))) - sum(before)
        return {
            "benchmark": "drain", "workload": workload, "by": way, "nodes": args.nodes, "init": args.init,
            "measure": args.measure, "unscheduled": left, "seconds": round(seconds, 2),
            "pods_per_s": round((args.measure - left) / seconds, 1),
            "cpu_ms_per_pod": round(spent / args.measure * 1000, 2), "peak_rss_mb": peak_mb(workers[-1].pid),
        }  # fmt: skip
    finally:
        for each in workers:
            plane.end(each)


def summary(workload: str, runs: dict[str, list[dict[str, Any]]]) -> dict[str, Any]:
    """The median of each way, and of its ratios to kube-scheduler in the same turn."""
    line: dict[str, Any] = {"benchmark": "drain-summary", "workload": workload, "runs": len(next(iter(runs.values())))}
    for way, found in runs.items():
        line[f"{way}_pods_per_s"] = median(run["pods_per_s"] for run in found)
        line[f"{way}_cpu_ms_per_pod"] = median(run["cpu_ms_per_pod"] for run in found)
        line[f"{way}_peak_rss_mb"] = median(run["peak_rss_mb"] for run in found)
        if way != "kube" and "kube" in runs:
            pairs = zip(found, runs["kube"], strict=True)
            line[f"{way}_ratio"] = round(median(one["pods_per_s"] / other["pods_per_s"] for one, other in pairs), 2)
    return line


async def compare(args: argparse.Namespace) -> None:
    """All workloads, the ways in turn."""
    with control_plane() as plane:
        async with crowd(plane) as client:
            for workload in args.workloads or SPECS:
                runs: dict[str, list[dict[str, Any]]] = defaultdict(list)
                for _ in range(args.runs):
                    for way in args.by:
                        run = await drain(plane, client, way, workload, args)
                        runs[way].append(run)
                        print(json.dumps(run), flush=True)
                print(json.dumps(summary(workload, runs)), flush=True)


def main() -> None:
    """Parse the command line, run, print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("workloads", nargs="*", metavar="WORKLOAD", help=f"of {', '.join(SPECS)}; all if none is named")
    parser.add_argument("--nodes", type=int, default=5000)
    parser.add_argument("--init", type=int, default=2000, help="pods placed before the clock starts (2000)")
    parser.add_argument("--measure", type=int, default=2000, help="pods placed while it runs (2000)")
    parser.add_argument("--runs", type=int, default=1, help="turns (1)")
    parser.add_argument("--by", type=lambda text: text.split(","), default=["ours", "kube"], help="ours,kube,called")
    parser.add_argument("--patience", type=float, default=300, help="seconds until a run is given up (300)")
    args = parser.parse_args()
    unknown = sorted({*args.workloads} - {*SPECS} | {*args.by} - {*WAYS})
    if unknown:
        parser.error(f"unknown: {', '.join(unknown)}; want workloads {', '.join(SPECS)}, by {', '.join(WAYS)}")
    asyncio.run(compare(args))


if __name__ == "__main__":
    main()
