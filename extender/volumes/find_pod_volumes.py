"""Find volumes for a pod's claims on each node: bound PVs, PVs that match, and PVs to provision.

Source: pkg/scheduler/framework/plugins/volumebinding/volume_binding.go, VolumeBinding.podHasPVCs;
pkg/scheduler/framework/plugins/volumebinding/binder.go, volumeBinder.GetPodVolumeClaims, volumeBinder.FindPodVolumes,
volumeBinder.checkVolumeProvisions; component-helpers/storage/volume/pv_helpers.go, FindMatchingVolume (1.36).
"""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Final

import numpy as np

from extender.api.kinds.storage import CSIDriver, PersistentVolume, PersistentVolumeClaim, StorageClass
from extender.api.quantity import value
from extender.cache.node_matching import match_names
from extender.cache.snapshot import NodeView, Snapshot
from extender.cache.tables.arrays import BoolArray, IntArray, make_mask
from extender.volumes.assume_cache import AssumeCache
from extender.volumes.claims import NO_PROVISIONER, SELECTED_NODE, get_claim_class, get_requested_storage
from extender.volumes.csi_migration import (
    TranslationError,
    find_in_tree_driver,
    get_persistent_volume_csi_handle,
    translate_node_affinity,
)
from extender.volumes.topology import TopologyIndex, compile_volume_node_selector
from extender.volumes.volume_index import IndexedVolume, StoragePool, VolumeIndex, compile_node_affinity
from extender.volumes.volume_matching import (
    NO_VOLUME,
    ClaimToMatch,
    SelectorError,
    VolumeMatches,
    match_volumes,
    sort_by_request,
)

NO_POOL: Final = -1
"""The pool index if the driver does not report storage capacity, or the claim requests no storage."""

_NO_PROVISIONERS: Final = frozenset({"", NO_PROVISIONER})


@dataclass(frozen=True, slots=True)
class PodVolumeClaims:
    """The valid claims of a pod.

    Attributes:
        bound_claims: fully bound claims.
        unbound_claims_delay_binding: unbound claims whose class delays binding until the pod is scheduled.
    """

    bound_claims: tuple[PersistentVolumeClaim, ...] = ()
    unbound_claims_delay_binding: tuple[PersistentVolumeClaim, ...] = ()


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


@dataclass(slots=True)
class PodVolumesResult:
    """The result of `find_pod_volumes`. Masks are bool with one entry for each node of the view.

    Attributes:
        node_conflict: the nodes that a bound volume's node affinity does not match.
        bind_conflict: the nodes where no volume matches a claim and none can be provisioned.
        not_enough_space: the nodes with too little storage capacity left to provision a volume.
        pv_not_found: the nodes rejected because the volume of a bound claim does not exist.
        errors: masks of nodes with an error, and the error messages. These nodes are in no other mask.
        matches: the volumes chosen for claims.
        provisions: the claims to provision volumes for, in order. Nodes where an earlier claim failed are not in their
            masks.
    """

    node_conflict: BoolArray
    bind_conflict: BoolArray
    not_enough_space: BoolArray
    pv_not_found: BoolArray
    errors: list[tuple[BoolArray, str]] = field(default_factory=list)
    matches: VolumeMatches = field(default_factory=VolumeMatches)
    provisions: list[ProvisionableClaim] = field(default_factory=list)


def find_pod_volumes(
    claims: PodVolumeClaims, nodes: NodeView, volume_index: VolumeIndex, assume_cache: AssumeCache
) -> PodVolumesResult:
    """Find volumes for *claims* on *nodes*.

    *assume_cache* has the PVs and PVCs assumed for other pods.
    """
    no_nodes = np.zeros(len(nodes), dtype=np.bool_)
    result = PodVolumesResult(no_nodes.copy(), no_nodes.copy(), no_nodes.copy(), no_nodes.copy())
    topology = TopologyIndex(nodes)
    _check_bound_claims(claims.bound_claims, nodes, topology, volume_index, result)
    if claims.unbound_claims_delay_binding:
        _check_delayed_claims(claims.unbound_claims_delay_binding, nodes, topology, volume_index, assume_cache, result)
    for error_mask, _ in result.errors:
        for mask in (result.node_conflict, result.bind_conflict, result.not_enough_space, result.pv_not_found):
            mask[error_mask] = False
    return result


