"""The contents of a running scheduler's pages: gauges, pod resources, pod explanations, and the dump to the log."""

import asyncio
import logging
from collections import Counter
from collections.abc import Iterator, Mapping
from typing import Any, Final

import msgspec

from extender.analysis.explain import report_pod
from extender.analysis.pod_group_outcome import PodGroupSimulator
from extender.app.standalone import StandaloneScheduler
from extender.cycle.plugin_runtime import PluginRuntime
from extender.metrics.pod_resources import render_pod_resources
from extender.metrics.scheduler_metrics import GaugeSources
from extender.queueing.dump import dump_nodes, dump_queue

log = logging.getLogger("extender.app")

_OPERATIONS: Final[Mapping[str, str]] = {
    "run_binding_cycle": "binding",
    "_evict_all": "DefaultPreemption",
    "_run_extender_prioritize": "prioritizing_extender",
    "write_status": "status",
}
"""The metric's label `operation`, by the name of the task's coroutine."""


def make_gauge_sources(scheduler: StandaloneScheduler) -> GaugeSources:
    """Return the sources of the gauges that are computed when metrics are scraped."""
    return GaugeSources(
        pending_pods=scheduler.queue.count_pending_pods,
        cache_sizes=lambda: count_cached_objects(scheduler),
        unschedulable_pods=lambda: count_unschedulable_pods(scheduler),
        in_flight_events=lambda: count_in_flight_events(scheduler),
        running_tasks=count_running_tasks,
        session_count=3,
    )


def count_cached_objects(scheduler: StandaloneScheduler) -> Mapping[str, int]:
    """Return the numbers of nodes, pods and assumed pods in the cache.

    Source: pkg/scheduler/metrics/metrics.go, CacheSize (1.36).
    """
    assigned_pods = scheduler.cache.assigned_pods
    assumed_count = sum(1 for pod in assigned_pods.values() if pod.assumed)
    return {"nodes": len(scheduler.cache.snapshot()), "pods": len(assigned_pods), "assumed_pods": assumed_count}


def count_unschedulable_pods(scheduler: StandaloneScheduler) -> Mapping[tuple[str, str], int]:
    """Return the number of queued pods by rejecting plugin and profile.

    Source: pkg/scheduler/metrics/metrics.go, unschedulableReasons (1.36).
    """
    counts: Counter[tuple[str, str]] = Counter()
    for queued_pod in scheduler.queue:
        for plugin in queued_pod.rejector_plugins:
            counts[plugin, queued_pod.pod_info.spec.scheduler_name] += 1
    return counts


def count_in_flight_events(scheduler: StandaloneScheduler) -> Mapping[str, int]:
    """Return the number of in-flight events by event label; `PodPopped` counts the in-flight pods.

    Source: pkg/scheduler/metrics/metrics.go, InFlightEvents (1.36).
    """
    in_flight_events = scheduler.queue.in_flight_events
    return {**in_flight_events.count_by_label(), "PodPopped": len(in_flight_events)}


def count_running_tasks() -> Mapping[str, int]:
    """Return the number of running tasks by operation; tasks without an operation are not counted.

    Source: pkg/scheduler/metrics/metrics.go, Goroutines (1.36).
    """
    counts = dict.fromkeys(_OPERATIONS.values(), 0)
    for task in asyncio.all_tasks():
        operation = _OPERATIONS.get(getattr(task.get_coro(), "__name__", ""))
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


def explain_pod(
    scheduler: StandaloneScheduler, runtimes: Mapping[str, PluginRuntime], namespace: str, name: str, *, as_json: bool
) -> str | None:
    """Return the page `/explain` for a pending or assigned pod; None for unknown pods and other schedulers' pods.

    Plugins run on *runtimes*, which are keyed by profile and have no observers: plugin metrics count scheduling only.
    """
    key = f"{namespace}/{name}"
    for pod in scheduler.cache.pending_pods.values():
        profile = scheduler.context.profiles.get(pod.spec.scheduler_name)
        if pod.key == key and profile is not None:
            runtime = runtimes[profile.scheduler_name]
            pod_groups = PodGroupSimulator(scheduler.cache, scheduler.context.profiles, runtime)
            report = report_pod(pod, scheduler.cache, profile, runtime, pod_groups)
            return msgspec.json.encode(report.to_values()).decode() + "\n" if as_json else report.to_text()
    for pod_info in scheduler.cache.assigned_pods.values():
        if pod_info.key == key:
            values: dict[str, Any] = {"node": pod_info.node_name, "assumed": pod_info.assumed}
            text = f"Pod {key}\n  is on node {pod_info.node_name}\n"
            return msgspec.json.encode(values).decode() + "\n" if as_json else text
    return None


def dump_to_log(scheduler: StandaloneScheduler) -> None:
    """Log the cached nodes and the queue.

    Source: pkg/scheduler/backend/cache/debugger/debugger.go, CacheDebugger.ListenForSignal (1.36).
    """
    log.info("Dump of cached NodeInfo", extra={"nodes": dump_nodes(scheduler.cache.snapshot())})
    summary, pods = dump_queue(scheduler.queue)
    log.info("Dump of scheduling queue", extra={"summary": summary, "pods": pods})
