"""What the scheduler knows, as text for the log: every node with what is on it, and every waiting pod. Source: H071."""

from collections.abc import Iterator

from extender.cluster.snapshot import Snapshot
from extender.framework.node_info import NodeInfo, each_node
from extender.objects.pod import Pod
from extender.objects.requests import is_scalar
from extender.queueing.waiting import SchedulingQueue

_FIXED = (("MilliCPU", "cpu"), ("Memory", "memory"), ("EphemeralStorage", "ephemeral-storage"))


def dump_nodes(cluster: Snapshot) -> str:
    """All nodes, an empty line between them."""
    return "\n\n".join(_node(node, cluster) for node in each_node(cluster.view()))


def dump_queue(queue: SchedulingQueue) -> tuple[str, str]:
    """How many pods wait where, and the pods, a line each."""
    counts = queue.counts()
    parked = counts["unschedulable"] + counts["gated"]
    summary = f"activeQ:{counts['active']}; backoffQ:{counts['backoff']}; unschedulablePods:{parked}"
    return summary, "".join(_pod(waiting.query.pod) for waiting in queue)


def _node(node: NodeInfo, cluster: Snapshot) -> str:
    def lines() -> Iterator[str]:
        yield f"Node name: {node.name}\nDeleted: false\n"
        yield f"Requested Resources: {_amounts(node, cluster, requested=True)}\n"
        yield f"Allocatable Resources:{_amounts(node, cluster, requested=False)}\n"
        yield f"Scheduled Pods(number: {len(node.pods)}):\n"
        yield from (_pod(placed.pod) for placed in node.pods)
        nominated = cluster.nominated(node.name)
        if nominated:
            yield f"Nominated Pods(number: {len(nominated)}):\n"
            yield from (_pod(query.pod) for query in nominated)

    return "".join(lines())


def _amounts(node: NodeInfo, cluster: Snapshot, *, requested: bool) -> str:
    """In milli-CPU and bytes, as Go prints the structure."""
    amount = node.requested if requested else node.allocatable
    fixed = [f"{name}:{amount(resource)}" for name, resource in _FIXED]
    # kube-scheduler keeps no such number of what is requested.
    fixed.append(f"AllowedPodNumber:{0 if requested else node.allocatable('pods')}")
    others = sorted(name for name in cluster.vocabulary.resources if is_scalar(name) and amount(name))
    scalars = " ".join(f"{name}:{amount(name)}" for name in others)
    return f"&{{{' '.join(fixed)} ScalarResources:map[{scalars}]}}"


def _pod(pod: Pod) -> str:
    names = f"name: {pod.metadata.name}, namespace: {pod.metadata.namespace}, uid: {pod.metadata.uid}"
    return f"{names}, phase: {pod.status.phase}, nominated node: {pod.status.nominated_node_name}\n"
