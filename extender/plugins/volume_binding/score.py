"""Score nodes by the utilization of matched volumes, or of the storage pools to provision volumes from.

Source: pkg/scheduler/framework/plugins/volumebinding/volume_binding.go, VolumeBinding.Score (1.36).
"""

import numpy as np

from extender.api.quantity import ZERO, value
from extender.cache.tables.arrays import BoolArray, IntArray
from extender.plugin_parts.function_shape import MAX_UTILIZATION
from extender.volumes.claims import get_claim_class, get_requested_storage, get_volume_capacity
from extender.volumes.find_pod_volumes import NO_POOL, PodVolumesResult
from extender.volumes.volume_matching import NO_VOLUME


class _ClassResource:
    """The utilization of a storage class on each node.

    Attributes:
        requested: the requested bytes: int64, shape (number of nodes,).
        capacity: the capacity in bytes: int64, shape (number of nodes,).
        is_used: whether a claim uses the class: bool, shape (number of nodes,).
    """

    def __init__(self, node_count: int) -> None:
        self.requested: IntArray = np.zeros(node_count, dtype=np.int64)
        self.capacity: IntArray = np.zeros(node_count, dtype=np.int64)
        self.is_used: BoolArray = np.zeros(node_count, dtype=np.bool_)

    def compute_scores(self, scores_by_utilization: IntArray) -> IntArray:
        is_full = (self.capacity == 0) | (self.requested > self.capacity)
        utilization = self.requested * MAX_UTILIZATION // np.maximum(self.capacity, 1)
        scores: IntArray = scores_by_utilization[np.where(is_full, MAX_UTILIZATION, utilization)]
        return scores


def compute_capacity_scores(
    pod_volumes: PodVolumesResult, node_count: int, scores_by_utilization: IntArray
) -> IntArray:
    """Return the mean score of the storage classes used on each node; 0 if none is used: int64, shape (node_count,).

    *scores_by_utilization* has the score for each utilization in percent.
    """
    static_resources: dict[str, _ClassResource] = {}
    has_static_binding = np.zeros(node_count, dtype=np.bool_)
    for claim, choice in zip(pod_volumes.matches.claims, pod_volumes.matches.choices, strict=True):
        request = value(get_requested_storage(claim) or ZERO)
        positions = np.flatnonzero(choice != NO_VOLUME)
        has_static_binding[positions] = True
        indices, inverse = np.unique(choice[positions], return_inverse=True)
        volumes = [pod_volumes.matches.volumes[index] for index in indices.tolist()]
        capacities = np.array([value(get_volume_capacity(volume)) for volume in volumes], dtype=np.int64)
        class_names = [volume.spec.storage_class_name for volume in volumes]
        for class_name in dict.fromkeys(class_names):
            is_of_class: BoolArray = np.array([name == class_name for name in class_names])[inverse]
            class_positions = positions[is_of_class]
            class_resource = static_resources.setdefault(class_name, _ClassResource(node_count))
            class_resource.requested[class_positions] += request
            class_resource.capacity[class_positions] += capacities[inverse[is_of_class]]
            class_resource.is_used[class_positions] = True
    dynamic_resources: dict[str, _ClassResource] = {}
    for provision in pod_volumes.provisions:
        node_mask = provision.node_mask & (provision.pool_index != NO_POOL) & ~has_static_binding
        if not node_mask.any():
            continue
        class_resource = dynamic_resources.setdefault(get_claim_class(provision.claim), _ClassResource(node_count))
        pool_capacities = np.array([pool.capacity for pool in provision.pools], dtype=np.int64)
        class_resource.requested[node_mask] += value(get_requested_storage(provision.claim) or ZERO)
        class_resource.capacity[node_mask] = pool_capacities[provision.pool_index[node_mask]]
        class_resource.is_used |= node_mask
    total, class_counts = np.zeros(node_count, dtype=np.int64), np.zeros(node_count, dtype=np.int64)
    for class_resource in (*static_resources.values(), *dynamic_resources.values()):
        total += np.where(class_resource.is_used, class_resource.compute_scores(scores_by_utilization), 0)
        class_counts += class_resource.is_used
    # This rounds halves up. Go rounds halves away from zero, which is the same for scores of 0 and more.
    return np.floor(total / np.maximum(class_counts, 1) + 0.5).astype(np.int64)
