"""Pods per second that are scheduled on a real control plane, by kube-scheduler and by our scheduler in turn.

    python tests/bench/drain.py [--nodes 5000] [--init 2000] [--measure 2000] [--runs 1] [--by ours,kube] [WORKLOAD ...]

A scheduler schedules the first pods and is stopped while the measured pods are created. The time is measured from its
continuation until the last pod has a node. Prints one JSON line per run, and a summary per workload: the medians, and
the median ratios to kube-scheduler in the same turn. The schedulers:

- `ours`: `extender schedule`
- `kube`: kube-scheduler
- `called`: kube-scheduler with `extender serve` as its extender for filter and prioritize, by node names
- `relative`: as `called`, with `extender serve --score-range=relative`
- `best`: as `called`, with `extender serve --filter-answer=best`
- `handed`: as `best`, but kube-scheduler does not run InterPodAffinity, PodTopologySpread and its Score plugins
- `full`: as `handed`, and kube-scheduler sends all nodes
- `echo-called`, `echo-best`, `echo-handed`: the same calls to an extender that decides nothing (`tests/bench/echo.py`)
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

import yaml

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from tests.bench.arguments import check_names
from tests.bench.harness import POD_PATHS, BulkClient, cpu_seconds, open_bulk_client, peak_mb, run_control_plane
from tests.bench.workloads import SPECS, pod_body
from tests.controlplane.control_plane import ControlPlane
from tests.controlplane.process import Process, free_ports
from tests.controlplane.programs import make_extender_command

SCHEDULERS = ("ours", "kube", "called", "relative", "best", "handed", "full", "echo-called", "echo-best", "echo-handed")
HANDED_OVER = yaml.safe_load(
    (Path(__file__).resolve().parents[2] / "scheduler-config" / "handed-over.yaml").read_text()
)["profiles"]


def start(plane: ControlPlane, scheduler_name: str) -> tuple[Process, list[Process]]:
    """Start a scheduler; return its process and all measured processes."""
    connection = {"kubeconfig": str(plane.write_kubeconfig("system:kube-scheduler")), "qps": 5000, "burst": 5000}
    configuration: dict[str, Any] = {"clientConnection": connection}
    if scheduler_name == "ours":
        ours = plane.start_extender(configuration)
        return ours, [ours]
    if scheduler_name == "kube":
        kube = plane.start_kube_scheduler(configuration)
        return kube, [kube]
    way = scheduler_name.removeprefix("echo-")
    if way in ("handed", "full"):
        configuration["profiles"] = HANDED_OVER
    if way == "full":
        configuration["percentageOfNodesToScore"] = 100
    port = free_ports(1)[0]
    extender_process = (_start_extender if way == scheduler_name else _start_echo)(plane, way, port)
    extender = {
        "urlPrefix": f"http://127.0.0.1:{port}", "filterVerb": "filter", "prioritizeVerb": "prioritize", "weight": 1,
        "nodeCacheCapable": True,
    }  # fmt: skip
    kube = plane.start_kube_scheduler({**configuration, "extenders": [extender]})
    return kube, [kube, extender_process]


def _start_extender(plane: ControlPlane, way: str, port: int) -> Process:
    """Start `extender serve`, and wait until it has read the cluster."""
    command = make_extender_command("serve", f"--kubeconfig={plane.write_kubeconfig()}", f"--port={port}")
    if way == "relative":
        command.append("--score-range=relative")
    elif way != "called":
        command.append("--filter-answer=best")
    process = plane.start_program(command, "extender")
    process.wait_for_output("the cache of the extender is synced", 60)
    return process


def _start_echo(plane: ControlPlane, way: str, port: int) -> Process:
    """Start the extender that decides nothing."""
    command = [sys.executable, str(Path(__file__).with_name("echo.py")), f"--port={port}"]
    if way != "called":
        command.append("--one")
    process = plane.start_program(command, "echo")
    process.wait_for_output("the echo is ready", 60)
    return process


async def drain(
    plane: ControlPlane, client: BulkClient, scheduler_name: str, workload: str, args: argparse.Namespace
) -> dict[str, Any]:
    """Run a workload once on an empty cluster."""
    await client.delete_all()
    await client.create_nodes(args.nodes)
    scheduler, processes = start(plane, scheduler_name)
    try:
        await client.create(POD_PATHS["init"], (pod_body(workload, n, "init", "init") for n in range(args.init)))
        if await client.wait_until_bound("init", args.timeout):
            raise SystemExit(f"{scheduler_name} does not schedule the first pods:\n{scheduler.tail()}")
        await client.wait_until_no_events("init")
        os.kill(scheduler.pid, signal.SIGSTOP)
        await client.create(
            POD_PATHS["measure"], (pod_body(workload, n, "measure", "measure") for n in range(args.measure))
        )
        cpu_before = [cpu_seconds(process_.pid) for process_ in processes]
        started = time.perf_counter()
        os.kill(scheduler.pid, signal.SIGCONT)
        unscheduled = await client.wait_until_bound("measure", args.timeout, 0.1)
        seconds = time.perf_counter() - started
        cpu = sum(map(cpu_seconds, (process_.pid for process_ in processes))) - sum(cpu_before)
        return {
            "benchmark": "drain", "workload": workload, "by": scheduler_name, "nodes": args.nodes, "init": args.init,
            "measure": args.measure, "unscheduled": unscheduled, "seconds": round(seconds, 2),
            "pods_per_s": round((args.measure - unscheduled) / seconds, 1),
            "cpu_ms_per_pod": round(cpu / args.measure * 1000, 2), "peak_rss_mb": peak_mb(processes[-1].pid),
        }  # fmt: skip
    finally:
        for process_ in processes:
            plane.stop_program(process_)


def summarize(workload: str, runs: dict[str, list[dict[str, Any]]]) -> dict[str, Any]:
    """Return the medians of each scheduler, and of its ratios to kube-scheduler in the same turn."""
    line: dict[str, Any] = {"benchmark": "drain-summary", "workload": workload, "runs": len(next(iter(runs.values())))}
    for scheduler_name, scheduler_runs in runs.items():
        line[f"{scheduler_name}_pods_per_s"] = median(run["pods_per_s"] for run in scheduler_runs)
        line[f"{scheduler_name}_cpu_ms_per_pod"] = median(run["cpu_ms_per_pod"] for run in scheduler_runs)
        line[f"{scheduler_name}_peak_rss_mb"] = median(run["peak_rss_mb"] for run in scheduler_runs)
        if scheduler_name != "kube" and "kube" in runs:
            pairs = zip(scheduler_runs, runs["kube"], strict=True)
            line[f"{scheduler_name}_ratio"] = round(
                median(one["pods_per_s"] / other["pods_per_s"] for one, other in pairs), 2
            )
    return line


async def compare(args: argparse.Namespace) -> None:
    """Run all workloads with the schedulers in turn."""
    with run_control_plane() as plane:
        async with open_bulk_client(plane) as client:
            for workload in args.workloads or SPECS:
                runs: dict[str, list[dict[str, Any]]] = defaultdict(list)
                for _ in range(args.runs):
                    for scheduler_name in args.by:
                        run = await drain(plane, client, scheduler_name, workload, args)
                        runs[scheduler_name].append(run)
                        print(json.dumps(run), flush=True)
                print(json.dumps(summarize(workload, runs)), flush=True)


def main() -> None:
    """Parse the command line and run the comparison."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("workloads", nargs="*", metavar="WORKLOAD", help=f"of {', '.join(SPECS)}; all if none is named")
    parser.add_argument("--nodes", type=int, default=5000)
    parser.add_argument("--init", type=int, default=2000, help="pods scheduled before the measurement (2000)")
    parser.add_argument("--measure", type=int, default=2000, help="pods scheduled in the measurement (2000)")
    parser.add_argument("--runs", type=int, default=1, help="turns (1)")
    parser.add_argument("--by", type=lambda text: text.split(","), default=["ours", "kube"], help=",".join(SCHEDULERS))
    parser.add_argument("--timeout", type=float, default=300, help="timeout of a run in seconds (300)")
    args = parser.parse_args()
    check_names(parser, "workload", args.workloads, SPECS)
    check_names(parser, "scheduler", args.by, SCHEDULERS)
    asyncio.run(compare(args))


if __name__ == "__main__":
    main()
