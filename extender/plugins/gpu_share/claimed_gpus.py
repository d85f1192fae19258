"""GPUs that DynamicResources allocates: which nodes have them, their free milli, and what a pod's claims take.

GpuShare does not choose these GPUs. It reads the allocation that Filter of DynamicResources found on each node.
"""

from collections.abc import Mapping
from typing import Any, Final

import numpy as np

from extender.api.kinds.devices import ResourceClaim
from extender.api.kinds.node import Node
from extender.api.kinds.pod import Pod
from extender.cache.pod_info import AssignedPodInfo, PodInfo
from extender.cache.snapshot import NodeView, Snapshot
from extender.cache.tables.arrays import BoolArray, IntArray
from extender.cache.tables.symbols import MAX_UNUSED_VALUES
from extender.dra.allocated_devices import AllocatedDevices
from extender.dra.allocator import ALLOCATOR_KEY, Allocator, NodeAllocation
from extender.dra.device_shares import DeviceShares
from extender.dra.errors import AllocationError
from extender.dra.resource_slices import PoolId
from extender.framework.status import Code, Reason, Rejection
from extender.plugins.gpu_share.gpu_request import MAX_DEVICES, NO_GPU, GpuRequest

CLAIMED: Final = 1
"""In `NodeDevices.claimed`: claims allocate the GPUs of the node."""
MIXED: Final = 2
"""In `NodeDevices.claimed`: claims allocate the GPUs of the node, and it has pods that request GPUs without claims."""

ONLY_CLAIMS: Final = Reason("node(s) had GPUs that only resource claims can allocate", Code.UNRESOLVABLE)
MIXED_USE: Final = Reason("node(s) had GPUs for resource claims that pods without claims use")


