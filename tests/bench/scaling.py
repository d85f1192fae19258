"""How the cost of a decision grows: over nodes, over pods on them, over pods that wait. One JSON line a point.

    python tests/bench/scaling.py [--longest] [nodes|pods|pending ...]

`nodes` and `pods` place 1,000 pods in process as `core.py` does, plain ones and ones that are spread over zones by a
hard constraint that counts every pod on the nodes. `pending` takes pods into the queue, pops and parks all of them as
refused for want of room, and tells of a pod that left a node, which moves them all.
"""

import argparse
import json
import sys
import time
from pathlib import Path
from random import Random

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from extender import wiring
from extender.basics import collector
from extender.cluster.state import ClusterState
from extender.framework.changes import Action, Change, Resource
from extender.objects.codec import from_builtins
from extender.objects.pod import Pod
from extender.queueing.waiting import QueueSettings, SchedulingQueue
from tests.bench.core import place
from tests.bench.named import all_known
from tests.bench.workloads import a_node, a_pod, pod_body, pods

CURVES = ("nodes", "pods", "pending")
NODES, MORE_NODES = (100, 1000, 5000), (20_000, 50_000)
PODS, MORE_PODS = (0, 50_000), (200_000, 500_000)
PENDING, MORE_PENDING = (1000, 10_000), (100_000,)
WORKLOADS = ("basic", "spread")


def occupant(number: int, nodes: int) -> Pod:
    """A small pod that runs."""
    body = pod_body("spread", number, "init")
    requests = {"cpu": "10m", "memory": "10Mi"}
    container = {**body["spec"]["containers"][0], "resources": {"requests": requests}}
    spec = {**body["spec"], "containers": [container], "nodeName": f"node-{number % nodes}"}
    return from_builtins({**body, "spec": spec}, Pod)


def placing(workload: str, nodes: int, on_them: int, count: int) -> dict[str, object]:
    """What placing *count* pods costs."""
    profile, engine, state = wiring.scheduling().first, wiring.engine(), ClusterState()
    for number in range(nodes):
        state.put_node(a_node(number))
    for number in range(on_them):
        state.put_pod(occupant(number, nodes))
    place(state, pods(workload, 20, "first"), profile, engine, Random(1))
    waiting = pods(workload, count, "measure")
    collector.settle()
    began = time.process_time()
    placed = place(state, waiting, profile, engine, Random(1))
    spent = time.process_time() - began
    return {
        "workload": workload, "nodes": nodes, "pods": on_them, "placed": placed,
        "cpu_us_per_pod": round(spent / count * 1e6), "pods_per_cpu_s": round(count / spent),
    }  # fmt: skip


def pending(count: int) -> dict[str, object]:
    """What *count* waiting pods cost: to take in and to park each, and one event that concerns them all."""
    profiles, snapshot = wiring.scheduling().profiles, ClusterState().snapshot()
    settings = QueueSettings(1.0, 10.0, 300.0, pop_early=True, groups=False)
    queue = SchedulingQueue(profiles, lambda *_: None, settings)
    queries = [snapshot.query(a_pod("basic", number)) for number in range(count)]
    collector.settle()
    began = time.process_time()
    for query in queries:
        queue.add(query, 0.0)
    while pod := queue.pop():
        pod.rejectors = frozenset(("NodeResourcesFit",))
        queue.came_back(pod, 0.0)
    taken = time.process_time()
    left = occupant(0, 1)
    queue.happened(Change(Resource.ASSIGNED_POD, Action.DELETE, left, None), 20.0)
    moved = time.process_time()
    counts = queue.counts()
    return {
        "pending": count, "moved": counts["active"] + counts["backoff"],
        "cpu_us_per_pod": round((taken - began) / count * 1e6, 1), "event_ms": round((moved - taken) * 1000, 2),
    }  # fmt: skip


def main() -> None:
    """Parse the command line, run, print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("curves", nargs="*", metavar="CURVE", help=f"of {', '.join(CURVES)}; all if none is named")
    parser.add_argument("--longest", action="store_true", help="up to 50,000 nodes, 500,000 pods, 100,000 pending")
    parser.add_argument("--measure", type=int, default=1000, help="pods placed at each point (1,000)")
    args = parser.parse_args()
    collector.look_seldom()
    all_known(parser, "curve", args.curves, CURVES)

    def tell(curve: str, point: dict[str, object]) -> None:
        print(json.dumps({"benchmark": "scaling", "curve": curve, **point}), flush=True)

    for curve in args.curves or CURVES:
        if curve == "pending":
            for count in PENDING + MORE_PENDING * args.longest:
                tell(curve, pending(count))
            continue
        sizes = NODES + MORE_NODES * args.longest if curve == "nodes" else PODS + MORE_PODS * args.longest
        for size in sizes:
            for workload in WORKLOADS:
                nodes, on_them = (size, 0) if curve == "nodes" else (5000, size)
                tell(curve, placing(workload, nodes, on_them, args.measure))


if __name__ == "__main__":
    main()
