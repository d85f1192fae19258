"""Optional features of device allocation.

Source: pkg/scheduler/framework/plugins/dynamicresources/dynamicresources.go, AllocatorFeatures (1.36).
"""

from collections.abc import Sequence
from typing import Final

from extender.api.kinds.node import Node
from extender.config.feature_gates import FeatureGates
from extender.dra.consumable_capacity import CapacityRules

OPTIONAL_NODE_OPERATIONS: Final = "DRAOptionalNodeOperations"
"""A gate, and the feature that a node declares whose kubelet can skip operations on devices."""


class Features:
    """The features that *gates* enable.

    A bool feature is named after its gate, with one exception. `device_binding_and_status` needs two gates.
    `release` has the rules that no feature gate guards. `capacity_rules` are the rules for amounts of capacities.
    """

    def __init__(self, gates: FeatureGates) -> None:
        self.admin_access = "DRAAdminAccess" in gates
        self.prioritized_list = "DRAPrioritizedList" in gates
        self.partitionable_devices = "DRAPartitionableDevices" in gates
        self.device_taints = "DRADeviceTaints" in gates
        self.device_binding_and_status = (
            "DRADeviceBindingConditions" in gates and "DRAResourceClaimDeviceStatus" in gates
        )
        self.consumable_capacity = "DRAConsumableCapacity" in gates
        self.device_taint_rules = "DRADeviceTaintRules" in gates
        self.compatibility_groups = "DRADeviceCompatibilityGroups" in gates
        self.derived_attributes = "DRADerivedAttributes" in gates
        self.optional_node_operations = OPTIONAL_NODE_OPERATIONS in gates
        self.list_type_attributes = "DRAListTypeAttributes" in gates
        self.release = gates.release
        self.capacity_rules = CapacityRules(
            "DRAFractionalCapacityRange" in gates, gates.release.checks_capacity_amounts
        )

    @property
    def needs_non_stable_allocator(self) -> bool:
        """Whether upstream selects an allocator other than its stable one.

        It does if a feature is enabled that the stable allocator does not have. Its stable allocator supports
        neither distinctAttribute nor bindsToNode, and ignores capacity requests.
        """
        return (
            self.device_binding_and_status
            or self.consumable_capacity
            or self.capacity_rules.fractional_ranges
            or self.needs_experimental_allocator
        )

    @property
    def restricts_counter_slices(self) -> bool:
        """Whether a slice with shared counters belongs to the nodes that it names; if not, to all nodes.

        Source: dynamic-resource-allocation/structured/internal/stable/pools_stable.go, GatherPools (1.37).
        """
        return self.release.restricts_counter_slices and self.needs_non_stable_allocator

    @property
    def reads_list_attributes(self) -> bool:
        """Whether selectors read attributes that are lists."""
        return self.list_type_attributes or self.release.reads_list_attributes

    @property
    def compares_lists(self) -> bool:
        """Whether constraints compare attributes that are lists, which needs the experimental allocator."""
        return self.list_type_attributes and self.release.reads_list_attributes

    @property
    def needs_experimental_allocator(self) -> bool:
        """Whether upstream selects its experimental allocator.

        The others ignore `skipNodeOperations` of a slice.

        Source: dynamic-resource-allocation/structured/internal/experimental/allocator_experimental.go,
        SupportedFeatures (1.37).
        """
        return (
            self.compatibility_groups or self.derived_attributes or self.optional_node_operations or self.compares_lists
        )

    def can_skip_operations(self, operations: Sequence[str], node: Node) -> bool:
        """Return whether a device that skips *operations* of the kubelet can be allocated on *node*.

        Source: dynamic-resource-allocation/structured/internal/experimental/allocator_experimental.go,
        allocator.allocateDevice (1.37).
        """
        if not operations or not self.needs_experimental_allocator:
            return True
        return self.optional_node_operations and OPTIONAL_NODE_OPERATIONS in node.status.declared_features