# -- bound claims


def _check_bound_claims(
    claims: tuple[PersistentVolumeClaim, ...],
    nodes: NodeView,
    topology: TopologyIndex,
    volume_index: VolumeIndex,
    result: PodVolumesResult,
) -> None:
    """Check the bound claims in order. After a claim fails on a node, later claims are not checked there."""
    remaining_nodes = np.ones(len(nodes), dtype=np.bool_)
    for claim in claims:
        volume = nodes.snapshot.get_object(PersistentVolume, claim.spec.volume_name)
        if volume is None:
            result.pv_not_found |= remaining_nodes
            return
        affinity_result = check_node_affinity(volume, nodes, topology, volume_index)
        if affinity_result.error:
            result.errors.append((affinity_result.undecided & remaining_nodes, affinity_result.error))
            remaining_nodes &= ~affinity_result.undecided
        result.node_conflict |= remaining_nodes & ~affinity_result.matches
        remaining_nodes &= affinity_result.matches


@dataclass(frozen=True, slots=True)
class NodeAffinityResult:
    """The result of `check_node_affinity`. Masks are bool with one entry for each node of the view.

    Attributes:
        matches: the nodes that the node affinity matches.
        undecided: the nodes for which the node affinity cannot be evaluated.
        error: the error message for the `undecided` nodes; empty if there are no such nodes.
    """

    matches: BoolArray
    undecided: BoolArray
    error: str = ""


def check_node_affinity(
    volume: PersistentVolume, nodes: NodeView, topology: TopologyIndex, volume_index: VolumeIndex
) -> NodeAffinityResult:
    """Match the node affinity of *volume* with *nodes*.

    On nodes that migrated the volume's driver, the node affinity is translated to the labels of the CSI driver.

    Source: pkg/scheduler/framework/plugins/volumebinding/binder.go, volumeBinder.FindPodVolumes (1.36).
    """
    no_nodes = np.zeros(len(nodes), dtype=np.bool_)
    matches = make_mask(topology.match_node_selector(compile_node_affinity(volume)), len(nodes))
    driver = find_in_tree_driver(volume.spec)
    if driver is None or not driver.migrated:
        return NodeAffinityResult(matches, no_nodes)
    rows = nodes.snapshot.rows(volume_index.find_nodes_with_migrated_driver(nodes.snapshot, driver.name))
    migrated_mask = nodes.take(make_mask(rows[rows >= 0], len(nodes.snapshot)))
    if not migrated_mask.any():
        return NodeAffinityResult(matches, no_nodes)
    try:
        get_persistent_volume_csi_handle(volume)
    except TranslationError as error:
        return NodeAffinityResult(matches & ~migrated_mask, migrated_mask, f"could not translate pv: {error}")
    selector = translate_node_affinity(volume, driver)
    compiled_selector = None if selector is None else compile_volume_node_selector(selector)
    translated_matches = make_mask(topology.match_node_selector(compiled_selector), len(nodes))
    return NodeAffinityResult(np.where(migrated_mask, translated_matches, matches), no_nodes)


# -- unbound claims with delayed binding


def _check_delayed_claims(
    claims: tuple[PersistentVolumeClaim, ...],
    nodes: NodeView,
    topology: TopologyIndex,
    volume_index: VolumeIndex,
    assume_cache: AssumeCache,
    result: PodVolumesResult,
) -> None:
    remaining_nodes = np.ones(len(nodes), dtype=np.bool_)
    for mask, _ in result.errors:
        remaining_nodes &= ~mask
    claims_to_provision: list[PersistentVolumeClaim] = []
    claims_to_match: list[PersistentVolumeClaim] = []
    for claim in claims:
        selected_node = claim.metadata.annotations.get(SELECTED_NODE)
        if selected_node is None:
            claims_to_match.append(claim)
            continue
        claims_to_provision.append(claim)
        is_selected = match_names(nodes, (selected_node,))
        result.bind_conflict |= remaining_nodes & ~is_selected
        remaining_nodes &= is_selected
    if not remaining_nodes.any():
        return
    provision_masks = [(claim, remaining_nodes) for claim in claims_to_provision]
    if claims_to_match:
        sorted_claims = sort_by_request(claims_to_match)
        volumes_by_class = {
            name: _get_latest_volumes(name, nodes.snapshot, volume_index, assume_cache)
            for name in map(get_claim_class, sorted_claims)
        }
        delayed_claims = [
            ClaimToMatch(claim, volumes_by_class[get_claim_class(claim)], _is_provisionable(claim, nodes.snapshot))
            for claim in sorted_claims
        ]
        try:
            result.matches = match_volumes(delayed_claims, topology, remaining_nodes)
        except SelectorError as error:
            result.errors.append((remaining_nodes, str(error)))
            return
        provision_masks += [
            (claim, remaining_nodes & (choice == NO_VOLUME))
            for claim, choice in zip(sorted_claims, result.matches.choices, strict=True)
        ]
    _check_provisions(provision_masks, topology, nodes.snapshot, volume_index, result)


