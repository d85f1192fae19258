"""The feature gates that affect scheduling, with the defaults of Kubernetes 1.36.

Source: pkg/features/kube_features.go, SchedulerQueueingHints, GenericWorkload, TopologyAwareWorkloadScheduling;
component-base/featuregate/feature_gate.go, featureSpecAtEmulationAndMinCompatVersion (1.36).
"""

from collections.abc import Iterable, Mapping
from typing import Final

from extender.config.did_you_mean import did_you_mean
from extender.config.errors import ConfigError, FieldError

SCHEDULING_GATE_DEFAULTS: Final[Mapping[str, bool]] = {
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
    """The set of enabled gates."""

    __slots__ = ("_enabled",)

    def __init__(self, overrides: Mapping[str, bool] | None = None) -> None:
        """Enable the default gates, changed by *overrides*.

        Args:
            overrides: values by gate name.

        Raises:
            ConfigError: a gate is unknown.
        """
        overrides = overrides or {}
        errors = [
            FieldError("featureGates", f'unknown feature gate "{name}"{did_you_mean(name, SCHEDULING_GATE_DEFAULTS)}')
            for name in overrides
            if name not in SCHEDULING_GATE_DEFAULTS
        ]
        if errors:
            raise ConfigError(errors)
        self._enabled = frozenset(name for name, value in {**SCHEDULING_GATE_DEFAULTS, **overrides}.items() if value)

    def __contains__(self, gate: object) -> bool:
        return gate in self._enabled

    def list_enabled(self) -> Iterable[str]:
        """Return the enabled gates, sorted."""
        return sorted(self._enabled)
