"""Optional features of device allocation.

Source: pkg/scheduler/framework/plugins/dynamicresources/dynamicresources.go, AllocatorFeatures (1.36).
"""

from typing import NamedTuple

from extender.config.feature_gates import FeatureGates
from extender.dra.cel.environment import Dialect


class Features(NamedTuple):
    """The features that feature gates enable.

    `device_binding` needs two gates, DRADeviceBindingConditions and DRAResourceClaimDeviceStatus. Each other feature
    is named after its gate.
    """

    admin_access: bool = True
    prioritized_list: bool = True
    partitionable_devices: bool = True
    device_taints: bool = True
    device_binding: bool = True
    consumable_capacity: bool = True
    device_taint_rules: bool = False
    dialect: Dialect = Dialect()

    @property
    def distinct_attribute(self) -> bool:
        """Whether distinctAttribute is supported: only the allocator for the newer features has it."""
        return self.device_binding or self.consumable_capacity


def make_features(gates: FeatureGates) -> Features:
    """Return the features that *gates* enable."""
    consumable_capacity = "DRAConsumableCapacity" in gates
    return Features(
        admin_access="DRAAdminAccess" in gates,
        prioritized_list="DRAPrioritizedList" in gates,
        partitionable_devices="DRAPartitionableDevices" in gates,
        device_taints="DRADeviceTaints" in gates,
        device_binding="DRADeviceBindingConditions" in gates and "DRAResourceClaimDeviceStatus" in gates,
        consumable_capacity=consumable_capacity,
        device_taint_rules="DRADeviceTaintRules" in gates,
        dialect=Dialect(consumable_capacity, "DRAListTypeAttributes" in gates),
    )