def _get_latest_volumes(
    class_name: str, snapshot: Snapshot, volume_index: VolumeIndex, assume_cache: AssumeCache
) -> list[IndexedVolume]:
    """Return the volumes of a class, with assumed versions in place of stored ones."""
    stored_volumes = volume_index.get_volumes(snapshot, class_name)
    if not assume_cache.volumes:
        return stored_volumes
    return [
        indexed_volume
        if (volume := assume_cache.get_latest_volume(indexed_volume.volume)) is indexed_volume.volume
        else replace(indexed_volume, volume=volume)
        for indexed_volume in stored_volumes
    ]


# -- volumes to provision


def _check_provisions(
    claims: Sequence[tuple[PersistentVolumeClaim, BoolArray]],
    topology: TopologyIndex,
    snapshot: Snapshot,
    volume_index: VolumeIndex,
    result: PodVolumesResult,
) -> None:
    """Check where volumes for *claims* can be provisioned.

    After a claim fails on a node, later claims are not checked there.

    Each of *claims* has a mask of the nodes to provision a volume on: bool, shape (len(topology),).
    """
    failed_nodes = np.zeros(len(topology), dtype=np.bool_)
    for claim, needed_mask in claims:
        candidates = needed_mask & ~failed_nodes
        if not candidates.any():
            continue
        storage_class = _get_storage_class(claim, snapshot)
        if isinstance(storage_class, str):
            result.errors.append((candidates, storage_class))
            failed_nodes |= candidates
            continue
        can_provision = _make_allowed_topology_mask(storage_class, topology) & candidates
        result.bind_conflict |= candidates & ~can_provision
        pools, pool_index, has_space = _choose_pools(
            claim, storage_class, topology, snapshot, volume_index, can_provision
        )
        result.not_enough_space |= can_provision & ~has_space
        failed_nodes |= candidates & ~(can_provision & has_space)
        result.provisions.append(ProvisionableClaim(claim, can_provision & has_space, pools, pool_index))


def _get_storage_class(claim: PersistentVolumeClaim, snapshot: Snapshot) -> StorageClass | str:
    """Return the storage class of *claim*, or an error message."""
    name = get_claim_class(claim)
    if not name:
        return f'no class for claim "{claim.key}"'
    return snapshot.get_object(StorageClass, name) or f'failed to find storage class "{name}"'


def _is_provisionable(claim: PersistentVolumeClaim, snapshot: Snapshot) -> bool:
    storage_class = _get_storage_class(claim, snapshot)
    return isinstance(storage_class, StorageClass) and storage_class.provisioner not in _NO_PROVISIONERS


def _make_allowed_topology_mask(storage_class: StorageClass, topology: TopologyIndex) -> BoolArray:
    if storage_class.provisioner in _NO_PROVISIONERS:
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
    remaining_nodes, remaining_count = can_provision.copy(), int(can_provision.sum())
    requested_bytes = value(request)
    for index, pool in enumerate(pools):
        if pool.volume_size_limit is None or pool.volume_size_limit < requested_bytes:
            continue
        positions = topology.match_label_selector(pool.selector)
        positions = positions[remaining_nodes[positions]]
        if len(positions):
            pool_index[positions] = index
            remaining_nodes[positions] = False
            remaining_count -= len(positions)
            if not remaining_count:
                break
    return pools, pool_index, pool_index != NO_POOL
