"""The PreFilter state of InterPodAffinity, its updates when a dry run adds or removes pods, and the filter rules.

A dry run either updates the state pod by pod, or updates one state for many nodes, each with its own changes.

Source: pkg/scheduler/framework/plugins/interpodaffinity/filtering.go, preFilterState,
preFilterState.updateWithPod, InterPodAffinity.Filter, satisfyPodAntiAffinity (1.36).
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial, reduce

import numpy as np

from extender.cache.pod_batch import PodBatch
from extender.cache.pod_info import AssignedPodInfo, PodInfo
from extender.cache.pod_signature import PodSignature
from extender.cache.snapshot import NodeView, Snapshot
from extender.cache.tables.arrays import BoolArray, IntArray
from extender.cache.tables.node_table import ABSENT
from extender.config.releases import Release
from extender.framework.status import Code, Reason, Rejection
from extender.plugins.inter_pod_affinity.domain_counts import TopologyToMatchedTermCount
from extender.plugins.inter_pod_affinity.pod_terms import compile_terms

_AFFINITY = Reason("node(s) didn't match pod affinity rules", Code.UNRESOLVABLE)
_ANTI_AFFINITY = Reason("node(s) didn't match pod anti-affinity rules")
_EXISTING_ANTI_AFFINITY = Reason("node(s) didn't satisfy existing pods anti-affinity rules")


@dataclass(slots=True)
class PreFilterState:
    """Counts of matched terms by topology domain.

    Attributes:
        affinity_counts: the number of existing pods that match all required affinity terms of the pod.
        anti_affinity_counts: the number of matches between required anti-affinity terms of the pod and existing pods.
        existing_anti_affinity_counts: the number of required anti-affinity terms of existing pods that match the pod.
    """

    affinity_counts: TopologyToMatchedTermCount
    anti_affinity_counts: TopologyToMatchedTermCount
    existing_anti_affinity_counts: TopologyToMatchedTermCount

    @property
    def all_counts(self) -> tuple[TopologyToMatchedTermCount, TopologyToMatchedTermCount, TopologyToMatchedTermCount]:
        """All three counts, in the order of the attributes."""
        return self.affinity_counts, self.anti_affinity_counts, self.existing_anti_affinity_counts


TopologyKeyIterators = tuple[Callable[[PodSignature], Iterator[str]], ...]
"""Functions that yield the topology keys of the terms that pods with a signature match."""


def build_topology_key_iterators(pod: PodInfo, snapshot: Snapshot, release: Release) -> TopologyKeyIterators:
    """Return one function for each of `PreFilterState.all_counts`.

    The function takes the signature of an existing pod and yields the topology key of each matched term.
    """
    compiled_terms, namespace_labels = compile_terms(pod, release), snapshot.namespace_labels
    own_namespace_labels = namespace_labels(pod.namespace) or {}

    def iter_affinity_keys(signature: PodSignature) -> Iterator[str]:
        if compiled_terms.affinity_matcher is not None and compiled_terms.affinity_matcher.matches(
            signature.namespace, signature.labels, namespace_labels(signature.namespace)
        ):
            yield from compiled_terms.affinity_keys

    def iter_anti_affinity_keys(signature: PodSignature) -> Iterator[str]:
        for term, matcher in compiled_terms.anti_affinity_matchers:
            if matcher.matches(signature.namespace, signature.labels, namespace_labels(signature.namespace)):
                yield term.topology_key

    def iter_existing_anti_affinity_keys(signature: PodSignature) -> Iterator[str]:
        for term in signature.pod_affinity_terms.required_anti_affinity:
            if term.pod_selector.matches(pod.namespace, pod.labels, own_namespace_labels):
                yield term.topology_key

    return iter_affinity_keys, iter_anti_affinity_keys, iter_existing_anti_affinity_keys


def update_with_pod(
    key_iterators: TopologyKeyIterators,
    assigned_pod: AssignedPodInfo,
    row: int,
    snapshot: Snapshot,
    state: PreFilterState,
    *,
    multiplier: int,
) -> None:
    """Add *multiplier* to the counts for each term that matches *assigned_pod*, whose node is *row*.

    *key_iterators* are those of `build_topology_key_iterators`.
    """
    get_label_value_ids = snapshot.view().label_value_ids
    for counts, iter_keys in zip(state.all_counts, key_iterators, strict=True):
        for key in iter_keys(assigned_pod.signature):
            counts.update(key, int(get_label_value_ids(key)[row]), multiplier)


def count_terms_of_batch(
    batch: PodBatch, iter_keys: Callable[[PodSignature], Iterator[str]], snapshot: Snapshot
) -> dict[str, IntArray]:
    """Return the number of terms that each pod of *batch* matches, by topology key: int64, 0 without the label.

    *iter_keys* is one of the functions of `build_topology_key_iterators`.
    """
    counts_by_key: dict[str, IntArray] = {}
    for index, signature in enumerate(batch.signatures):
        for key in iter_keys(signature):
            counts_by_key.setdefault(key, np.zeros(len(batch.signatures), dtype=np.int64))[index] += 1
    get_label_value_ids = snapshot.view().label_value_ids
    return {
        key: counts[batch.signature_index] * (get_label_value_ids(key)[batch.rows] != ABSENT)
        for key, counts in counts_by_key.items()
    }


def find_rejections(
    affinity_keys: tuple[str, ...],
    is_first_pod: BoolArray | bool,
    nodes: NodeView,
    counts: tuple[TopologyToMatchedTermCount, ...],
) -> list[Rejection]:
    """Return the rejections by each rule. A node is rejected by the first rule that it fails.

    *affinity_keys* are the topology keys of the required affinity terms. *is_first_pod* is whether the pod would be the
    first of a group with affinity to itself: bool, shape (len(nodes),), or one value for all nodes. *counts* are the
    affinity, anti-affinity and existing anti-affinity counts.
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
