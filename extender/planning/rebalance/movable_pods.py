"""Select the pods that a plan may move, and give the reason for each pod that it may not move."""

from collections.abc import Collection
from typing import Final

from extender.cache.pod_info import AssignedPodInfo
from extender.planning.departures import Departure, classify_departure
from extender.planning.remaining_disruptions import RemainingDisruptions

_EVICTION_FORBIDDEN: Final = (
    ("cluster-autoscaler.kubernetes.io/safe-to-evict", "false"),
    ("karpenter.sh/do-not-disrupt", "true"),
)
"""The annotations that tell other tools not to evict a pod.

Source: kubernetes/autoscaler, cluster-autoscaler/utils/drain/drain.go, PodSafeToEvictKey;
kubernetes-sigs/karpenter, pkg/apis/v1/labels.go, DoNotDisruptAnnotationKey.
"""


def stays_with_node(pod: AssignedPodInfo) -> bool:
    """Return whether *pod* is a DaemonSet pod, a mirror pod or a pod that is being deleted.

    Such a pod is never evicted, and a node with only such pods is empty.
    """
    return classify_departure(pod.pod) in {Departure.DAEMON_OR_MIRROR, Departure.TERMINATING}


def _find_lasting_obstacle(pod: AssignedPodInfo, scheduler_names: Collection[str]) -> str:
    """Return the reason why *pod* may never be evicted, whatever its budgets allow; empty if it may be evicted."""
    departure = classify_departure(pod.pod)
    if departure is Departure.DAEMON_OR_MIRROR:
        return "belongs to its node"
    if departure is Departure.TERMINATING:
        return "is being deleted"
    if departure is Departure.LOST:
        return "has no controller that creates a new pod"
    for annotation, value in _EVICTION_FORBIDDEN:
        if pod.pod.metadata.annotations.get(annotation) == value:
            return f"has the annotation {annotation}={value}"
    if pod.pod.spec.scheduler_name not in scheduler_names:
        return f'waits for scheduler "{pod.pod.spec.scheduler_name}", which has no profile'
    return ""


def find_obstacle(pod: AssignedPodInfo, scheduler_names: Collection[str], disruptions: RemainingDisruptions) -> str:
    """Return the reason why *pod* may not be evicted now; empty if it may be evicted."""
    obstacle = _find_lasting_obstacle(pod, scheduler_names)
    if obstacle:
        return obstacle
    budgets = disruptions.find_blocking_budgets(pod)
    return f"budget {', '.join(budgets)} does not allow it" if budgets else ""
