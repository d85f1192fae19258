"""Who is near each node if pods came to or left that node alone: for many nodes in one go. Source: B057 to B060."""

from collections.abc import Callable, Iterator

import numpy as np

from extender.cluster.arrays import BoolArray, IntArray
from extender.cluster.batches import PodBatch
from extender.cluster.nodes import ABSENT
from extender.cluster.shape import Shape
from extender.cluster.snapshot import NodeView
from extender.plugins.inter_pod_affinity.tally import DomainTally

Weights = dict[str, IntArray]
"""What each pod of a batch counts for by topology key: int64, one entry a pod. Keys nobody counts for are left out."""


def weights(batch: PodBatch, keys_of: Callable[[Shape], Iterator[str]]) -> Weights:
    """How often each pod of *batch* counts for each topology key.

    Args:
        batch: the pods.
        keys_of: the keys that pods of a shape count for, one as often as they do.
    """
    found: Weights = {}
    for index, shape in enumerate(batch.shapes):
        for key in keys_of(shape):
            if key not in found:
                found[key] = np.zeros(len(batch.shapes), dtype=np.int64)
            found[key][index] += 1
    return {key: counts[batch.shape_of] for key, counts in found.items()}


class MovedTally:
    """A tally whose domains have, for each node, more or fewer pods by those that moved on that node."""

    __slots__ = ("_batch", "_by", "_tally", "_weights")

    def __init__(self, tally: DomainTally, weights: Weights, batch: PodBatch, by: IntArray) -> None:
        """Nothing is summed yet.

        Args:
            tally: as nothing had moved.
            weights: what each pod counts for.
            batch: the pods.
            by: 1 for pods that came, -1 for those that left, else 0.
        """
        self._tally, self._weights, self._batch, self._by = tally, weights, batch, by

    @property
    def keys(self) -> tuple[str, ...]:
        """The topology keys something may be counted for."""
        return tuple(dict.fromkeys((*self._tally.keys, *self._weights)))

    def _moved(self, nodes: NodeView, key: str) -> IntArray | None:
        """How many came to each node, less those that left; None if nobody counts for *key*."""
        counts = self._weights.get(key)
        if counts is None:
            return None
        return nodes.take(self._batch.sums(counts * self._by, len(nodes.snapshot)))

    def is_positive(self, nodes: NodeView, key: str) -> BoolArray:
        """Whether each node's domain has a number above zero: bool, shape (len(nodes),), False without label *key*."""
        moved = self._moved(nodes, key)
        if moved is None:
            return self._tally.is_positive(nodes, key)
        there: BoolArray = (self._tally.at(nodes, key) + moved > 0) & (nodes.label(key) != ABSENT)
        return there

    def is_empty(self, nodes: NodeView) -> BoolArray:
        """Whether, for each node, no domain of any key has a number other than zero: bool, shape (len(nodes),)."""
        entries: IntArray = np.full(len(nodes), self._tally.size, dtype=np.int64)
        for key in self._weights:
            moved = self._moved(nodes, key)
            if moved is None:
                continue
            labelled = nodes.label(key) != ABSENT
            before = self._tally.at(nodes, key)
            entries += labelled & (before == 0) & (moved != 0)
            entries -= labelled & (before != 0) & (before + moved == 0)
        empty: BoolArray = entries == 0
        return empty
