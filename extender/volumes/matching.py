"""Finding volumes that exist for claims that are not bound: on each node, the smallest that will do. Source: B095."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from extender.cluster.arrays import BoolArray, IntArray
from extender.objects.matching import Selector, from_label_selector
from extender.objects.quantity import ZERO
from extender.objects.storage import PersistentVolume, PersistentVolumeClaim
from extender.volumes.assumptions import is_bound_to
from extender.volumes.claims import claim_class, nano, requested_storage, volume_class
from extender.volumes.places import Places
from extender.volumes.stock import StockedVolume

NONE = -1
"""No volume was found."""

_FILESYSTEM = "Filesystem"
_AVAILABLE = "Available"


@dataclass(frozen=True, slots=True)
class Matches:
    """Which volume each claim gets on each node.

    Attributes:
        claims: by requested size, smallest first.
        volumes: all volumes that some claim gets somewhere.
        choices: for each claim an int64 array over the places: the index of its volume in `volumes`, or `NONE`.
    """

    claims: tuple[PersistentVolumeClaim, ...] = ()
    volumes: tuple[PersistentVolume, ...] = ()
    choices: tuple[IntArray, ...] = ()


class SelectorError(ValueError):
    """The selector of a claim cannot be read; says which and why."""


def in_order_of_size(claims: Iterable[PersistentVolumeClaim]) -> list[PersistentVolumeClaim]:
    """*claims*, smallest request first, otherwise as they came."""
    return sorted(claims, key=_request)


def _request(claim: PersistentVolumeClaim) -> int:
    return nano(requested_storage(claim) or ZERO)


def match(
    claims: Sequence[tuple[PersistentVolumeClaim, Sequence[StockedVolume]]], places: Places, undecided: BoolArray
) -> Matches:
    """Choose volumes for claims.

    Args:
        claims: in the order in which they choose, each with the volumes of its class, promises to other pods included.
        places: of the nodes.
        undecided: where to look, bool, shape (len(places),).

    Raises:
        SelectorError: the selector of a claim cannot be read.
    """
    numbers: dict[str, int] = {}
    volumes: list[PersistentVolume] = []
    choices: list[IntArray] = []
    for claim, stock in claims:
        chosen = _Choice(places, undecided, choices, numbers)
        prebound, free = _suitable(claim, stock)
        for offer in prebound:
            chosen.settle(offer, _number(offer.volume, numbers, volumes))
        for offer in free:
            if not chosen.left:
                break
            chosen.offer(offer, _number(offer.volume, numbers, volumes))
        choices.append(chosen.numbers)
    return Matches(tuple(claim for claim, _ in claims), tuple(volumes), tuple(choices))


def _number(volume: PersistentVolume, numbers: dict[str, int], volumes: list[PersistentVolume]) -> int:
    name = volume.metadata.name
    if name not in numbers:
        numbers[name] = len(volumes)
        volumes.append(volume)
    return numbers[name]


class _Choice:
    """The volumes of one claim, being chosen."""

    __slots__ = ("_earlier", "_everywhere", "_exhausted", "_open", "_places", "_taken", "left", "numbers")

    def __init__(
        self, places: Places, undecided: BoolArray, earlier: Sequence[IntArray], numbers: dict[str, int]
    ) -> None:
        self.numbers: IntArray = np.full(len(places), NONE, dtype=np.int64)
        self.left = int(undecided.sum())
        self._open = undecided.copy()
        self._places = places
        self._earlier = earlier
        self._taken = len(numbers)  # volumes with smaller numbers may have been chosen by another claim
        self._exhausted: set[int] = set()

    def settle(self, offer: StockedVolume, number: int) -> None:
        """A volume that is meant for the claim: that one or none, wherever no other claim took it."""
        free = np.flatnonzero(self._free(self._places.everywhere, number))
        self._take(np.intersect1d(self._places.of_terms(offer.terms), free), number)
        self._open[free] = False
        self.left = int(self._open.sum())

    def offer(self, offer: StockedVolume, number: int) -> None:
        """A volume that would do, no smaller than those offered before."""
        places = self._places.of_terms(offer.terms)
        contested = number < self._taken
        if id(places) in self._exhausted:
            return
        where = places[self._free(places, number)] if contested else places[self._open[places]]
        self._take(where, number)
        if not contested:
            self._exhausted.add(id(places))  # `Places` keeps what it found, so this is the same for equal terms

    def _free(self, places: IntArray, number: int) -> BoolArray:
        free: BoolArray = self._open[places]
        for choice in self._earlier:
            free &= choice[places] != number
        return free

    def _take(self, where: IntArray, number: int) -> None:
        if len(where):
            self.numbers[where] = number
            self._open[where] = False
            self.left -= len(where)


def _suitable(
    claim: PersistentVolumeClaim, stock: Sequence[StockedVolume]
) -> tuple[list[StockedVolume], list[StockedVolume]]:
    """The volumes meant for *claim* in the order of arrival, and those anybody may have, smallest first."""
    request, spec = _request(claim), claim.spec
    mode = spec.volume_mode or _FILESYSTEM
    attributes = spec.volume_attributes_class_name or ""
    selector = _selector(claim)
    wanted = claim_class(claim)
    prebound: list[StockedVolume] = []
    free: list[StockedVolume] = []
    for offer in stock:
        volume = offer.volume
        offered = volume.spec
        mine = is_bound_to(volume, claim)
        if (offered.claim_ref is not None and not mine) or offer.size < request:
            continue
        if (offered.volume_mode or _FILESYSTEM) != mode or (offered.volume_attributes_class_name or "") != attributes:
            continue
        if volume.metadata.deletion_timestamp is not None:
            continue
        if mine:
            prebound.append(offer)
        elif (
            volume.status.phase == _AVAILABLE
            and (selector is None or selector.matches(volume.metadata.labels))
            and volume_class(volume) == wanted
            and set(spec.access_modes) <= set(offered.access_modes)
        ):
            free.append(offer)
    free.sort(key=lambda offer: offer.size)
    return prebound, free


def _selector(claim: PersistentVolumeClaim) -> Selector | None:
    if claim.spec.selector is None:
        return None
    try:
        return from_label_selector(claim.spec.selector)
    except ValueError as fault:
        raise SelectorError(f"error creating internal label selector for claim: {claim.key}: {fault}") from fault
