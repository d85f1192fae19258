"""Pods per second that are scheduled in one process, with all nodes scored: one JSON line per workload.

    python tests/bench/core.py [--nodes 5000] [--init 2000] [--measure 2000] [--nominated 0] [WORKLOAD ...]

Each pod is compiled, scheduled and assumed as in the standalone scheduler, without informers and bindings. With
`--nominated`, preemptors of higher priority wait for as many nodes meanwhile.
"""

import argparse
import json
import platform
import resource
import sys
import time
from pathlib import Path
from random import Random

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from msgspec.structs import replace

from extender.api.kinds.pod import Pod
from extender.app import wiring
from extender.basics import gc_tuning
from extender.cache.cache import Cache
from extender.cycle.decision import ScheduleResult
from extender.cycle.node_sampling import NodeSampler
from extender.cycle.plugin_runtime import PluginRuntime
from extender.cycle.scheduling_cycle import schedule_pod
from extender.framework.profiles import Profile
from tests.bench.arguments import check_names
from tests.bench.workloads import SPECS, make_node, make_pods


def schedule_pods(cache: Cache, pods: list[Pod], profile: Profile, runtime: PluginRuntime, rng: Random) -> int:
    """Schedule *pods* one after another; return the number of scheduled pods."""
    node_sampler = NodeSampler()
    scheduled = 0
    for pod in pods:
        with cache.read() as snapshot:
            decision = schedule_pod(snapshot.make_pod_info(pod), snapshot, profile, runtime, rng, node_sampler)
        if isinstance(decision, ScheduleResult):
            cache.assume(pod, decision.suggested_host)
            scheduled += 1
    return scheduled


def measure(
    workload: str, nodes: int, init: int, count: int, *, nominated: int = 0, cache_results: bool = True
) -> dict[str, object]:
    """Run a workload once on a new cluster."""
    profile = wiring.build_setup().first_profile
    runtime = wiring.make_runtime(cache_results=cache_results)
    rng = Random(1)
    cache = Cache()
    for number in range(nodes):
        cache.add_or_update_node(make_node(number))
    schedule_pods(cache, make_pods(workload, init, "init"), profile, runtime, rng)
    for number, pod in enumerate(make_pods("basic", nominated, "nominated")):
        preemptor = replace(pod, spec=replace(pod.spec, priority=1))
        cache.add_or_update_pod(preemptor)
        cache.nominate(preemptor, f"node-{number}")
    pods_to_schedule = make_pods(workload, count, "measure")
    gc_tuning.freeze_heap()
    started, cpu_start = time.perf_counter(), time.process_time()
    scheduled = schedule_pods(cache, pods_to_schedule, profile, runtime, rng)
    seconds = time.perf_counter() - started
    return {
        "benchmark": "core",
        "workload": workload,
        "nodes": nodes,
        "init": init,
        "measure": count,
        "nominated": nominated,
        "placed": scheduled,
        "seconds": round(seconds, 3),
        "pods_per_s": round(count / seconds),
        "cpu_ms_per_pod": round((time.process_time() - cpu_start) / count * 1000, 3),
        "peak_rss_mb": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024,
        "python": platform.python_version(),
    }


def main() -> None:
    """Parse the command line and run the workloads."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("workloads", nargs="*", metavar="WORKLOAD", help=f"of {', '.join(SPECS)}; all if none is named")
    parser.add_argument("--nodes", type=int, default=5000)
    parser.add_argument("--init", type=int, default=2000, help="pods scheduled before the measurement (2000)")
    parser.add_argument("--measure", type=int, default=2000, help="pods scheduled in the measurement (2000)")
    parser.add_argument("--nominated", type=int, default=0, help="pods that are nominated for a node each (0)")
    parser.add_argument("--no-cache", action="store_true", help="run every plugin on every node for every pod")
    args = parser.parse_args()
    gc_tuning.set_gc_thresholds()
    check_names(parser, "workload", args.workloads, SPECS)
    for workload in args.workloads or SPECS:
        sizes = args.nodes, args.init, args.measure
        line = measure(workload, *sizes, nominated=args.nominated, cache_results=not args.no_cache)
        print(json.dumps(line), flush=True)


if __name__ == "__main__":
    main()
