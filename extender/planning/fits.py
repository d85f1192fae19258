"""Count how many more copies of a pod fit into a cluster, and find what stops the next copy."""

from collections import Counter
from collections.abc import Callable

from extender.analysis.permit_simulation import Attempt
from extender.analysis.pod_placer import PodPlacer
from extender.answers.planning import FitCount, StoppingNodes
from extender.api.kinds.pod import Pod
from extender.cache.cache import Cache
from extender.planning.departures import make_pending_pod
from extender.planning.node_rejections import group_rejecting_nodes, make_stopping_nodes


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
    return FitCount(
        pod.key,
        len(nodes),
        failed_attempt is None,
        nodes[-1] if nodes else None,
        dict(counts),
        _group_reasons(failed_attempt, names),
        None if failed_attempt is None else failed_attempt.message,
    )


def _group_reasons(failed_attempt: Attempt | None, names: list[str]) -> list[StoppingNodes]:
    if failed_attempt is None:
        return []
    if failed_attempt.failure is None:
        return [make_stopping_nodes(failed_attempt.reasons, (), ())]
    return group_rejecting_nodes(failed_attempt.failure, names)


def make_copy(pod: Pod, number: int) -> Pod:
    """Return a pending copy of *pod* with its own name and uid."""
    name = f"{pod.metadata.name}-{number}"
    return make_pending_pod(pod, name, f"copy-of/{pod.metadata.namespace}/{name}")