class ClaimedGpus:
    """The GPUs of the drivers in the option `dynamicResources`, on the snapshots of one cache.

    *resources_by_driver* has the name of the measured capacity or counter, and *shared_state* the allocator.
    """

    def __init__(self, resources_by_driver: Mapping[str, str], shared_state: Mapping[str, Any]) -> None:
        self._resources = resources_by_driver
        self._shared_state = shared_state
        self._allocator: Allocator | None = None
        self._shares: DeviceShares | None = None
        self._slices_version: tuple[object, ...] | None = None
        self._gpu_counts: dict[str, tuple[Node, int]] = {}
        self._nodes_by_pool: dict[PoolId, set[str]] = {}

    @property
    def version(self) -> tuple[object, ...]:
        """A value that changes with the slices, and with the allocated devices."""
        if self._allocator is None:
            return ()
        return self._allocator.slice_and_class_version, self._allocator.allocated_devices.version

    @property
    def slices_version(self) -> tuple[object, ...]:
        """A value that changes with the slices."""
        return () if self._allocator is None else self._allocator.slice_and_class_version

    @property
    def _devices(self) -> AllocatedDevices | None:
        return None if self._allocator is None else self._allocator.allocated_devices

    def sync(self, snapshot: Snapshot) -> bool:
        """Update from the slices and claims of *snapshot*. Return whether DynamicResources is enabled."""
        allocator: Allocator | None = self._shared_state.get(ALLOCATOR_KEY)
        if allocator is None:
            return False
        if allocator is not self._allocator:
            self._allocator, self._shares = allocator, DeviceShares(allocator, self._resources)
        allocator.sync(snapshot)
        if self._slices_version != allocator.slice_and_class_version:
            self._slices_version = allocator.slice_and_class_version
            self._gpu_counts, self._nodes_by_pool = {}, {}
        elif len(self._gpu_counts) > 2 * len(snapshot.names) + MAX_UNUSED_VALUES:
            self._forget_removed_nodes(snapshot)
        return True

    def _forget_removed_nodes(self, snapshot: Snapshot) -> None:
        names = set(snapshot.names)
        self._gpu_counts = {name: entry for name, entry in self._gpu_counts.items() if name in names}
        self._nodes_by_pool = {pool: nodes & names for pool, nodes in self._nodes_by_pool.items()}

    def list_nodes_changed_since(self, version: tuple[object, ...]) -> set[str] | None:
        """Return the names of the nodes whose GPUs changed after *version*, see `version`; None: all nodes."""
        devices = self._devices
        if devices is None or version == self.version:
            return set()
        if not version or version[0] != self.slices_version or not isinstance(version[1], int):
            return None
        pools = devices.list_pools_changed_since(version[1])
        return None if pools is None else {name for pool in set(pools) for name in self._nodes_by_pool.get(pool, ())}

    def count(self, node: Node) -> int:
        """Return the number of GPUs of *node* that claims allocate, at most `MAX_DEVICES`."""
        entry = self._gpu_counts.get(node.metadata.name)
        if entry is None or entry[0] is not node:
            entry = self._gpu_counts[node.metadata.name] = node, len(self.measure(node))
        return entry[1]

    def measure(self, node: Node, allocation: NodeAllocation | None = None) -> tuple[int, ...]:
        """Return the free milli of each GPU of *node*, after *allocation*; empty if its slices are invalid."""
        if self._shares is None:
            return ()
        try:
            for pool in self._shares.find_pools(node):
                self._nodes_by_pool.setdefault(pool.id, set()).add(node.metadata.name)
            return self._shares.measure(node, allocation)[:MAX_DEVICES]
        except AllocationError:  # DynamicResources reports it
            return ()

    def has_claims(self, pod: PodInfo | AssignedPodInfo) -> bool:
        """Return whether *pod* has claims, or requests an extended resource that a device class backs."""
        spec, status = pod.pod.spec, pod.pod.status
        if spec.resource_claims or status.extended_resource_claim_status is not None:
            return True
        return self._allocator is not None and self._allocator.planned_allocations[0] == pod.uid

    def find_allocation(self, pod: PodInfo, node_name: str) -> NodeAllocation | None:
        """Return the allocation that Filter of DynamicResources found for *pod* on a node; None if there is none."""
        if self._allocator is None or self._allocator.planned_allocations[0] != pod.uid:
            return None
        return self._allocator.planned_allocations[1](node_name)

    def measure_after(self, pod: PodInfo, nodes: NodeView, free: IntArray) -> IntArray:
        """Return the free milli of each GPU after the allocation for *pod*: int64, the shape of *free*.

        *free* are the free milli before.
        """
        after = free.copy()
        for position, node in enumerate(nodes.nodes):
            allocation = self.find_allocation(pod, node.metadata.name)
            if allocation is not None:
                milli = self.measure(node, allocation)
                after[position, : len(milli)] = milli
        return after

    def find_request(self, pod: Pod, snapshot: Snapshot) -> GpuRequest | None:
        """Return what the allocated claims of *pod* take; None if a claim is missing or not allocated."""
        milli: list[int] = []
        for name in pod.existing_claim_names:
            claim = snapshot.get_object(ResourceClaim, f"{pod.metadata.namespace}/{name}")
            if claim is None or claim.status.allocation is None or self._shares is None:
                return None
            milli.extend(self._shares.measure_results(claim.status.allocation.devices.results))
        return make_request(milli)

    def reject_mixed_nodes(self, pod: PodInfo, nodes: NodeView, claimed: IntArray) -> tuple[Rejection, ...]:
        """Reject nodes whose GPUs are also used without claims, if *pod* takes a GPU there, or if that is unknown.

        *pod* has claims. *claimed* is the column `NodeDevices.claimed` of *nodes*.
        """
        rejected: BoolArray = claimed == MIXED
        for position in np.flatnonzero(rejected).tolist():
            allocation = self.find_allocation(pod, nodes.names[position])
            if allocation is not None:
                drivers = {result.device.id[0] for results in allocation for result in results}
                rejected[position] = not drivers.isdisjoint(self._resources)
        return (Rejection(rejected, MIXED_USE),) if rejected.any() else ()


def make_request(milli: list[int]) -> GpuRequest:
    """Return the request that takes these milli of GPUs; unequal parts count as the largest."""
    parts = [part for part in milli if part > 0]
    return GpuRequest(max(parts), len(parts)) if parts else NO_GPU
