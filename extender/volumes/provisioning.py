"""Check where volumes can be provisioned for claims, and whether enough storage capacity is left.

Source: pkg/scheduler/framework/plugins/volumebinding/binder.go, volumeBinder.checkVolumeProvisions (1.36).
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from extender.api.kinds.storage import CSIDriver, PersistentVolumeClaim, StorageClass
from extender.api.quantity import value
from extender.cache.snapshot import Snapshot
from extender.cache.tables.arrays import BoolArray, IntArray, make_mask
from extender.volumes.claims import get_claim_class, get_requested_storage
from extender.volumes.topology import TopologyIndex
from extender.volumes.volume_index import StoragePool, VolumeIndex

NO_POOL = -1
"""The pool index if the driver does not report storage capacity, or the claim requests no storage."""

_NO_PROVISIONER = "kubernetes.io/no-provisioner"


@dataclass(frozen=True, slots=True)
class ProvisionableClaim:
    """A claim, and the nodes on which a volume can be provisioned for it.

    Attributes:
        node_mask: the nodes on which a volume can be provisioned, bool, one entry for each node of the view.
        pools: the storage pools of the claim's class.
        pool_index: the index in `pools` of the pool to provision from, or `NO_POOL`; int64, one entry for each node.
    """

    claim: PersistentVolumeClaim
    node_mask: BoolArray
    pools: Sequence[StoragePool]
    pool_index: IntArray


@dataclass(frozen=True, slots=True)
class ProvisioningResult:
    """The result of `check_volume_provisions`. Masks are bool with one entry for each node of the view.

    Attributes:
        provisions: the checked claims in order. Nodes where an earlier claim failed are not in their masks.
        bind_conflict: the nodes where no volume can be provisioned for a claim.
        not_enough_space: the nodes with too little storage capacity left for a claim.
        errors: masks of nodes with an error, and the error messages.
    """

    provisions: tuple[ProvisionableClaim, ...]
    bind_conflict: BoolArray
    not_enough_space: BoolArray
    errors: tuple[tuple[BoolArray, str], ...]


def check_volume_provisions(
    claims: Sequence[tuple[PersistentVolumeClaim, BoolArray]],
    topology: TopologyIndex,
    snapshot: Snapshot,
    volume_index: VolumeIndex,
) -> ProvisioningResult:
    """Check where volumes for *claims* can be provisioned.

    After a claim fails on a node, later claims are not checked there.

    Each of *claims* has a mask of the nodes to provision a volume on: bool, shape (len(topology),).
    """
    node_count = len(topology)
    bind_conflict, not_enough_space = np.zeros(node_count, dtype=np.bool_), np.zeros(node_count, dtype=np.bool_)
    failed_nodes = np.zeros(node_count, dtype=np.bool_)
    provisions: list[ProvisionableClaim] = []
    errors: list[tuple[BoolArray, str]] = []
    for claim, needed_mask in claims:
        candidates = needed_mask & ~failed_nodes
        if not candidates.any():
            continue
        storage_class = _get_storage_class(claim, snapshot)
        if isinstance(storage_class, str):
            errors.append((candidates, storage_class))
            failed_nodes |= candidates
            continue
        can_provision = _make_allowed_topology_mask(storage_class, topology) & candidates
        bind_conflict |= candidates & ~can_provision
        pools, pool_index, has_space = _choose_pools(
            claim, storage_class, topology, snapshot, volume_index, can_provision
        )
        not_enough_space |= can_provision & ~has_space
        failed_nodes |= candidates & ~(can_provision & has_space)
        provisions.append(ProvisionableClaim(claim, can_provision & has_space, pools, pool_index))
    return ProvisioningResult(tuple(provisions), bind_conflict, not_enough_space, tuple(errors))


def _get_storage_class(claim: PersistentVolumeClaim, snapshot: Snapshot) -> StorageClass | str:
    """Return the storage class of *claim*, or an error message."""
    name = get_claim_class(claim)
    if not name:
        return f'no class for claim "{claim.key}"'
    return snapshot.get_object(StorageClass, name) or f'failed to find storage class "{name}"'


def _make_allowed_topology_mask(storage_class: StorageClass, topology: TopologyIndex) -> BoolArray:
    if storage_class.provisioner in {"", _NO_PROVISIONER}:
        return np.zeros(len(topology), dtype=np.bool_)
    return make_mask(topology.match_topologies(storage_class.allowed_topologies), len(topology))


def _choose_pools(
    claim: PersistentVolumeClaim,
    storage_class: StorageClass,
    topology: TopologyIndex,
    snapshot: Snapshot,
    volume_index: VolumeIndex,
    can_provision: BoolArray,
) -> tuple[Sequence[StoragePool], IntArray, BoolArray]:
    """Return the class's pools, the index of the first sufficient pool by node, and the nodes with enough space."""
    pool_index = np.full(len(topology), NO_POOL, dtype=np.int64)
    request = get_requested_storage(claim)
    driver = snapshot.get_object(CSIDriver, storage_class.provisioner)
    if request is None or driver is None or not driver.spec.storage_capacity:
        return (), pool_index, np.ones(len(topology), dtype=np.bool_)
    pools = volume_index.get_pools(snapshot, storage_class.metadata.name)
    remaining_nodes = can_provision.copy()
    requested_bytes = value(request)
    for index, pool in enumerate(pools):
        if pool.volume_size_limit is None or pool.volume_size_limit < requested_bytes:
            continue
        positions = topology.match_label_selector(pool.selector)
        positions = positions[remaining_nodes[positions]]
        if len(positions):
            pool_index[positions] = index
            remaining_nodes[positions] = False
            if not remaining_nodes.any():
                break
    return pools, pool_index, pool_index != NO_POOL
