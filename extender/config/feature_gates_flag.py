"""The flag `--feature-gates`, a comma-separated list of `Gate=bool` or `kube:Gate=bool`.

Source: component-base/compatibility/registry.go, componentGlobalsRegistry.AddFlags; pkg/features/kube_features.go,
SchedulerQueueingHints (1.36).
"""

from collections.abc import Iterable, Mapping
from typing import Final

from extender.config.did_you_mean import did_you_mean
from extender.config.errors import ConfigError, FieldError
from extender.config.feature_gate_specs import FEATURE_SPECS, FeatureSpec
from extender.config.feature_gates import FeatureGates, get_scheduling_defaults
from extender.config.releases import DEFAULT_RELEASE, Release

TRUE_VALUES: Final = frozenset(("1", "t", "T", "true", "TRUE", "True"))
"""The texts that Go's strconv.ParseBool reads as true."""
FALSE_VALUES: Final = frozenset(("0", "f", "F", "false", "FALSE", "False"))
"""The texts that Go's strconv.ParseBool reads as false."""

_PATH: Final = "--feature-gates"
_STAGE_SWITCHES: Final = {"AllAlpha": "ALPHA", "AllBeta": "BETA"}
GATE_DEPENDENCIES: Final[Mapping[str, tuple[str, ...]]] = {
    "CompositePodGroup": ("GenericWorkload", "TopologyAwareWorkloadScheduling"),
    "ClusterTrustBundleProjection": ("ClusterTrustBundle",),
    "DRADeviceBindingConditions": ("DRAResourceClaimDeviceStatus",),
    "DRADeviceCompatibilityGroups": ("DRAPartitionableDevices",),
    "DRADeviceTaintRules": ("DRADeviceTaints",),
    "DRAFractionalCapacityRange": ("DRAConsumableCapacity",),
    "DRAOptionalNodeOperations": ("NodeDeclaredFeatures",),
    "DRAPartitionableDevicesType": ("DRAPartitionableDevices", "DRAResourcePoolStatus"),
    "DRAResourceClaimGranularStatusAuthorization": ("DRAResourceClaimDeviceStatus",),
    "DRAWorkloadResourceClaims": ("GenericWorkload",),
    "ExtendWebSocketsToKubelet": ("NodeDeclaredFeatures",),
    "GangScheduling": ("GenericWorkload",),
    "GracefulNodeShutdownBasedOnPodPriority": ("GracefulNodeShutdown",),
    "H2CContainerProbe": ("NodeDeclaredFeatures",),
    "InPlacePodLevelResourcesVerticalScaling": ("NodeDeclaredFeatures", "PodLevelResources"),
    "InPlacePodVerticalScalingInitContainers": ("NodeDeclaredFeatures",),
    "InPlacePodVerticalScalingMemoryBackedVolumes": ("NodeDeclaredFeatures",),
    "MatchLabelKeysInPodTopologySpreadSelectorMerge": ("MatchLabelKeysInPodTopologySpread",),
    "NodeControllerLeaseCircuitBreaker": ("AtomicFIFO",),
    "PodGroupPreemptionPolicy": ("GenericWorkload",),
    "PodLevelResourceManagers": ("PodLevelResources",),
    "PodLevelResourcesFixDefaulting": ("PodLevelResources",),
    "PodLevelResourcesFixKubeletQOSClass": ("PodLevelResources",),
    "ResourceHealthStatusMessage": ("ResourceHealthStatus",),
    "RestartAllContainersOnContainerExits": ("ContainerRestartRules", "NodeDeclaredFeatures"),
    "StaleControllerConsistencyDaemonSet": ("AtomicFIFO",),
    "StaleControllerConsistencyHPA": ("AtomicFIFO",),
    "StaleControllerConsistencyJob": ("AtomicFIFO",),
    "StaleControllerConsistencyReplicaSet": ("AtomicFIFO",),
    "StaleControllerConsistencyStatefulSet": ("AtomicFIFO",),
    "TopologyAwareWorkloadScheduling": ("GenericWorkload",),
    "UnknownVersionInteroperabilityProxy": ("APIServerIdentity",),
    "WindowsGracefulNodeShutdown": ("GracefulNodeShutdown",),
    "WorkloadAwarePreemption": ("GangScheduling",),
    "WorkloadWithJob": ("GenericWorkload",),
}
"""By gate, the gates that must be enabled if it is enabled. The mapping has the gates of all releases."""


