"""Optional features of device allocation.

Source: pkg/scheduler/framework/plugins/dynamicresources/dynamicresources.go, AllocatorFeatures (1.36).
"""

from typing import NamedTuple

from extender.config.feature_gates import FeatureGates
from extender.config.releases import DEFAULT_RELEASE, Release
from extender.dra.cel.environment import CelFeatures
from extender.dra.consumable_capacity import CapacityRules


class Features(NamedTuple):
    """The features that feature gates enable.

    A bool feature is named after its gate, with one exception. `device_binding_and_status` needs two gates:
    DRADeviceBindingConditions and DRAResourceClaimDeviceStatus. `cel_features` are the features of CEL selectors.
    `release` has the rules that no feature gate guards. `capacity_rules` are the rules for amounts of capacities.
    """

    admin_access: bool = True
    prioritized_list: bool = True
    partitionable_devices: bool = True
    device_taints: bool = True
    device_binding_and_status: bool = True
    consumable_capacity: bool = True
    device_taint_rules: bool = False
    compatibility_groups: bool = False
    derived_attributes: bool = False
    cel_features: CelFeatures = CelFeatures()
    release: Release = DEFAULT_RELEASE
    capacity_rules: CapacityRules = CapacityRules()

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
            or self.compatibility_groups
            or self.derived_attributes
        )


def make_features(gates: FeatureGates) -> Features:
    """Return the features that *gates* enable."""
    consumable_capacity = "DRAConsumableCapacity" in gates
    return Features(
        admin_access="DRAAdminAccess" in gates,
        prioritized_list="DRAPrioritizedList" in gates,
        partitionable_devices="DRAPartitionableDevices" in gates,
        device_taints="DRADeviceTaints" in gates,
        device_binding_and_status="DRADeviceBindingConditions" in gates and "DRAResourceClaimDeviceStatus" in gates,
        consumable_capacity=consumable_capacity,
        device_taint_rules="DRADeviceTaintRules" in gates,
        compatibility_groups="DRADeviceCompatibilityGroups" in gates,
        derived_attributes="DRADerivedAttributes" in gates,
        cel_features=CelFeatures(consumable_capacity, "DRAListTypeAttributes" in gates),
        release=gates.release,
        capacity_rules=CapacityRules("DRAFractionalCapacityRange" in gates, gates.release.checks_capacity_amounts),
    )
