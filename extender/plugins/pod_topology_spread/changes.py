"""Whether a change in the cluster may help a pod that PodTopologySpread rejected. Source: B079."""

from collections.abc import Mapping, Sequence

from extender.cluster.pods import PodQuery
from extender.framework.changes import Change, Hint
from extender.objects.node import Node
from extender.objects.pod import Pod
from extender.plugins.pod_topology_spread.constraints import SpreadConstraint


def after_pod(pod: PodQuery, change: Change, constraints: Sequence[SpreadConstraint]) -> Hint:
    """What a pod's arrival, update or departure means to *pod* with these hard constraints."""
    old: Pod | None = change.old
    new: Pod | None = change.new
    if any(other is not None and not _is_involved(other, pod.pod) for other in (old, new)):
        return Hint.SKIP
    if old is not None and new is not None:
        helps = _update_helps(pod.pod, old, new, constraints)
    else:
        there = new or old
        helps = there is not None and any(rule.selector.matches(there.metadata.labels) for rule in constraints)
    return Hint.QUEUE if helps else Hint.SKIP


def _is_involved(other: Pod, pod: Pod) -> bool:
    if other.metadata.uid == pod.metadata.uid:
        return True
    placed = other.spec.node_name or other.status.nominated_node_name
    return bool(placed) and other.metadata.namespace == pod.metadata.namespace


def _update_helps(pod: Pod, old: Pod, new: Pod, constraints: Sequence[SpreadConstraint]) -> bool:
    tolerates_more = pod.metadata.uid == new.metadata.uid and old.spec.tolerations != new.spec.tolerations
    if tolerates_more and any(rule.honors_taints for rule in constraints):
        return True
    before, after = old.metadata.labels, new.metadata.labels
    return any(rule.selector.matches(before) != rule.selector.matches(after) for rule in constraints)


def after_node(change: Change, constraints: Sequence[SpreadConstraint]) -> Hint:
    """What a node's arrival, update or departure means to a pod with these hard constraints."""
    old: Node | None = change.old
    new: Node | None = change.new
    had = old is not None and _has_keys(old, constraints)
    has = new is not None and _has_keys(new, constraints)
    if old is None or new is None:
        helps = had or has
    else:
        helps = had != has or (
            has
            and (_moved(old.metadata.labels, new.metadata.labels, constraints) or old.spec.taints != new.spec.taints)
        )
    return Hint.QUEUE if helps else Hint.SKIP


def _has_keys(node: Node, constraints: Sequence[SpreadConstraint]) -> bool:
    return all(rule.topology_key in node.metadata.labels for rule in constraints)


def _moved(before: Mapping[str, str], after: Mapping[str, str], constraints: Sequence[SpreadConstraint]) -> bool:
    return any(before.get(rule.topology_key) != after.get(rule.topology_key) for rule in constraints)
