"""The feature gates that affect scheduling, with their values in one release of Kubernetes.

Source: pkg/features/kube_features.go, SchedulerQueueingHints, GenericWorkload, TopologyAwareWorkloadScheduling;
component-base/featuregate/feature_gate.go, featureSpecAtEmulationAndMinCompatVersion (1.37).
"""

from collections.abc import Mapping
from collections.abc import Set as AbstractSet
from typing import Final

from extender.config.did_you_mean import did_you_mean
from extender.config.errors import ConfigError, FieldError
from extender.config.feature_gate_specs import FEATURE_SPECS
from extender.config.releases import DEFAULT_RELEASE, Release

_SCHEDULING_FEATURES: Final = """
CompositePodGroup DRAAdminAccess DRAConsumableCapacity DRADerivedAttributes DRADeviceBindingConditions
DRADeviceCompatibilityGroups DRADeviceTaintRules DRADeviceTaints DRAExtendedResource DRAFractionalCapacityRange
DRAListTypeAttributes DRANodeAllocatableResources DRAOptionalNodeOperations DRAPartitionableDevices
DRAPrioritizedList DRAResourceClaimDeviceStatus DRASchedulerFilterTimeout DRAWorkloadResourceClaims
DynamicResourceAllocation GangScheduling GenericWorkload InPlacePodLevelResourcesVerticalScaling
InPlacePodVerticalScaling InPlacePodVerticalScalingSchedulerPreemption InterPodAffinityHostnameFastPath
MatchLabelKeysInPodTopologySpread NodeDeclaredFeatures NodeInclusionPolicyInPodTopologySpread
NominatedNodeNameForExpectation PodGroupPreemptionPolicy PodLevelResources SchedulerAsyncPreemption
SchedulerPopFromBackoffQ SchedulerPreQueueingHints SchedulerQueueingHints SidecarContainers
StorageCapacityScoring TaintTolerationComparisonOperators TopologyAwareWorkloadScheduling VolumeBindMountOptions
VolumeLimitScaling WorkloadAwarePreemption
"""

SCHEDULING_FEATURES: Final[frozenset[str]] = frozenset(_SCHEDULING_FEATURES.split())
"""The gates that change scheduling in at least one release."""

_ALWAYS_ENABLED: Final[Mapping[str, tuple[str, ...]]] = {
    "1.36": (),
    "1.37": ("SchedulerQueueingHints", "SidecarContainers"),
}
"""The gates of earlier releases whose behavior is permanent, by release."""

_REPLACED_GATES: Final[Mapping[str, Mapping[str, str]]] = {
    "1.36": {},
    "1.37": {"GangScheduling": "GenericWorkload", "WorkloadAwarePreemption": "GenericWorkload"},
}
"""The gates of earlier releases whose behavior another gate enables, by release."""

_POD_GROUP_GATES: Final = frozenset(("GenericWorkload", "GangScheduling"))
"""The gates that schedule gangs. Since 1.37 they also enable preemption for a whole group."""


def _add_implied_gates(enabled: AbstractSet[str], release: Release) -> frozenset[str]:
    """Return *enabled* and the gates of earlier releases that *release* always enables, or by another gate."""
    replaced_gates = (name for name, gate in _REPLACED_GATES[release.version].items() if gate in enabled)
    return frozenset((*enabled, *_ALWAYS_ENABLED[release.version], *replaced_gates))


def get_scheduling_defaults(release: Release) -> Mapping[str, bool]:
    """Return the default of each gate of *release* that affects scheduling, sorted by name."""
    specs = FEATURE_SPECS[release.version]
    return {name: specs[name].default for name in sorted(SCHEDULING_FEATURES & specs.keys())}


class FeatureGates:
    """The set of enabled feature gates of one release.

    Gates that the release no longer has are in the set if their behavior is permanent or if the gate that replaces them
    is enabled.

    Attributes:
        coscheduling: whether the pod groups are those of the coscheduling plugin. The gates of pod groups are then on.
        from_flags: the gates without those that the coscheduling plugin turns on.
    """

    def __init__(self, overrides: Mapping[str, bool] | None = None, release: Release = DEFAULT_RELEASE) -> None:
        """Create the set from the default values of *release* and *overrides*.

        Raises:
            ConfigError: a gate is unknown.
        """
        defaults = get_scheduling_defaults(release)
        overrides = overrides or {}
        errors = [
            FieldError("featureGates", f'unknown feature gate "{name}"{did_you_mean(name, defaults)}')
            for name in overrides
            if name not in defaults
        ]
        if errors:
            raise ConfigError(errors)
        enabled = {name for name, value in {**defaults, **overrides}.items() if value}
        self._enabled = _add_implied_gates(enabled, release)
        self.release = release
        self.coscheduling = False
        self.from_flags = self

    def __contains__(self, gate: object) -> bool:
        return gate in self._enabled

    def with_coscheduling(self) -> "FeatureGates":
        """Return these gates for the pod groups of the coscheduling plugin."""
        gates = object.__new__(FeatureGates)
        gates._enabled = _add_implied_gates(self._enabled | _POD_GROUP_GATES, self.release)
        gates.release, gates.coscheduling, gates.from_flags = self.release, True, self.from_flags
        return gates
