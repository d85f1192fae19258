"""The workloads of kube-scheduler's own benchmark, by kube-scheduler and by our scheduler in turn.

    KUBERNETES=1.37.2 python tests/bench/scheduler_perf.py [--list] [--nodes N] [--pods N] [PATTERN ...]

A PATTERN selects workloads by name (FOLDER/CASE/WORKLOAD), such as `affinity/*`, with the wildcards of the shell.
Without a PATTERN, one workload of each case is selected: the first that Kubernetes marks for performance. Needs
`make control-plane`, from which Go's module cache has the files of the benchmark.

Each workload runs on an empty cluster. With --nodes or --pods, a workload may become impossible, for example because
pods that exclude each other find no node; its line then has `timed_out`.

Prints one JSON line per run. The test client is slower than upstream's, so that it may limit the pods per second of
fast workloads; the CPU time of the scheduler does not depend on it.
"""

import argparse
import asyncio
import json
import sys
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from fnmatch import fnmatch
from itertools import groupby
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from tests.bench.arguments import check_names
from tests.bench.harness import cpu_seconds, open_bulk_client, peak_mb, run_control_plane
from tests.bench.perf_operations import Operations, WorkloadError, find_unsupported
from tests.bench.perf_templates import TemplateRenderer, Workload, find_folder, list_workloads, run_renderer
from tests.controlplane.programs import RELEASE

_API_SERVER_FLAGS = (
    "--disable-admission-plugins=Priority,StorageObjectInUseProtection",
    "--runtime-config=api/all=true",
)
_SCHEDULERS = ("ours", "kube")
_IDLE_CPU_SECONDS = 0.03
"""The maximum CPU time per second of a scheduler in an empty cluster."""


def select(workloads: Iterable[Workload], patterns: Sequence[str]) -> Iterator[Workload]:
    """Return the workloads that match one of *patterns*; without patterns, one of each case."""
    if patterns:
        yield from (each for each in workloads if any(fnmatch(each.name, pattern) for pattern in patterns))
        return
    for _, case in groupby(workloads, key=lambda workload: (workload.folder, workload.case)):
        alternatives = list(case)
        yield next((each for each in alternatives if "performance" in each.labels), alternatives[-1])


def limit_size(workload: Workload, nodes: int | None, pods: int | None) -> Workload:
    """Return *workload* with at most this number of *nodes* and of *pods* of each operation; None: no limit."""

    def limit(name: str, value: Any) -> Any:
        maximum = nodes if "nodes" in name.lower() else pods if "pods" in name.lower() else None
        return (
            value if maximum is None or isinstance(value, bool) or not isinstance(value, int) else min(value, maximum)
        )

    return replace(workload, params={name: limit(name, value) for name, value in workload.params.items()})


async def measure(
    workload: Workload, scheduler_name: str, renderer: TemplateRenderer, args: argparse.Namespace
) -> dict[str, Any]:
    """Run *workload* once on an empty cluster, and return the results."""
    gates = ",".join(f"{name}={str(value).lower()}" for name, value in workload.feature_gates.items())
    gate_flags = [f"--feature-gates={gates}"] if gates else []
    with run_control_plane(*_API_SERVER_FLAGS, *gate_flags) as plane:
        if workload.name.startswith("dra/"):
            plane.start_controllers("resourceclaim-controller")
        kubeconfig = str(plane.write_kubeconfig("system:kube-scheduler"))
        connection = {"kubeconfig": kubeconfig, "qps": 5000, "burst": 5000}
        start = plane.start_extender if scheduler_name == "ours" else plane.start_kube_scheduler
        scheduler = start({**workload.configuration, "clientConnection": connection}, *gate_flags)
        await _wait_until_started(scheduler.pid)
        async with open_bulk_client(plane) as client:
            operations = Operations(workload, client, renderer, scheduler.pid, args.timeout)
            await operations.run()
        return {"params": workload.params, **operations.result, "peak_rss_mb": peak_mb(scheduler.pid)}


async def _wait_until_started(pid: int) -> None:
    """Wait until the process *pid* uses little CPU time, so that short workloads do not measure its start."""
    before, now = -1.0, cpu_seconds(pid)
    while now == 0 or now - before > _IDLE_CPU_SECONDS:
        await asyncio.sleep(1)
        before, now = now, cpu_seconds(pid)


def run(args: argparse.Namespace) -> None:
    """Run the selected workloads, each by all schedulers in turn."""
    selected = [
        limit_size(each, args.nodes, args.pods) for each in select(list_workloads(find_folder()), args.patterns)
    ]
    if not selected:
        raise SystemExit(f"no workload matches {' '.join(args.patterns)}; --list shows all")
    with run_renderer() as renderer:
        for workload in selected:
            line: dict[str, Any] = {"benchmark": "scheduler_perf", "kubernetes": RELEASE, "workload": workload.name}
            unsupported = find_unsupported(workload)
            if unsupported:
                print(json.dumps({**line, "skipped": f"needs {unsupported}"}), flush=True)
                continue
            for scheduler_name in args.by * args.runs:
                try:
                    result = asyncio.run(measure(workload, scheduler_name, renderer, args))
                except WorkloadError as error:
                    result = {"error": str(error)}
                print(json.dumps({**line, "by": scheduler_name, **result}), flush=True)


def main() -> None:
    """Parse the command line and run the workloads."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("patterns", metavar="PATTERN", nargs="*", help="selects workloads by name")
    parser.add_argument("--list", action="store_true", help="print the names of the selected workloads and exit")
    parser.add_argument("--nodes", type=int, help="upper limit of each number of nodes")
    parser.add_argument("--pods", type=int, help="upper limit of each number of pods")
    parser.add_argument("--runs", type=int, default=1, help="turns (1)")
    parser.add_argument("--by", type=lambda text: text.split(","), default=["kube", "ours"], help=",".join(_SCHEDULERS))
    parser.add_argument("--timeout", type=float, default=600, help="seconds for a workload (600)")
    args = parser.parse_args()
    check_names(parser, "scheduler", args.by, _SCHEDULERS)
    if args.list:
        for workload in select(list_workloads(find_folder()), args.patterns):
            print(workload.name)
        return
    run(args)


if __name__ == "__main__":
    main()
