"""The contents of a running scheduler's pages: gauges, pod resources, and the dump to the log."""

import asyncio
import logging
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from typing import Final

from extender.api.kinds.pod import Pod
from extender.api.requests import is_scalar_resource
from extender.app.standalone import StandaloneScheduler
from extender.cache.snapshot import Snapshot
from extender.framework.node_info import NodeInfo, iter_node_infos
from extender.metrics.pod_resources import render_pod_resources
from extender.queueing.scheduling_queue import SchedulingQueue

log = logging.getLogger("extender.app")

_OPERATION_BY_COROUTINE: Final[Mapping[str, str]] = {
    "run_binding_cycle": "binding",
    "_evict_all": "DefaultPreemption",
    "_run_extender_prioritize": "prioritizing_extender",
    "write_status": "status",
}
"""The metric's label `operation`, by the name of the task's coroutine."""

_FIXED_RESOURCES = (("MilliCPU", "cpu"), ("Memory", "memory"), ("EphemeralStorage", "ephemeral-storage"))


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


def dump_nodes(snapshot: Snapshot) -> str:
    """Return all nodes, separated by empty lines."""
    return "\n\n".join(_format_node(node, snapshot) for node in iter_node_infos(snapshot.view()))


def dump_queue(queue: SchedulingQueue) -> tuple[str, str]:
    """Return the number of pods in each queue, and the pods, one per line."""
    counts = queue.count_pending_pods()
    unschedulable = counts["unschedulable"] + counts["gated"]
    unschedulable_name = queue.release.unschedulable_queue_name
    summary = f"activeQ:{counts['active']}; backoffQ:{counts['backoff']}; {unschedulable_name}:{unschedulable}"
    return summary, "".join(_format_pod(queued_pod.pod_info.pod) for queued_pod in queue)


def _format_node(node: NodeInfo, snapshot: Snapshot) -> str:
    def iter_lines() -> Iterator[str]:
        yield f"Node name: {node.name}\nDeleted: false\n"
        yield f"Requested Resources: {_format_amounts(node, snapshot, requested=True)}\n"
        yield f"Allocatable Resources:{_format_amounts(node, snapshot, requested=False)}\n"
        yield f"Scheduled Pods(number: {len(node.pods)}):\n"
        yield from (_format_pod(assigned_pod.pod) for assigned_pod in node.pods)
        nominated_pods = snapshot.nominated_pods(node.name)
        if nominated_pods:
            yield f"Nominated Pods(number: {len(nominated_pods)}):\n"
            yield from (_format_pod(nominated_pod.pod) for nominated_pod in nominated_pods)

    return "".join(iter_lines())


def _format_amounts(node: NodeInfo, snapshot: Snapshot, *, requested: bool) -> str:
    """Return the amounts in milli-CPU and bytes, in the format of a printed Go struct."""
    names: Iterable[str] = snapshot.symbols.resources
    get_amount = node.allocatable
    if requested:  # perhaps no node has these resources
        names = {name for pod in snapshot.pods_on(node.name).values() for name in pod.signature.assigned_amounts}
        get_amount = node.requested
    fixed_amounts = [f"{name}:{get_amount(resource)}" for name, resource in _FIXED_RESOURCES]
    # kube-scheduler never sets AllowedPodNumber of the requested resources.
    fixed_amounts.append(f"AllowedPodNumber:{0 if requested else node.allocatable('pods')}")
    scalar_names = sorted(name for name in names if is_scalar_resource(name) and get_amount(name))
    scalar_amounts = " ".join(f"{name}:{get_amount(name)}" for name in scalar_names)
    return f"&{{{' '.join(fixed_amounts)} ScalarResources:map[{scalar_amounts}]}}"


def _format_pod(pod: Pod) -> str:
    names = f"name: {pod.metadata.name}, namespace: {pod.metadata.namespace}, uid: {pod.metadata.uid}"
    return f"{names}, phase: {pod.status.phase}, nominated node: {pod.status.nominated_node_name}\n"
