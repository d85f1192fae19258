"""How many pods a second the core places in process, every node scored: one JSON line a workload.

    python tests/bench/core.py [--nodes 5000] [--init 2000] [--measure 2000] [WORKLOAD ...]

Each pod is compiled, decided and assumed, one after another, as the standalone scheduler does it; reading and binding
are left out.
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

from extender import wiring
from extender.basics import collector
from extender.cluster.state import ClusterState
from extender.decide.cycle import decide
from extender.decide.decision import Placed
from extender.decide.engine import Engine
from extender.decide.sampling import Search
from extender.framework.profiles import Profile
from extender.objects.pod import Pod
from tests.bench.named import all_known
from tests.bench.workloads import SPECS, a_node, pods


def place(state: ClusterState, waiting: list[Pod], profile: Profile, engine: Engine, chance: Random) -> int:
    """Place *waiting* one after another; returns how many found a node."""
    search = Search()
    placed = 0
    for pod in waiting:
        cluster = state.snapshot()
        decision = decide(cluster.query(pod), cluster, profile, engine, chance, search)
        del cluster  # else the next write would have to copy
        if isinstance(decision, Placed):
            state.assume(pod, decision.node)
            placed += 1
    return placed


def measure(workload: str, nodes: int, init: int, count: int, *, keep: bool = True) -> dict[str, object]:
    """One run of one workload on a fresh cluster."""
    profile = wiring.scheduling().first
    engine = wiring.engine(keep=keep)
    chance = Random(1)
    state = ClusterState()
    for number in range(nodes):
        state.put_node(a_node(number))
    place(state, pods(workload, init, "init"), profile, engine, chance)
    waiting = pods(workload, count, "measure")
    collector.settle()
    started, cpu = time.perf_counter(), time.process_time()
    placed = place(state, waiting, profile, engine, chance)
    seconds = time.perf_counter() - started
    return {
        "benchmark": "core",
        "workload": workload,
        "nodes": nodes,
        "init": init,
        "measure": count,
        "placed": placed,
        "seconds": round(seconds, 3),
        "pods_per_s": round(count / seconds),
        "cpu_ms_per_pod": round((time.process_time() - cpu) / count * 1000, 3),
        "peak_rss_mb": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024,
        "python": platform.python_version(),
    }


def main() -> None:
    """Parse the command line, run, print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("workloads", nargs="*", metavar="WORKLOAD", help=f"of {', '.join(SPECS)}; all if none is named")
    parser.add_argument("--nodes", type=int, default=5000)
    parser.add_argument("--init", type=int, default=2000, help="pods placed before the clock starts (2000)")
    parser.add_argument("--measure", type=int, default=2000, help="pods placed while it runs (2000)")
    parser.add_argument("--no-keep", action="store_true", help="ask every plugin about every node every time")
    args = parser.parse_args()
    collector.look_seldom()
    all_known(parser, "workload", args.workloads, SPECS)
    for workload in args.workloads or SPECS:
        print(json.dumps(measure(workload, args.nodes, args.init, args.measure, keep=not args.no_keep)), flush=True)


if __name__ == "__main__":
    main()
