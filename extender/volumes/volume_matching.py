"""Choose volumes for unbound claims: on each node the smallest suitable volume.

Source: component-helpers/storage/volume/pv_helpers.go, FindMatchingVolume (1.36).
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from extender.api.kinds.storage import PersistentVolume, PersistentVolumeClaim
from extender.api.matching import Selector, selector_from_label_selector
from extender.api.quantity import ZERO
from extender.cache.tables.arrays import BoolArray, IntArray
from extender.volumes.assume_cache import is_volume_bound_to_claim
from extender.volumes.claims import get_requested_storage, to_nanos
from extender.volumes.topology import TopologyIndex
from extender.volumes.volume_index import IndexedVolume

NO_VOLUME = -1
"""The value in place of the index of a volume on a node where no volume matches."""

_FILESYSTEM = "Filesystem"
_AVAILABLE = "Available"


@dataclass(frozen=True, slots=True)
class VolumeMatches:
    """The volume of each claim on each node.

    Attributes:
        claims: the claims by requested size, smallest first.
        volumes: all volumes that a claim may use on a node.
        choices: for each claim, the index in `volumes` of its volume on each node of the view, or `NO_VOLUME`; int64.
    """

    claims: tuple[PersistentVolumeClaim, ...] = ()
    volumes: tuple[PersistentVolume, ...] = ()
    choices: tuple[IntArray, ...] = ()


class SelectorError(ValueError):
    """The selector of a claim is invalid."""


def sort_by_request(claims: Iterable[PersistentVolumeClaim]) -> list[PersistentVolumeClaim]:
    """Return *claims* sorted by requested size, smallest first. The sort is stable."""
    return sorted(claims, key=_get_requested_size)


def _get_requested_size(claim: PersistentVolumeClaim) -> int:
    return to_nanos(get_requested_storage(claim) or ZERO)


@dataclass(frozen=True, slots=True)
class ClaimToMatch:
    """A claim that needs a volume.

    Attributes:
        volumes: the latest versions of the volumes of its class.
        is_provisionable: whether a volume may be provisioned on a node where none matches.
    """

    claim: PersistentVolumeClaim
    volumes: Sequence[IndexedVolume]
    is_provisionable: bool = False


def match_volumes(claims: Sequence[ClaimToMatch], topology: TopologyIndex, candidates: BoolArray) -> VolumeMatches:
    """Choose a volume for each claim on each node.

    *claims* are in order of precedence. *candidates* are the nodes to match on: bool, shape (len(topology),). On a node
    without a volume for a claim that is not provisionable, later claims get none either, because the pod does not fit.

    Raises:
        SelectorError: the selector of a claim is invalid.
    """
    index_by_name: dict[str, int] = {}
    volumes: list[PersistentVolume] = []
    choices: list[IntArray] = []
    used_positions: dict[int, IntArray] = {}
    for claim_to_match in claims:
        choice = _ClaimChoice(topology, candidates, used_positions)
        prebound, available = _find_matching_volumes(
            claim_to_match.claim, claim_to_match.volumes if choice.remaining_node_count else ()
        )
        for indexed_volume in prebound:
            choice.choose_prebound(indexed_volume, _add_volume(indexed_volume.volume, index_by_name, volumes))
        label_keys = {indexed_volume.label_key for indexed_volume in available}
        if len(label_keys) == 1 and "" not in label_keys and not choices:
            choice.choose_by_label(label_keys.pop(), available, index_by_name, volumes)
            available = []
        for indexed_volume in available:
            if not choice.remaining_node_count:
                break
            choice.choose_available(indexed_volume, _add_volume(indexed_volume.volume, index_by_name, volumes))
        choices.append(choice.chosen_indices)
        if len(choices) < len(claims):
            _add_used_positions(choice.chosen_indices, used_positions)
            if not claim_to_match.is_provisionable:
                candidates = candidates & (choice.chosen_indices != NO_VOLUME)
    return VolumeMatches(tuple(entry.claim for entry in claims), tuple(volumes), tuple(choices))


def _add_used_positions(chosen_indices: IntArray, used_positions: dict[int, IntArray]) -> None:
    """Add the nodes on which a claim gets each volume to *used_positions*, which has them by the volume's index."""
    positions = np.flatnonzero(chosen_indices != NO_VOLUME)
    positions = positions[np.argsort(chosen_indices[positions], kind="stable")]
    indices, starts = np.unique(chosen_indices[positions], return_index=True)
    for index, used in zip(indices.tolist(), np.split(positions, starts[1:]), strict=False):
        used_positions[index] = np.concatenate((used_positions[index], used)) if index in used_positions else used


def _add_volume(volume: PersistentVolume, index_by_name: dict[str, int], volumes: list[PersistentVolume]) -> int:
    """Add *volume* to *volumes* if it is new, and return its index."""
    name = volume.metadata.name
    if name not in index_by_name:
        index_by_name[name] = len(volumes)
        volumes.append(volume)
    return index_by_name[name]


