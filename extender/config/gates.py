"""Feature gates that touch scheduling, with the defaults of Kubernetes 1.36. Source: G058 to G104."""

from collections.abc import Iterable, Mapping
from typing import Final

from extender.config.faults import ConfigError, Fault
from extender.config.nearest import hint

DEFAULTS: Final[Mapping[str, bool]] = {
    "DRAAdminAccess": True,
    "DRAConsumableCapacity": True,
    "DRADeviceBindingConditions": True,
    "DRADeviceTaintRules": False,
    "DRADeviceTaints": True,
    "DRAExtendedResource": True,
    "DRAListTypeAttributes": False,
    "DRANodeAllocatableResources": False,
    "DRAPartitionableDevices": True,
    "DRAPrioritizedList": True,
    "DRAResourceClaimDeviceStatus": True,
    "DRASchedulerFilterTimeout": True,
    "DRAWorkloadResourceClaims": False,
    "DynamicResourceAllocation": True,
    "GangScheduling": False,
    "GenericWorkload": False,
    "InPlacePodLevelResourcesVerticalScaling": True,
    "InPlacePodVerticalScaling": True,
    "MatchLabelKeysInPodTopologySpread": True,
    "NodeDeclaredFeatures": True,
    "NodeInclusionPolicyInPodTopologySpread": True,
    "NominatedNodeNameForExpectation": True,
    "PodLevelResources": True,
    "SchedulerAsyncPreemption": True,
    "SchedulerPopFromBackoffQ": True,
    "SchedulerQueueingHints": True,
    "SidecarContainers": True,
    "StorageCapacityScoring": False,
    "TaintTolerationComparisonOperators": False,
    "TopologyAwareWorkloadScheduling": False,
    "VolumeLimitScaling": False,
    "WorkloadAwarePreemption": False,
}


class FeatureGates:
    """Which gates are on."""

    __slots__ = ("_on",)

    def __init__(self, changed: Mapping[str, bool] | None = None) -> None:
        """The defaults, and what differs from them.

        Args:
            changed: gates that differ from their default.

        Raises:
            ConfigError: a gate is unknown.
        """
        changed = changed or {}
        faults = [
            Fault("featureGates", f'unknown feature gate "{name}"{hint(name, DEFAULTS)}')
            for name in changed
            if name not in DEFAULTS
        ]
        if faults:
            raise ConfigError(faults)
        self._on = frozenset(name for name, on in {**DEFAULTS, **changed}.items() if on)

    def __contains__(self, gate: object) -> bool:
        return gate in self._on

    def enabled(self) -> Iterable[str]:
        """The gates that are on, sorted."""
        return sorted(self._on)
