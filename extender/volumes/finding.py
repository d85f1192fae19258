"""Whether and how the claims of a pod can be had on each node: bound ones, those that are matched, those that are made.

Source: B091 to B096.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from extender.cluster.arrays import BoolArray
from extender.cluster.node_matching import named_mask
from extender.cluster.snapshot import NodeView, Snapshot
from extender.objects.storage import PersistentVolume, PersistentVolumeClaim
from extender.volumes.assumptions import Assumptions
from extender.volumes.claims import SELECTED_NODE, claim_class
from extender.volumes.matching import NONE, Matches, SelectorError, in_order_of_size, match
from extender.volumes.migration import TranslationError, in_tree_driver, translated_affinity, volume_handle
from extender.volumes.places import Places, node_terms
from extender.volumes.provisioning import Provision, provision
from extender.volumes.stock import Stock, StockedVolume, affinity_terms


@dataclass(frozen=True, slots=True)
class PodClaims:
    """The claims of a pod that are in order.

    Attributes:
        bound: have their volume.
        delayed: get it when the pod has its node.
    """

    bound: tuple[PersistentVolumeClaim, ...] = ()
    delayed: tuple[PersistentVolumeClaim, ...] = ()


@dataclass(slots=True)
class Found:
    """What was found out; masks are bool, one entry a node of the view.

    Attributes:
        elsewhere: a bound volume cannot be used on the node.
        unbindable: there is no volume for some claim, and none can be made.
        too_little: there is not enough storage left to make one.
        vanished: the volume of a bound claim does not exist.
        faults: something cannot be judged, and why; such a node stands in no other mask.
        matches: volumes chosen for claims.
        made: claims that a volume is made for.
    """

    elsewhere: BoolArray
    unbindable: BoolArray
    too_little: BoolArray
    vanished: BoolArray
    faults: list[tuple[BoolArray, str]] = field(default_factory=list)
    matches: Matches = field(default_factory=Matches)
    made: tuple[Provision, ...] = ()


def find(claims: PodClaims, nodes: NodeView, stock: Stock, promised: Assumptions) -> Found:
    """How *claims* can be had on *nodes*.

    Args:
        claims: of the pod.
        nodes: to look at.
        stock: what there is.
        promised: what was promised to other pods.
    """
    nowhere = np.zeros(len(nodes), dtype=np.bool_)
    found = Found(nowhere.copy(), nowhere.copy(), nowhere.copy(), nowhere.copy())
    places = Places(nodes)
    _find_bound(claims.bound, nodes, places, stock, found)
    if claims.delayed:
        _find_delayed(claims.delayed, nodes, places, stock, promised, found)
    faulty = nowhere
    for mask, _ in found.faults:
        faulty = faulty | mask
    if found.faults:
        for mask in (found.elsewhere, found.unbindable, found.too_little, found.vanished):
            mask[faulty] = False
    return found


# -- bound claims


def _find_bound(
    claims: tuple[PersistentVolumeClaim, ...], nodes: NodeView, places: Places, stock: Stock, found: Found
) -> None:
    """The first claim that fails on a node says why."""
    left = np.ones(len(nodes), dtype=np.bool_)
    for claim in claims:
        volume = nodes.snapshot.find(PersistentVolume, claim.spec.volume_name)
        if volume is None:
            found.vanished |= left
            return
        reach = reach_of(volume, nodes, places, stock)
        if reach.fault:
            found.faults.append((reach.unknown & left, reach.fault))
            left &= ~reach.unknown
        found.elsewhere |= left & ~reach.usable
        left &= reach.usable


@dataclass(frozen=True, slots=True)
class Reach:
    """Where a volume can be used; masks are bool, one entry a node of the view.

    Attributes:
        usable: there.
        unknown: where it cannot be said.
        fault: why not; empty if it can be said everywhere.
    """

    usable: BoolArray
    unknown: BoolArray
    fault: str = ""


def reach_of(volume: PersistentVolume, nodes: NodeView, places: Places, stock: Stock) -> Reach:
    """Where *volume* can be used. Nodes that migrated its driver go by the labels of the CSI driver. Source: B093."""
    nowhere = np.zeros(len(nodes), dtype=np.bool_)
    usable = nowhere.copy()
    usable[places.of_terms(affinity_terms(volume))] = True
    driver = in_tree_driver(volume.spec)
    if driver is None or not driver.migrated:
        return Reach(usable, nowhere)
    migrated = _among(nodes, stock.nodes_that_migrated(nodes.snapshot, driver.name))
    if not migrated.any():
        return Reach(usable, nowhere)
    try:
        volume_handle(volume)
    except TranslationError as fault:
        return Reach(usable & ~migrated, migrated, f"could not translate pv: {fault}")
    selector = translated_affinity(volume, driver)
    there = nowhere.copy()
    there[places.of_terms(None if selector is None else node_terms(selector))] = True
    return Reach(np.where(migrated, there, usable), nowhere)


def _among(nodes: NodeView, names: Sequence[str]) -> BoolArray:
    mask = np.zeros(len(nodes.snapshot), dtype=np.bool_)
    rows = nodes.snapshot.rows(names)
    mask[rows[rows >= 0]] = True
    return nodes.take(mask)


# -- claims that wait for the pod


def _find_delayed(
    claims: tuple[PersistentVolumeClaim, ...],
    nodes: NodeView,
    places: Places,
    stock: Stock,
    promised: Assumptions,
    found: Found,
) -> None:
    left = np.ones(len(nodes), dtype=np.bool_)
    for mask, _ in found.faults:
        left &= ~mask
    to_make: list[PersistentVolumeClaim] = []
    to_match: list[PersistentVolumeClaim] = []
    for claim in claims:
        selected = claim.metadata.annotations.get(SELECTED_NODE)
        if selected is None:
            to_match.append(claim)
            continue
        to_make.append(claim)
        here = named_mask(nodes, (selected,))
        found.unbindable |= left & ~here
        left &= here
    if not left.any():
        return
    wanted = [(claim, left) for claim in to_make]
    if to_match:
        cluster = nodes.snapshot
        ordered = in_order_of_size(to_match)
        offers = {name: _offers(name, cluster, stock, promised) for name in map(claim_class, ordered)}
        try:
            found.matches = match([(claim, offers[claim_class(claim)]) for claim in ordered], places, left)
        except SelectorError as fault:
            found.faults.append((left, str(fault)))
            return
        wanted += [
            (claim, left & (choice == NONE)) for claim, choice in zip(ordered, found.matches.choices, strict=True)
        ]
    provisions = provision(wanted, places, nodes.snapshot, stock)
    found.made = provisions.made
    found.unbindable |= provisions.impossible
    found.too_little |= provisions.too_little
    found.faults += provisions.faults


def _offers(class_name: str, cluster: Snapshot, stock: Stock, promised: Assumptions) -> list[StockedVolume]:
    """The volumes of a class as they will be."""
    known = stock.volumes(cluster, class_name)
    if not promised.volumes:
        return known
    return [
        each
        if (volume := promised.volume(each.volume)) is each.volume
        else StockedVolume(volume, each.size, each.terms)
        for each in known
    ]