class _ClaimChoice:
    """The choice of a volume for one claim on each node. The caller offers one volume after another.

    Attributes:
        chosen_indices: the index of the chosen volume on each node, or `NO_VOLUME`; int64.
        remaining_node_count: the number of nodes on which a volume may still be chosen.
    """

    def __init__(
        self,
        topology: TopologyIndex,
        candidates: BoolArray,
        used_positions: Mapping[int, IntArray],
    ) -> None:
        self.chosen_indices: IntArray = np.full(len(topology), NO_VOLUME, dtype=np.int64)
        self.remaining_node_count = int(candidates.sum())
        self._remaining_mask = candidates.copy()
        self._topology = topology
        # The nodes on which earlier claims get each volume, by its index.
        self._used_positions = used_positions
        # The ids of the arrays of positions of which no position remains.
        self._finished_array_ids: set[int] = set()

    def choose_prebound(self, indexed_volume: IndexedVolume, index: int) -> None:
        """Choose a prebound volume of the claim on the remaining nodes that the volume matches.

        A node is skipped if an earlier claim uses the volume there.

        On nodes that the prebound volume does not match, the claim gets no volume.
        """
        unused_positions = np.flatnonzero(self._make_unused_mask(self._topology.all_positions, index))
        matching_positions = self._topology.match_node_selector(indexed_volume.node_affinity)
        self._choose(np.intersect1d(matching_positions, unused_positions), index)
        self._remaining_mask[unused_positions] = False
        self.remaining_node_count = int(self._remaining_mask.sum())

    def choose_available(self, indexed_volume: IndexedVolume, index: int) -> None:
        """Choose an available volume on the remaining nodes that the volume matches. Pass small volumes first."""
        positions = self._topology.match_node_selector(indexed_volume.node_affinity)
        if id(positions) in self._finished_array_ids:
            return
        self._choose(positions[self._make_unused_mask(positions, index)], index)
        if index not in self._used_positions:
            self._finished_array_ids.add(id(positions))  # volumes with an equal selector share the array

    def choose_by_label(
        self,
        key: str,
        available: Sequence[IndexedVolume],
        index_by_name: dict[str, int],
        volumes: list[PersistentVolume],
    ) -> None:
        """Choose on each remaining node the first of the *available* volumes, which no earlier claim can use.

        All of them are on the nodes with certain values of the label *key*.
        """
        positions = np.flatnonzero(self._remaining_mask)
        value_ids = self._topology.get_label_value_ids(key)[positions]
        ids_by_value = self._topology.get_label_values(key)
        first_by_id = [NO_VOLUME] * (len(ids_by_value) + 1)  # the last entry is for nodes without the label
        for index, indexed_volume in enumerate(available):
            for value in indexed_volume.label_values:
                value_id = ids_by_value.get(value)
                if value_id is not None and first_by_id[value_id] == NO_VOLUME:
                    first_by_id[value_id] = index
        first_by_position = np.array(first_by_id, dtype=np.int64)[value_ids]
        has_volume = first_by_position != NO_VOLUME
        chosen, inverse = np.unique(first_by_position[has_volume], return_inverse=True)
        indices = [_add_volume(available[index].volume, index_by_name, volumes) for index in chosen.tolist()]
        self._choose(positions[has_volume], np.array(indices, dtype=np.int64)[inverse])

    def _make_unused_mask(self, positions: IntArray, index: int) -> BoolArray:
        """Return which of *positions* remain and have no earlier claim that gets the volume there."""
        used = self._used_positions.get(index)
        if used is None:
            mask: BoolArray = self._remaining_mask[positions]
            return mask
        were_remaining = self._remaining_mask[used]
        self._remaining_mask[used] = False
        mask = self._remaining_mask[positions]
        self._remaining_mask[used] = were_remaining
        return mask

    def _choose(self, positions: IntArray, index: int | IntArray) -> None:
        if len(positions):
            self.chosen_indices[positions] = index
            self._remaining_mask[positions] = False
            self.remaining_node_count -= len(positions)


def _find_matching_volumes(
    claim: PersistentVolumeClaim, volumes: Sequence[IndexedVolume]
) -> tuple[list[IndexedVolume], list[IndexedVolume]]:
    """Return the volumes bound to *claim* in their given order, and the available volumes that fit, smallest first.

    All *volumes* are of the storage class of *claim*.
    """
    requested_size, spec = _get_requested_size(claim), claim.spec
    volume_mode = spec.volume_mode or _FILESYSTEM
    attributes_class = spec.volume_attributes_class_name or ""
    selector = _compile_selector(claim)
    access_modes = set(spec.access_modes)
    prebound: list[IndexedVolume] = []
    available: list[IndexedVolume] = []
    for indexed_volume in volumes:
        volume, volume_spec = indexed_volume.volume, indexed_volume.volume.spec
        is_bound = volume_spec.claim_ref is not None and is_volume_bound_to_claim(volume, claim)
        if (volume_spec.claim_ref is not None and not is_bound) or indexed_volume.size < requested_size:
            continue
        if (volume_spec.volume_mode or _FILESYSTEM) != volume_mode:
            continue
        if (volume_spec.volume_attributes_class_name or "") != attributes_class:
            continue
        if volume.metadata.deletion_timestamp is not None:
            continue
        if is_bound:
            prebound.append(indexed_volume)
        elif (
            volume.status.phase == _AVAILABLE
            and (selector is None or selector.matches(volume.metadata.labels))
            and access_modes.issubset(volume_spec.access_modes)
        ):
            available.append(indexed_volume)
    available.sort(key=lambda indexed_volume: indexed_volume.size)
    return prebound, available


def _compile_selector(claim: PersistentVolumeClaim) -> Selector | None:
    if claim.spec.selector is None:
        return None
    try:
        return selector_from_label_selector(claim.spec.selector)
    except ValueError as error:
        raise SelectorError(f"error creating internal label selector for claim: {claim.key}: {error}") from error
