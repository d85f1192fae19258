"""Queueing hints of PodTopologySpread.

Source: pkg/scheduler/framework/plugins/podtopologyspread/plugin.go, PodTopologySpread.EventsToRegister (1.36).
"""

from collections.abc import Callable, Mapping, Sequence

from extender.api.kinds.node import Node
from extender.api.kinds.pod import Pod
from extender.cache.pod_info import PodInfo
from extender.framework.events import ClusterEvent, QueueingHint
from extender.plugins.pod_topology_spread.constraints import SpreadConstraint


def find_concerned_pods(event: ClusterEvent) -> Callable[[PodInfo], bool]:
    """Return whether a waiting pod is in the namespace of the changed pod."""
    changed_pod: Pod = event.new or event.old
    namespace = changed_pod.metadata.namespace
    return lambda pod: pod.namespace == namespace


def is_schedulable_after_pod_change(
    pod: PodInfo, event: ClusterEvent, constraints: Sequence[SpreadConstraint]
) -> QueueingHint:
    """Queue *pod* if an added, updated or deleted pod changes the counts of one of its *constraints*."""
    old_pod: Pod | None = event.old
    new_pod: Pod | None = event.new
    if any(
        changed_pod is not None and not _involved_in_topology_spreading(changed_pod, pod.pod)
        for changed_pod in (old_pod, new_pod)
    ):
        return QueueingHint.SKIP
    if old_pod is not None and new_pod is not None:
        may_help = _pod_update_may_help(pod.pod, old_pod, new_pod, constraints)
    else:
        counted_pod = new_pod or old_pod
        may_help = counted_pod is not None and any(
            constraint.selector.matches(counted_pod.metadata.labels) for constraint in constraints
        )
    return QueueingHint.queue_if(may_help)


def _involved_in_topology_spreading(changed_pod: Pod, pod: Pod) -> bool:
    if changed_pod.metadata.uid == pod.metadata.uid:
        return True
    node_name = changed_pod.spec.node_name or changed_pod.status.nominated_node_name
    return bool(node_name) and changed_pod.metadata.namespace == pod.metadata.namespace


def _pod_update_may_help(pod: Pod, old_pod: Pod, new_pod: Pod, constraints: Sequence[SpreadConstraint]) -> bool:
    is_pending = not new_pod.spec.node_name and pod.metadata.uid == new_pod.metadata.uid
    tolerations_changed = is_pending and old_pod.spec.tolerations != new_pod.spec.tolerations
    if tolerations_changed and any(constraint.honors_node_taints for constraint in constraints):
        return True
    old_labels, new_labels = old_pod.metadata.labels, new_pod.metadata.labels
    return any(
        constraint.selector.matches(old_labels) != constraint.selector.matches(new_labels) for constraint in constraints
    )


def is_schedulable_after_node_change(event: ClusterEvent, constraints: Sequence[SpreadConstraint]) -> QueueingHint:
    """Queue the pod if an added, updated or deleted node changes the domains of one of the pod's *constraints*."""
    old_node: Node | None = event.old
    new_node: Node | None = event.new
    old_has_keys = old_node is not None and _has_keys(old_node, constraints)
    new_has_keys = new_node is not None and _has_keys(new_node, constraints)
    if old_node is None or new_node is None:
        may_help = old_has_keys or new_has_keys
    else:
        may_help = old_has_keys != new_has_keys or (
            new_has_keys
            and (
                _domain_changed(old_node.metadata.labels, new_node.metadata.labels, constraints)
                or old_node.spec.taints != new_node.spec.taints
            )
        )
    return QueueingHint.queue_if(may_help)


def _has_keys(node: Node, constraints: Sequence[SpreadConstraint]) -> bool:
    return all(constraint.topology_key in node.metadata.labels for constraint in constraints)


def _domain_changed(
    old_labels: Mapping[str, str], new_labels: Mapping[str, str], constraints: Sequence[SpreadConstraint]
) -> bool:
    return any(
        old_labels.get(constraint.topology_key) != new_labels.get(constraint.topology_key) for constraint in constraints
    )
