"""The three filter rules. The first rule that a node fails rejects it.

Source: pkg/scheduler/framework/plugins/interpodaffinity/filtering.go, InterPodAffinity.Filter, satisfyPodAntiAffinity
(1.36).
"""

from functools import partial, reduce

import numpy as np

from extender.cache.snapshot import NodeView
from extender.cache.tables.arrays import BoolArray
from extender.framework.status import Code, Reason, Rejection
from extender.plugins.inter_pod_affinity.domain_counts import TopologyToMatchedTermCount

_AFFINITY = Reason("node(s) didn't match pod affinity rules", Code.UNRESOLVABLE)
_ANTI_AFFINITY = Reason("node(s) didn't match pod anti-affinity rules")
_EXISTING_ANTI_AFFINITY = Reason("node(s) didn't satisfy existing pods anti-affinity rules")


def find_rejections(
    affinity_keys: tuple[str, ...],
    is_first_pod: BoolArray | bool,
    nodes: NodeView,
    counts: tuple[TopologyToMatchedTermCount, ...],
) -> list[Rejection]:
    """Return the rejections by each rule. A node is rejected by the first rule that it fails.

    Args:
        affinity_keys: the topology keys of the pod's required affinity terms.
        is_first_pod: whether the pod would be the first of a group with affinity to itself: bool, shape
            (len(nodes),), or one value for all nodes.
        nodes: the nodes to filter.
        counts: the affinity, anti-affinity and existing anti-affinity counts.
    """
    rejections: list[Rejection] = []
    affinity_counts, anti_affinity_counts, existing_anti_affinity_counts = counts
    rules = (
        (_AFFINITY, affinity_keys, partial(_fails_affinity, nodes, affinity_counts, is_first_pod)),
        (_ANTI_AFFINITY, anti_affinity_counts.topology_keys, partial(anti_affinity_counts.is_positive_by_node, nodes)),
        (
            _EXISTING_ANTI_AFFINITY,
            existing_anti_affinity_counts.topology_keys,
            partial(existing_anti_affinity_counts.is_positive_by_node, nodes),
        ),
    )
    rejected_nodes: BoolArray | None = None
    for reason, topology_keys, find_violations in rules:
        if not topology_keys:
            continue
        violating_nodes = reduce(np.logical_or, map(find_violations, topology_keys))
        if np.count_nonzero(violating_nodes):
            newly_rejected_nodes = violating_nodes if rejected_nodes is None else violating_nodes & ~rejected_nodes
            rejected_nodes = violating_nodes if rejected_nodes is None else violating_nodes | rejected_nodes
            rejections.append(Rejection(newly_rejected_nodes, reason))
    return rejections


def _fails_affinity(
    nodes: NodeView, affinity_counts: TopologyToMatchedTermCount, is_first_pod: BoolArray | bool, key: str
) -> BoolArray:
    """Return the nodes whose domain has no pod that matches the affinity terms. The first pod needs only the label."""
    has_no_match = ~affinity_counts.is_positive_by_node(nodes, key)
    return (
        has_no_match if is_first_pod is False else np.where(is_first_pod, nodes.label_value_ids(key) < 0, has_no_match)
    )
