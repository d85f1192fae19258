"""Which optional parts of device allocation are in use. Source: B122."""

from typing import NamedTuple

from extender.cel.environment import Dialect
from extender.config.gates import FeatureGates


class Features(NamedTuple):
    """Parts that a feature gate can switch off; named as their gates.

    `taint_rules` is DRADeviceTaintRules, and `binding` stands for DRADeviceBindingConditions and
    DRAResourceClaimDeviceStatus together.
    """

    admin_access: bool = True
    prioritized_list: bool = True
    partitionable: bool = True
    taints: bool = True
    binding: bool = True
    consumable_capacity: bool = True
    taint_rules: bool = False
    dialect: Dialect = Dialect()

    @property
    def distinct(self) -> bool:
        """Whether distinctAttribute is known: it came with the allocator that the newer parts need."""
        return self.binding or self.consumable_capacity


def features_of(gates: FeatureGates) -> Features:
    """The parts that *gates* leave on."""
    shares = "DRAConsumableCapacity" in gates
    return Features(
        admin_access="DRAAdminAccess" in gates,
        prioritized_list="DRAPrioritizedList" in gates,
        partitionable="DRAPartitionableDevices" in gates,
        taints="DRADeviceTaints" in gates,
        binding="DRADeviceBindingConditions" in gates and "DRAResourceClaimDeviceStatus" in gates,
        consumable_capacity=shares,
        taint_rules="DRADeviceTaintRules" in gates,
        dialect=Dialect(shares, "DRAListTypeAttributes" in gates),
    )
