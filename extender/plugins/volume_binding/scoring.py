"""Scores by how full storage would be: of volumes that are matched, or else of pools that volumes are made from.

Source: B100.
"""

import numpy as np

from extender.cluster.arrays import BoolArray, IntArray
from extender.framework.function_shape import MAX_UTILIZATION
from extender.objects.quantity import ZERO, value
from extender.volumes.claims import claim_class, offered_storage, requested_storage
from extender.volumes.finding import Found
from extender.volumes.matching import NONE
from extender.volumes.provisioning import NO_POOL


class _Tally:
    """What is asked of a storage class and what it has, in bytes, and which nodes use it; one entry a node."""

    __slots__ = ("capacity", "requested", "used")

    def __init__(self, size: int) -> None:
        self.requested: IntArray = np.zeros(size, dtype=np.int64)
        self.capacity: IntArray = np.zeros(size, dtype=np.int64)
        self.used: BoolArray = np.zeros(size, dtype=np.bool_)

    def score(self, curve: IntArray) -> IntArray:
        full = (self.capacity == 0) | (self.requested > self.capacity)
        share = self.requested * MAX_UTILIZATION // np.maximum(self.capacity, 1)
        scores: IntArray = curve[np.where(full, MAX_UTILIZATION, share)]
        return scores


def capacity_scores(found: Found, size: int, curve: IntArray) -> IntArray:
    """The mean score of the storage classes that *found* uses on each node, 0 without any: int64, shape (size,).

    Args:
        found: what was found for the claims.
        size: number of nodes.
        curve: scores by utilization in percent, see `function_shape.drawn`.
    """
    matched: dict[str, _Tally] = {}
    somewhere = np.zeros(size, dtype=np.bool_)
    for claim, choice in zip(found.matches.claims, found.matches.choices, strict=True):
        request = value(requested_storage(claim) or ZERO)
        for number in np.unique(choice[choice != NONE]).tolist():
            volume = found.matches.volumes[number]
            here = choice == number
            tally = matched.setdefault(volume.spec.storage_class_name, _Tally(size))
            tally.requested[here] += request
            tally.capacity[here] += value(offered_storage(volume))
            tally.used |= here
            somewhere |= here
    made: dict[str, _Tally] = {}
    for provision in found.made:
        here = provision.places & (provision.pool != NO_POOL) & ~somewhere
        if not here.any():
            continue
        tally = made.setdefault(claim_class(provision.claim), _Tally(size))
        left = np.array([pool.capacity for pool in provision.pools], dtype=np.int64)
        tally.requested[here] += value(requested_storage(provision.claim) or ZERO)
        tally.capacity[here] = left[provision.pool[here]]
        tally.used |= here
    total, classes = np.zeros(size, dtype=np.int64), np.zeros(size, dtype=np.int64)
    for tally in (*matched.values(), *made.values()):
        total += np.where(tally.used, tally.score(curve), 0)
        classes += tally.used
    # Go rounds halves away from zero; all scores are at least 0.
    return np.floor(total / np.maximum(classes, 1) + 0.5).astype(np.int64)
