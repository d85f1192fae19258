"""Format the cache and the queue as text for the log: every node with its pods, and every queued pod.

Source: pkg/scheduler/backend/cache/debugger/debugger.go, CacheDebugger.ListenForSignal (1.36).
"""

from collections.abc import Iterator

from extender.api.kinds.pod import Pod
from extender.api.requests import is_scalar_resource
from extender.cache.snapshot import Snapshot
from extender.framework.node_info import NodeInfo, iter_node_infos
from extender.queueing.scheduling_queue import SchedulingQueue

_FIXED_RESOURCES = (("MilliCPU", "cpu"), ("Memory", "memory"), ("EphemeralStorage", "ephemeral-storage"))


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
    get_amount = node.requested if requested else node.allocatable
    fixed_amounts = [f"{name}:{get_amount(resource)}" for name, resource in _FIXED_RESOURCES]
    # kube-scheduler never sets AllowedPodNumber of the requested resources.
    fixed_amounts.append(f"AllowedPodNumber:{0 if requested else node.allocatable('pods')}")
    scalar_names = sorted(name for name in snapshot.symbols.resources if is_scalar_resource(name) and get_amount(name))
    scalar_amounts = " ".join(f"{name}:{get_amount(name)}" for name in scalar_names)
    return f"&{{{' '.join(fixed_amounts)} ScalarResources:map[{scalar_amounts}]}}"


def _format_pod(pod: Pod) -> str:
    names = f"name: {pod.metadata.name}, namespace: {pod.metadata.namespace}, uid: {pod.metadata.uid}"
    return f"{names}, phase: {pod.status.phase}, nominated node: {pod.status.nominated_node_name}\n"
