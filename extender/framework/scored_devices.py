"""Extended resources that devices stand in for, among the resources a plugin scores nodes by. Source: B042."""

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from extender.allocation.counting import Counts, DeviceCounter
from extender.allocation.features import features_of
from extender.cluster.arrays import IntArray
from extender.cluster.device_classes import classes_by_resource
from extender.cluster.snapshot import NodeView, Snapshot
from extender.config.gates import FeatureGates
from extender.framework.scored_resources import ResourceSpec, ScoredResource
from extender.objects.devices import DeviceClass
from extender.objects.requests import is_dra_extended


@dataclass(frozen=True, slots=True)
class ServedResource(ScoredResource):
    """A resource that nodes without any of it can serve by devices.

    Attributes:
        devices: of the class, by row.
    """

    devices: Counts = field(kw_only=True)

    def capacity(self, nodes: NodeView) -> IntArray:
        """What each node offers, or how many devices it has instead; never to be written to."""
        own = ScoredResource.capacity(self, nodes)
        return np.where(own == 0, nodes.take(self.devices.all), own)

    def taken(self, nodes: NodeView) -> IntArray:
        """What the pods on each node count for, or how many devices are taken instead; never to be written to."""
        instead = (ScoredResource.capacity(self, nodes) == 0) & (nodes.take(self.devices.all) > 0)
        return np.where(instead, nodes.take(self.devices.used), ScoredResource.taken(self, nodes))

    def of_row(self, nodes: NodeView, row: int) -> tuple[int, int]:  # noqa: ARG002  the arrays have no other
        """`taken` and `capacity` of the only *row* of *nodes*."""
        return self.taken(nodes).item(), self.capacity(nodes).item()


class ScoredDevices:
    """Knows which scored resources devices stand in for. Belongs to one plugin."""

    def __init__(self, gates: FeatureGates, specs: Sequence[ResourceSpec]) -> None:
        self._places = [place for place, spec in enumerate(specs) if is_dra_extended(spec.name)]
        self._counter = DeviceCounter(features_of(gates)) if "DRAExtendedResource" in gates else None

    def key(self, requests: tuple[int, ...]) -> tuple[int, ...] | None:
        """*requests*, one for each resource, if none of them can be served by devices."""
        served = self._counter is not None and any(requests[place] for place in self._places)
        return None if served else requests

    def instead(self, resources: Sequence[ScoredResource], cluster: Snapshot) -> tuple[ScoredResource, ...]:
        """*resources* with those that a device class serves replaced."""
        if self._counter is None or not self._places:
            return tuple(resources)
        classes = classes_by_resource(cluster.objects(DeviceClass).values())
        words = cluster.vocabulary.resources
        return tuple(self._replaced(each, classes.get(words[each.number]), cluster) for each in resources)

    def _replaced(
        self, resource: ScoredResource, device_class: DeviceClass | None, cluster: Snapshot
    ) -> ScoredResource:
        if device_class is None or self._counter is None:
            return resource
        counts = self._counter.counts(device_class, cluster)
        return ServedResource(resource.number, resource.weight, resource.request, resource.nonzero_line, devices=counts)
