"""What filtering knows of the cluster, and how it changes with pods that come and go. Source: B071, B073.

Either the notes follow, pod by pod, or many nodes are looked at in one go, each as if pods had moved on it alone.
"""

from dataclasses import dataclass

import numpy as np

from extender.cluster.arrays import BoolArray, IntArray, widened
from extender.cluster.batches import PodBatch
from extender.cluster.nodes import ABSENT
from extender.cluster.pods import PlacedPod, PodQuery
from extender.cluster.snapshot import NodeView, Snapshot
from extender.plugins.pod_topology_spread.constraints import SpreadConstraint
from extender.plugins.pod_topology_spread.eligible import Eligible
from extender.plugins.pod_topology_spread.skew import DomainCounts


@dataclass(slots=True)
class HardNotes:
    """The notes of filtering: for each hard constraint, the nodes that count and the pods in each domain of theirs."""

    constraints: tuple[SpreadConstraint, ...]
    eligible: tuple[Eligible, ...]
    domains: tuple[DomainCounts, ...]


def move(pod: PodQuery, other: PlacedPod, row: int, cluster: Snapshot, notes: HardNotes, *, by: int) -> None:
    """Count *by* more pods like *other* on *row*."""
    if other.namespace != pod.namespace:
        return
    nodes = cluster.view()
    for constraint, eligible, domains in zip(notes.constraints, notes.eligible, notes.domains, strict=True):
        if eligible.rows[row] and constraint.selector.matches(other.labels):
            domains.move(int(nodes.label(constraint.topology_key)[row]), by)


def weights(namespace: str, constraint: SpreadConstraint, eligible: Eligible, batch: PodBatch) -> IntArray:
    """1 for the pods of *batch* that count for *constraint* where they are, else 0: int64, shape (len(batch),).

    Pods that are being deleted count too.
    """
    meant = batch.by_shape(
        lambda shape: int(shape.namespace == namespace and constraint.selector.matches(shape.labels))
    )
    return meant * eligible.rows[batch.rows]


def skewed_apart(nodes: NodeView, constraint: SpreadConstraint, domains: DomainCounts, moved: IntArray) -> BoolArray:
    """Which nodes are in a domain that may take no more pods, False for nodes without the label.

    Args:
        nodes: the view.
        constraint: one constraint.
        domains: its domains as if nothing had moved.
        moved: how many pods that count came to each node, less those that left it; that node alone is meant.
    """
    values = nodes.label(constraint.topology_key)
    known = widened(domains.counts, len(nodes.snapshot.vocabulary.label_values(constraint.topology_key)))
    here: IntArray = np.where(values == ABSENT, 0, known[values]) + moved if len(known) else moved
    least = 0 if domains.number < constraint.min_domains else domains.least_apart(values, here, moved)
    skewed: BoolArray = (here > constraint.max_skew + least - constraint.self_match) & (values != ABSENT)
    return skewed