def parse_feature_gates(flag_values: Iterable[str], release: Release = DEFAULT_RELEASE) -> dict[str, bool]:
    """Return the values of the gates that the flag sets, by gate name without `kube:`. The last value of a gate counts.

    *release* determines the gates, their stages and their defaults.

    Raises:
        ConfigError: the syntax is wrong, a gate is unknown or locked, or an enabled gate depends on a disabled gate.
    """
    gates: dict[str, bool] = {}
    items = [item.strip() for value in flag_values for item in value.split(",")]
    specs = FEATURE_SPECS[release.version]
    errors = [FieldError(_PATH, message) for item in items if item and (message := _parse_item(item, gates, specs))]
    gate_values = _resolve_gates(gates, release)
    for gate in sorted(GATE_DEPENDENCIES.keys()):
        if gate_values.get(gate) and (disabled_dependencies := _list_disabled_dependencies(gate, gate_values)):
            names = " ".join(disabled_dependencies)
            errors.append(FieldError(_PATH, f"{gate} is enabled, but depends on features that are disabled: [{names}]"))
    if errors:
        raise ConfigError(errors)
    return gates


def _list_disabled_dependencies(gate: str, gate_values: Mapping[str, bool]) -> list[str]:
    return [name for name in GATE_DEPENDENCIES[gate] if name in gate_values and not gate_values[name]]


def _parse_item(item: str, gates: dict[str, bool], specs: Mapping[str, FeatureSpec]) -> str:
    """Add one `Gate=bool` to *gates*. Return an error message, or an empty string if the item is valid."""
    name, separator, value = item.partition("=")
    component, colon, bare_name = name.partition(":")
    if colon and component != "kube":
        return f"component not registered: {component}; want kube:{bare_name}=true or {bare_name}=true"
    name = bare_name if colon else name
    if not separator:
        return f"missing bool value for {name}; write {name}=true or {name}=false"
    if value not in TRUE_VALUES | FALSE_VALUES:
        return f"invalid value of {name}={value}: want true or false"
    spec = specs.get(name)
    if spec is None:
        return f"unrecognized feature gate: {name}{_suggest(name, specs)}"
    if spec.locked and (value in TRUE_VALUES) != spec.default:
        locked_value = str(spec.default).lower()
        return f"cannot set feature gate {name} to {value}, feature is locked to {locked_value}"
    gates[name] = value in TRUE_VALUES
    return ""


def _suggest(name: str, specs: Mapping[str, FeatureSpec]) -> str:
    """Return a message suffix with the releases that have the gate *name*, else with a similar name, else empty."""
    versions = [version for version, known_specs in FEATURE_SPECS.items() if name in known_specs]
    return f"; it exists in {' and '.join(versions)}" if versions else did_you_mean(name, specs)


def _resolve_gates(gates: Mapping[str, bool], release: Release) -> dict[str, bool]:
    """Return the value of every gate. AllAlpha and AllBeta apply to unlocked gates that *gates* does not name."""
    value_by_stage = {stage: gates[name] for name, stage in _STAGE_SWITCHES.items() if name in gates}
    return {
        name: gates.get(name, spec.default if spec.locked else value_by_stage.get(spec.stage, spec.default))
        for name, spec in FEATURE_SPECS[release.version].items()
    }


def get_values_by_gate_and_stage(
    gates: Mapping[str, bool], release: Release = DEFAULT_RELEASE
) -> Mapping[tuple[str, str], bool]:
    """Return the value of every gate by (name, stage), for metrics."""
    specs = FEATURE_SPECS[release.version]
    return {(name, specs[name].stage): enabled for name, enabled in _resolve_gates(gates, release).items()}


def select_scheduling_features(gates: Mapping[str, bool], release: Release = DEFAULT_RELEASE) -> FeatureGates:
    """Return the set of enabled feature gates of *release*, limited to those that affect scheduling."""
    gate_values = _resolve_gates(gates, release)
    return FeatureGates({name: gate_values[name] for name in get_scheduling_defaults(release)}, release)
