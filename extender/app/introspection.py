"""The contents of a running scheduler's pages: gauges, pod resources, and the dump to the log."""

import asyncio
import logging
from collections import Counter
from collections.abc import Iterator, Mapping
from typing import Final

from extender.app.standalone import StandaloneScheduler
from extender.metrics.pod_resources import render_pod_resources
from extender.queueing.dump import dump_nodes, dump_queue

log = logging.getLogger("extender.app")

_OPERATION_BY_COROUTINE: Final[Mapping[str, str]] = {
    "run_binding_cycle": "binding",
    "_evict_all": "DefaultPreemption",
    "_run_extender_prioritize": "prioritizing_extender",
    "write_status": "status",
}
"""The metric's label `operation`, by the name of the task's coroutine."""


def read_gauges(scheduler: StandaloneScheduler) -> Mapping[str, Mapping[str, int] | Mapping[tuple[str, str], int]]:
    """Return the gauges that are computed when metrics are scraped, by family and label.

    Source: pkg/scheduler/metrics/metrics.go, pendingPods, CacheSize, unschedulableReasons, InFlightEvents, Goroutines
    (1.36).
    """
    return {
        "scheduler_pending_pods": scheduler.queue.count_pending_pods(),
        "scheduler_queued_entities": scheduler.queue.count_entities(),
        "scheduler_cache_size": count_cached_objects(scheduler),
        "scheduler_unschedulable_pods": count_unschedulable_pods(scheduler),
        "scheduler_inflight_events": count_in_flight_events(scheduler),
        "scheduler_goroutines": count_running_tasks(),
    }


def count_cached_objects(scheduler: StandaloneScheduler) -> Mapping[str, int]:
    """Return the numbers of nodes, pods and assumed pods in the cache."""
    assigned_pods = scheduler.cache.assigned_pods
    assumed_count = sum(1 for pod in assigned_pods.values() if pod.assumed)
    return {"nodes": len(scheduler.cache.names), "pods": len(assigned_pods), "assumed_pods": assumed_count}


def count_unschedulable_pods(scheduler: StandaloneScheduler) -> Mapping[tuple[str, str], int]:
    """Return the number of queued pods by rejecting plugin and profile."""
    counts: Counter[tuple[str, str]] = Counter()
    for queued_pod in scheduler.queue:
        for plugin in queued_pod.rejector_plugins:
            counts[plugin, queued_pod.pod_info.spec.scheduler_name] += 1
    return counts


def count_in_flight_events(scheduler: StandaloneScheduler) -> Mapping[str, int]:
    """Return the number of in-flight events by event label; `PodPopped` counts the in-flight pods."""
    in_flight_events = scheduler.queue.in_flight_events
    return {**in_flight_events.count_by_label(), "PodPopped": len(in_flight_events)}


def count_running_tasks() -> Mapping[str, int]:
    """Return the number of running tasks by operation; tasks without an operation are not counted."""
    counts = dict.fromkeys(_OPERATION_BY_COROUTINE.values(), 0)
    for task in asyncio.all_tasks():
        operation = _OPERATION_BY_COROUTINE.get(getattr(task.get_coro(), "__name__", ""))
        if operation is not None:
            counts[operation] += 1
    return counts


def render_pod_resource_lines(scheduler: StandaloneScheduler, *, leading: bool) -> Iterator[str]:
    """Yield the lines of `/metrics/resources`; yield no lines unless *leading*.

    Source: pkg/scheduler/metrics/resources/resources.go, podResourceCollector.CollectWithStability (1.36).
    """
    if not leading:
        return iter(())
    assigned_pods = [(pod_info.pod, pod_info.node_name) for pod_info in scheduler.cache.assigned_pods.values()]
    return render_pod_resources([*assigned_pods, *((pod, "") for pod in scheduler.cache.pending_pods.values())])


def dump_to_log(scheduler: StandaloneScheduler) -> None:
    """Log the cached nodes and the queue.

    Source: pkg/scheduler/backend/cache/debugger/debugger.go, CacheDebugger.ListenForSignal (1.36).
    """
    with scheduler.cache.read() as snapshot:
        log.info("Dump of cached NodeInfo", extra={"nodes": dump_nodes(snapshot)})
    summary, pods = dump_queue(scheduler.queue)
    log.info("Dump of scheduling queue", extra={"summary": summary, "pods": pods})
