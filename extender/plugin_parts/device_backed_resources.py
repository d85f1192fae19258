"""Extended resources that are backed by DRA devices, for plugins that score resources.

Source: pkg/scheduler/framework/plugins/noderesources/resource_allocation.go,
resourceAllocationScorer.calculateDRAResourceTotals (1.36).
"""

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from extender.api.kinds.devices import DeviceClass
from extender.api.requests import is_dra_extended_resource
from extender.cache.device_classes import map_resources_to_device_classes
from extender.cache.snapshot import NodeView, Snapshot
from extender.cache.tables.arrays import IntArray
from extender.config.feature_gates import FeatureGates
from extender.dra.device_counts import DeviceCounter, DeviceCounts
from extender.dra.features import make_features
from extender.plugin_parts.scored_resources import ResourceSpec, ScoredResource


@dataclass(frozen=True, slots=True)
class DeviceBackedResource(ScoredResource):
    """A scored resource that is backed by DRA devices on the nodes that have no allocatable amount of it.

    Attributes:
        device_counts: the numbers of devices of the resource's device class, by row.
    """

    device_counts: DeviceCounts = field(kw_only=True)

    def allocatable(self, nodes: NodeView) -> IntArray:
        """Return each node's allocatable amount; where it is 0, the number of devices. Do not modify the result."""
        amounts = ScoredResource.allocatable(self, nodes)
        return np.where(amounts == 0, nodes.take(self.device_counts.total), amounts)

    def requested(self, nodes: NodeView) -> IntArray:
        """Return each node's requested amount. Do not modify the result.

        On nodes where devices back the resource, the amount is the number of allocated devices.
        """
        uses_devices = (ScoredResource.allocatable(self, nodes) == 0) & (nodes.take(self.device_counts.total) > 0)
        return np.where(uses_devices, nodes.take(self.device_counts.allocated), ScoredResource.requested(self, nodes))

    def requested_and_allocatable(self, nodes: NodeView, row: int) -> tuple[int, int]:  # noqa: ARG002  the base class needs *row*
        """Return the requested and allocatable amounts of *row*, the only row of *nodes*."""
        return self.requested(nodes).item(), self.allocatable(nodes).item()


class DeviceBackedResourceBuilder:
    """Builds a `DeviceBackedResource` for each scored resource that has a device class."""

    def __init__(self, gates: FeatureGates, specs: Sequence[ResourceSpec]) -> None:
        self._extended_resource_positions = [
            position for position, spec in enumerate(specs) if is_dra_extended_resource(spec.name)
        ]
        self._counter = DeviceCounter(make_features(gates)) if "DRAExtendedResource" in gates else None

    def make_cache_key(self, requests: tuple[int, ...]) -> tuple[int, ...] | None:
        """Return *requests* as the cache key of a score; None if devices may back a requested resource."""
        has_dra_requests = self._counter is not None and any(
            requests[position] for position in self._extended_resource_positions
        )
        return None if has_dra_requests else requests

    def replace_device_backed(
        self, resources: Sequence[ScoredResource], snapshot: Snapshot
    ) -> tuple[ScoredResource, ...]:
        """Return *resources*, with a `DeviceBackedResource` in place of each resource that has a device class."""
        if self._counter is None or not self._extended_resource_positions:
            return tuple(resources)
        class_by_resource = map_resources_to_device_classes(snapshot.objects(DeviceClass).values())
        resource_names = snapshot.symbols.resources
        return tuple(
            self._replace_if_device_backed(
                resource, class_by_resource.get(resource_names[resource.resource_id]), snapshot
            )
            for resource in resources
        )

    def _replace_if_device_backed(
        self, resource: ScoredResource, device_class: DeviceClass | None, snapshot: Snapshot
    ) -> ScoredResource:
        if device_class is None or self._counter is None:
            return resource
        counts = self._counter.count_devices(device_class, snapshot)
        return DeviceBackedResource(
            resource.resource_id, resource.weight, resource.request, resource.nonzero_index, device_counts=counts
        )
