"""Count how many more copies of a pod fit into a cluster, and find what stops the next copy."""

from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from extender.analysis.pod_placer import Attempt, PodPlacer
from extender.api.kinds.pod import Pod
from extender.cache.cache import Cache
from extender.planning.departures import make_pending_pod
from extender.planning.node_rejections import NodeGroup, group_rejecting_nodes


@dataclass(frozen=True, slots=True)
class FitCount:
    """The number of copies of a pod that fit.

    Attributes:
        pod: the pod that is copied.
        count: the number of copies that fit.
        copies_by_node: the number of copies on each node, the largest number first, then by name.
        last_node: the node of the last copy; empty if no copy fits.
        failed_attempt: the failed attempt to place the next copy; None if the limit was reached.
        stopped_by: the nodes that reject the next copy, grouped by their reasons; one group without nodes if the copy
            failed for a reason that concerns no node.
    """

    pod: Pod
    count: int
    copies_by_node: Mapping[str, int]
    last_node: str
    failed_attempt: Attempt | None
    stopped_by: tuple[NodeGroup, ...]


def count_fitting_copies(
    cache: Cache, pod: Pod, placer: PodPlacer, *, limit: int, progress: Callable[[int], None] | None = None
) -> FitCount:
    """Place copies of *pod* until one does not fit. Then take all copies off their nodes.

    Pods without a node use no resources, except pods that are nominated in *cache*. No pod is evicted.

    Args:
        cache: the cache with the cluster. After the call it has the same pods as before.
        pod: the pod to copy; its node, its status and its uid are ignored.
        placer: a new placer of *cache*, with a profile for the pod's scheduler name.
        limit: the maximum number of copies, at least 1.
        progress: called after each placed copy with the number of copies; None means no call.
    """
    nodes: list[str] = []
    failed_attempt: Attempt | None = None
    names = list(cache.names)
    copies: list[Pod] = []
    while failed_attempt is None and len(nodes) < limit:
        copy = make_copy(pod, len(nodes))
        attempt = placer.place(copy)
        if attempt.node:
            nodes.append(attempt.node)
            copies.append(copy)
            if progress is not None:
                progress(len(nodes))
        else:
            failed_attempt = attempt
    placer.unassign_placed_pods()
    for copy in copies:
        cache.remove_pod(copy.metadata.uid)
    counts = sorted(Counter(nodes).items(), key=lambda item: (-item[1], item[0]))
    stopped_by = _group_reasons(failed_attempt, names)
    return FitCount(pod, len(nodes), dict(counts), nodes[-1] if nodes else "", failed_attempt, stopped_by)


def _group_reasons(failed_attempt: Attempt | None, names: list[str]) -> tuple[NodeGroup, ...]:
    if failed_attempt is None:
        return ()
    if failed_attempt.failure is None:
        return (NodeGroup(failed_attempt.reasons, (), ()),)
    return group_rejecting_nodes(failed_attempt.failure, names)


def make_copy(pod: Pod, number: int) -> Pod:
    """Return a pending copy of *pod* with its own name and uid."""
    name = f"{pod.metadata.name}-{number}"
    return make_pending_pod(pod, name, f"copy-of/{pod.metadata.namespace}/{name}")
