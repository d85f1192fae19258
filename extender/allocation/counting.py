"""How many devices of a class each node has, and how many of them are taken.

Scores go by that where devices stand in for an extended resource. As upstream this counts what slices list: incomplete
pools and old generations too.

Source: B042.
"""

from collections.abc import Iterable
from typing import NamedTuple

import numpy as np

from extender.allocation.allocator import Allocator
from extender.allocation.features import Features
from extender.allocation.slices import Offer, OfferedDevice, Place
from extender.basics.clock import SystemClock
from extender.cel.environment import CompileError, EvaluationError
from extender.cluster.arrays import BoolArray, IntArray
from extender.cluster.node_matching import terms_mask
from extender.cluster.snapshot import NodeView, Snapshot
from extender.objects.devices import DeviceClass

Rows = BoolArray | IntArray
"""A mask over rows, or the numbers of some."""


class Counts(NamedTuple):
    """Devices by row, int64, shape (number of nodes,): all of a class, and those that are taken or shared."""

    all: IntArray
    used: IntArray


class DeviceCounter:
    """Counts devices in one history of a cluster; belongs to one plugin, is not thread-safe."""

    def __init__(self, features: Features) -> None:
        self._features = features
        self._allocator = Allocator(features, SystemClock())
        self._kept: dict[str, tuple[object, Counts]] = {}

    def counts(self, device_class: DeviceClass, cluster: Snapshot) -> Counts:
        """The devices of *device_class*; 0 on nodes where a selector of the class fails."""
        allocator = self._allocator
        allocator.catch_up(cluster)
        moment = (*allocator.moment, allocator.allocated.version, cluster.lineage, cluster.node_position)
        name = device_class.metadata.name
        known = self._kept.get(name)
        if known is None or known[0] != moment:
            known = self._kept[name] = (moment, self._counted(device_class, cluster))
        return known[1]

    def _counted(self, device_class: DeviceClass, cluster: Snapshot) -> Counts:
        size = len(cluster)
        view = cluster.view()
        found = Counts(np.zeros(size, dtype=np.int64), np.zeros(size, dtype=np.int64))
        faulty = np.zeros(size, dtype=np.bool_)
        for offer in self._allocator.stock.offers.values():
            for where, devices in _by_place(offer, view):
                if where is None:
                    faulty[:] = True
                    continue
                counted = self._matching(devices, device_class)
                if counted is None:
                    faulty[where] = True
                else:
                    found.all[where] += counted[0]
                    found.used[where] += counted[1]
        found.all[faulty] = 0
        found.used[faulty] = 0
        return found

    def _matching(self, devices: Iterable[OfferedDevice], device_class: DeviceClass) -> tuple[int, int] | None:
        """How many of *devices* are of the class, and how many of those are used; None if a selector fails."""
        total = used = 0
        expressions = [each.cel.expression for each in device_class.spec.selectors if each.cel is not None]
        dialect = self._features.dialect
        for device in devices:
            try:
                matches = all(device.satisfies(each, dialect, as_shared=False) for each in expressions)
            except (CompileError, EvaluationError):
                return None
            if matches:
                total += 1
                used += self._allocator.allocated.is_used(device.id)
        return total, used


def _by_place(offer: Offer, view: NodeView) -> Iterable[tuple[Rows | None, tuple[OfferedDevice, ...]]]:
    """The devices of a slice with the rows they count on; None: a node selector is wrong."""
    if not offer.by_device:
        everywhere = Place(everywhere=True)
        return ((_rows(offer.place or everywhere, view), offer.devices),)
    return tuple((_rows(device.place, view), (device,)) for device in offer.devices)


def _rows(place: Place, view: NodeView) -> Rows | None:
    if place.everywhere:
        return np.ones(len(view), dtype=np.bool_)
    if place.name:
        row = view.snapshot.row(place.name)
        return np.array([] if row is None else [row], dtype=np.int64)
    if place.terms is None:
        return None if place.fault else np.zeros(len(view), dtype=np.bool_)
    return terms_mask(view, place.terms)
