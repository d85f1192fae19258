"""Gangs per second that are scheduled on a real control plane, by kube-scheduler and by our scheduler in turn.

    KUBERNETES=1.37.2 python tests/bench/gangs.py [--nodes 5000] [--groups 1000] [--size 3] [--runs 1] [--by ours,kube]

A scheduler is stopped while the pod groups and their pods are created. The time is measured from its continuation until
the last pod has a node, as kube-scheduler's own benchmark of gangs does. Prints one JSON line per run, and a summary:
the medians, and the median ratio to kube-scheduler in the same turn. The CPU time of etcd and the API server shows how
much of the machine is left for the scheduler.
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

from tests.bench.arguments import check_names
from tests.bench.harness import POD_PATHS, BulkClient, cpu_seconds, open_bulk_client, peak_mb, run_control_plane
from tests.bench.workloads import pod_body
from tests.controlplane.control_plane import ControlPlane
from tests.controlplane.process import Process
from tests.controlplane.programs import RELEASE
from tests.controlplane.resources import POD_GROUP_VERSION

GATES = {"1.36": "GenericWorkload=true,GangScheduling=true", "1.37": "GenericWorkload=true"}[RELEASE]
GROUP_PATH = f"/apis/{POD_GROUP_VERSION}/namespaces/measure/podgroups"
SCHEDULERS = ("ours", "kube")


def start(plane: ControlPlane, scheduler_name: str) -> Process:
    """Start a scheduler with gangs."""
    connection = {"kubeconfig": str(plane.write_kubeconfig("system:kube-scheduler")), "qps": 5000, "burst": 5000}
    gates = f"--feature-gates={GATES}"
    if scheduler_name == "kube":
        return plane.start_kube_scheduler({"clientConnection": connection}, gates)
    return plane.start_extender({"clientConnection": connection}, gates)


def group_body(number: int, size: int) -> dict[str, Any]:
    """Make a gang that needs all its *size* pods."""
    metadata = {"name": f"gang-{number}", "namespace": "measure"}
    return {"metadata": metadata, "spec": {"schedulingPolicy": {"gang": {"minCount": size}}}}


def member_body(number: int, size: int) -> dict[str, Any]:
    """Make pod *number*; *size* successive pods are a gang."""
    body = pod_body("basic", number, "measure", "measure")
    body["spec"]["schedulingGroup"] = {"podGroupName": f"gang-{number // size}"}
    return body


async def measure(
    plane: ControlPlane, client: BulkClient, scheduler_name: str, args: argparse.Namespace
) -> dict[str, Any]:
    """Schedule all gangs once on an empty cluster."""
    await client.delete_all()
    await client.call("DELETE", GROUP_PATH)
    await client.create_nodes(args.nodes)
    scheduler = start(plane, scheduler_name)
    pod_count = args.groups * args.size
    try:
        # One pod, so that the scheduler has read the nodes before it is stopped.
        await client.create(POD_PATHS["init"], [pod_body("basic", 0, "init", "init")])
        if await client.wait_until_bound("init", args.timeout):
            raise SystemExit(f"{scheduler_name} does not schedule the first pod:\n{scheduler.tail()}")
        os.kill(scheduler.pid, signal.SIGSTOP)
        await client.create(GROUP_PATH, (group_body(number, args.size) for number in range(args.groups)))
        await client.create(POD_PATHS["measure"], (member_body(number, args.size) for number in range(pod_count)))
        cpu_before, plane_cpu_before = cpu_seconds(scheduler.pid), sum(map(cpu_seconds, plane.process_ids))
        started = time.perf_counter()
        os.kill(scheduler.pid, signal.SIGCONT)
        unscheduled = await client.wait_until_bound("measure", args.timeout, 0.1)
        seconds = time.perf_counter() - started
        cpu = cpu_seconds(scheduler.pid) - cpu_before
        plane_cpu = sum(map(cpu_seconds, plane.process_ids)) - plane_cpu_before
        return {
            "benchmark": "gangs", "by": scheduler_name, "kubernetes": RELEASE, "nodes": args.nodes,
            "groups": args.groups, "size": args.size, "unscheduled": unscheduled, "seconds": round(seconds, 2),
            "pods_per_s": round((pod_count - unscheduled) / seconds, 1),
            "cpu_ms_per_pod": round(cpu / pod_count * 1000, 2),
            "control_plane_cpu_ms_per_pod": round(plane_cpu / pod_count * 1000, 2),
            "peak_rss_mb": peak_mb(scheduler.pid),
        }  # fmt: skip
    finally:
        plane.stop_program(scheduler)


def summarize(runs: dict[str, list[dict[str, Any]]]) -> dict[str, Any]:
    """Return the medians of each scheduler, and of the ratio to kube-scheduler in the same turn."""
    line: dict[str, Any] = {"benchmark": "gangs-summary", "runs": len(next(iter(runs.values())))}
    for scheduler_name, scheduler_runs in runs.items():
        line[f"{scheduler_name}_pods_per_s"] = median(run["pods_per_s"] for run in scheduler_runs)
        line[f"{scheduler_name}_cpu_ms_per_pod"] = median(run["cpu_ms_per_pod"] for run in scheduler_runs)
        line[f"{scheduler_name}_control_plane_cpu_ms_per_pod"] = median(
            run["control_plane_cpu_ms_per_pod"] for run in scheduler_runs
        )
        line[f"{scheduler_name}_peak_rss_mb"] = median(run["peak_rss_mb"] for run in scheduler_runs)
    if len(runs) > 1:
        pairs = zip(runs["ours"], runs["kube"], strict=True)
        line["ours_ratio"] = round(median(one["pods_per_s"] / other["pods_per_s"] for one, other in pairs), 2)
    return line


async def compare(args: argparse.Namespace) -> None:
    """Run the schedulers in turn."""
    flags = (f"--feature-gates={GATES}", f"--runtime-config={POD_GROUP_VERSION}=true")
    with run_control_plane(*flags) as plane:
        async with open_bulk_client(plane) as client:
            runs: dict[str, list[dict[str, Any]]] = defaultdict(list)
            for _ in range(args.runs):
                for scheduler_name in args.by:
                    runs[scheduler_name].append(await measure(plane, client, scheduler_name, args))
                    print(json.dumps(runs[scheduler_name][-1]), flush=True)
            print(json.dumps(summarize(runs)), flush=True)


def main() -> None:
    """Parse the command line and run the comparison."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--nodes", type=int, default=5000)
    parser.add_argument("--groups", type=int, default=1000, help="pod groups (1000)")
    parser.add_argument("--size", type=int, default=3, help="pods of a group (3)")
    parser.add_argument("--runs", type=int, default=1, help="turns (1)")
    parser.add_argument("--by", type=lambda text: text.split(","), default=["ours", "kube"], help=",".join(SCHEDULERS))
    parser.add_argument("--timeout", type=float, default=300, help="timeout of a run in seconds (300)")
    args = parser.parse_args()
    check_names(parser, "scheduler", args.by, SCHEDULERS)
    asyncio.run(compare(args))


if __name__ == "__main__":
    main()
