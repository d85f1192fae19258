"""Cost of a decision by number of nodes, of assigned pods and of pending pods: one JSON line per point.

    python tests/bench/scaling.py [--longest] [nodes|pods|pending ...]

`nodes` and `pods` schedule 1,000 pods in one process like `core.py`: plain ones, and ones with a hard topology spread
constraint on zones that counts every assigned pod. `pending` adds pods to the queue, pops them, adds them back as
unschedulable, and handles the deletion of an assigned pod, which moves them all (`event_ms`). A new assigned pod moves
none: no plugin registered for it (`other_event_us`), or the hint of InterPodAffinity is SKIP (`skipped_event_us`).
"""

import argparse
import json
import sys
import time
from pathlib import Path
from random import Random

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from extender.api.codec import from_builtins
from extender.api.kinds.pod import Pod
from extender.app import wiring
from extender.basics import gc_tuning
from extender.cache.cache import Cache
from extender.framework.events import ActionType, ClusterEvent, EventResource
from extender.queueing.entity_queues import QueueSettings
from extender.queueing.pod_group_queue import make_scheduling_queue
from extender.queueing.queued_entities import QueuedPodInfo
from extender.queueing.scheduling_queue import SchedulingQueue
from tests.bench.arguments import check_names
from tests.bench.core import schedule_pods
from tests.bench.workloads import make_node, make_pod, make_pods, pod_body

CURVES = ("nodes", "pods", "pending")
NODES, MORE_NODES = (100, 1000, 5000), (20_000, 50_000)
PODS, MORE_PODS = (0, 50_000), (200_000, 500_000)
PENDING, MORE_PENDING = (1000, 10_000), (100_000,)
WORKLOADS = ("basic", "spread")
OTHER_EVENTS = 100


def make_running_pod(number: int, nodes: int) -> Pod:
    """Make a small assigned pod."""
    body = pod_body("spread", number, "init")
    requests = {"cpu": "10m", "memory": "10Mi"}
    container = {**body["spec"]["containers"][0], "resources": {"requests": requests}}
    spec = {**body["spec"], "containers": [container], "nodeName": f"node-{number % nodes}"}
    return from_builtins({**body, "spec": spec}, Pod)


def measure_scheduling(workload: str, nodes: int, assigned_count: int, count: int) -> dict[str, object]:
    """Measure the cost of scheduling *count* pods."""
    profile, runtime, cache = wiring.build_setup().first_profile, wiring.make_runtime(), Cache()
    for number in range(nodes):
        cache.add_or_update_node(make_node(number))
    for number in range(assigned_count):
        cache.add_or_update_pod(make_running_pod(number, nodes))
    schedule_pods(cache, make_pods(workload, 20, "first"), profile, runtime, Random(1))
    pods_to_schedule = make_pods(workload, count, "measure")
    gc_tuning.freeze_heap()
    started = time.process_time()
    scheduled = schedule_pods(cache, pods_to_schedule, profile, runtime, Random(1))
    cpu = time.process_time() - started
    return {
        "workload": workload, "nodes": nodes, "pods": assigned_count, "placed": scheduled,
        "cpu_us_per_pod": round(cpu / count * 1e6), "pods_per_cpu_s": round(count / cpu),
    }  # fmt: skip


def make_rejected_pods(workload: str, plugin: str, count: int) -> tuple[SchedulingQueue, float]:
    """Return a queue with *count* pods that *plugin* rejected, and the CPU seconds of their queue operations."""
    profiles, snapshot = wiring.build_setup().profiles, Cache().snapshot()
    queue = make_scheduling_queue(profiles, lambda *_: None, QueueSettings(1.0, 10.0, 300.0))
    pod_infos = [snapshot.make_pod_info(make_pod(workload, number)) for number in range(count)]
    gc_tuning.freeze_heap()
    started = time.process_time()
    for pod_info in pod_infos:
        queue.add(pod_info, 0.0)
    while isinstance(pod := queue.pop(), QueuedPodInfo):
        pod.unschedulable_plugins = frozenset((plugin,))
        queue.add_unschedulable_if_not_present(pod, 0.0)
    return queue, time.process_time() - started


def measure_event(queue: SchedulingQueue, action: ActionType, old: Pod | None, new: Pod | None, times: int) -> float:
    """Return the CPU seconds of one of *times* equal events of an assigned pod."""
    started = time.process_time()
    for _ in range(times):
        event = ClusterEvent(EventResource.ASSIGNED_POD, action, old, new)
        queue.move_all_to_active_or_backoff_queue(event, 20.0)
    return (time.process_time() - started) / times


def measure_queue(count: int) -> dict[str, object]:
    """Measure the queue operations of *count* pending pods, and events that move none or all of them."""
    queue, seconds = make_rejected_pods("basic", "NodeResourcesFit", count)
    assigned_pod = make_running_pod(0, 1)
    other_event = measure_event(queue, ActionType.ADD, None, assigned_pod, OTHER_EVENTS)
    moving_event = measure_event(queue, ActionType.DELETE, assigned_pod, None, 1)
    counts = queue.count_pending_pods()
    queue, _ = make_rejected_pods("antiaffinity", "InterPodAffinity", count)
    skipped_event = measure_event(queue, ActionType.ADD, None, assigned_pod, OTHER_EVENTS)
    return {
        "pending": count, "moved": counts["active"] + counts["backoff"],
        "cpu_us_per_pod": round(seconds / count * 1e6, 1),
        "other_event_us": round(other_event * 1e6, 1),
        "skipped_event_us": round(skipped_event * 1e6, 1),
        "event_ms": round(moving_event * 1000, 2),
    }  # fmt: skip


def main() -> None:
    """Parse the command line and measure the curves."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("curves", nargs="*", metavar="CURVE", help=f"of {', '.join(CURVES)}; all if none is named")
    parser.add_argument("--longest", action="store_true", help="up to 50,000 nodes, 500,000 pods, 100,000 pending")
    parser.add_argument("--measure", type=int, default=1000, help="pods scheduled at each point (1,000)")
    args = parser.parse_args()
    gc_tuning.set_gc_thresholds()
    check_names(parser, "curve", args.curves, CURVES)

    def print_point(curve: str, point: dict[str, object]) -> None:
        print(json.dumps({"benchmark": "scaling", "curve": curve, **point}), flush=True)

    for curve in args.curves or CURVES:
        if curve == "pending":
            for count in PENDING + MORE_PENDING * args.longest:
                print_point(curve, measure_queue(count))
            continue
        sizes = NODES + MORE_NODES * args.longest if curve == "nodes" else PODS + MORE_PODS * args.longest
        for size in sizes:
            for workload in WORKLOADS:
                nodes, assigned_count = (size, 0) if curve == "nodes" else (5000, size)
                print_point(curve, measure_scheduling(workload, nodes, assigned_count, args.measure))


if __name__ == "__main__":
    main()
