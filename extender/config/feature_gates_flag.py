"""The flag `--feature-gates`: comma-separated `Gate=bool` or `kube:Gate=bool`.

Source: component-base/compatibility/registry.go, componentGlobalsRegistry.AddFlags; pkg/features/kube_features.go,
SchedulerQueueingHints (1.36).
"""

from collections.abc import Iterable, Mapping
from typing import Final

from extender.config.did_you_mean import did_you_mean
from extender.config.errors import ConfigError, FieldError
from extender.config.feature_gate_specs import FEATURE_SPECS
from extender.config.feature_gates import SCHEDULING_GATE_DEFAULTS, FeatureGates

TRUE_VALUES: Final = frozenset(("1", "t", "T", "true", "TRUE", "True"))
"""The texts that Go's strconv.ParseBool reads as true."""
FALSE_VALUES: Final = frozenset(("0", "f", "F", "false", "FALSE", "False"))
"""The texts that Go's strconv.ParseBool reads as false."""

_PATH: Final = "--feature-gates"
_STAGE_SWITCHES: Final = {"AllAlpha": "ALPHA", "AllBeta": "BETA"}
_DEPENDENCIES: Final[Mapping[str, tuple[str, ...]]] = {
    "ClusterTrustBundleProjection": ("ClusterTrustBundle",),
    "DRADeviceBindingConditions": ("DRAResourceClaimDeviceStatus",),
    "DRAResourceClaimGranularStatusAuthorization": ("DRAResourceClaimDeviceStatus",),
    "DRAWorkloadResourceClaims": ("GenericWorkload",),
    "ExtendWebSocketsToKubelet": ("NodeDeclaredFeatures",),
    "GangScheduling": ("GenericWorkload",),
    "GracefulNodeShutdownBasedOnPodPriority": ("GracefulNodeShutdown",),
    "InPlacePodLevelResourcesVerticalScaling": ("NodeDeclaredFeatures", "PodLevelResources"),
    "InPlacePodVerticalScalingInitContainers": ("NodeDeclaredFeatures",),
    "MatchLabelKeysInPodTopologySpreadSelectorMerge": ("MatchLabelKeysInPodTopologySpread",),
    "ResourceHealthStatusMessage": ("ResourceHealthStatus",),
    "RestartAllContainersOnContainerExits": ("ContainerRestartRules", "NodeDeclaredFeatures"),
    "StaleControllerConsistencyDaemonSet": ("AtomicFIFO",),
    "StaleControllerConsistencyJob": ("AtomicFIFO",),
    "StaleControllerConsistencyReplicaSet": ("AtomicFIFO",),
    "StaleControllerConsistencyStatefulSet": ("AtomicFIFO",),
    "TopologyAwareWorkloadScheduling": ("GenericWorkload",),
    "UnknownVersionInteroperabilityProxy": ("APIServerIdentity",),
    "WindowsGracefulNodeShutdown": ("GracefulNodeShutdown",),
    "WorkloadAwarePreemption": ("GangScheduling",),
    "WorkloadWithJob": ("GenericWorkload",),
}
"""The gates that a gate depends on."""


def parse_feature_gates(flag_values: Iterable[str]) -> dict[str, bool]:
    """Return the values of the gates that the flag sets, by name without prefix. Later values replace earlier ones.

    Raises:
        ConfigError: an unknown or locked gate, a missing dependency, or a syntax error.
    """
    gates: dict[str, bool] = {}
    items = [item.strip() for value in flag_values for item in value.split(",")]
    errors = [FieldError(_PATH, message) for item in items if item and (message := _parse_item(item, gates))]
    gate_values = _resolve_gates(gates)
    errors += [
        FieldError(
            _PATH, f"{gate} is enabled, but depends on features that are disabled: [{' '.join(disabled_dependencies)}]"
        )
        for gate, dependencies in _DEPENDENCIES.items()
        if gate_values.get(gate) and (disabled_dependencies := [name for name in dependencies if not gate_values[name]])
    ]
    if errors:
        raise ConfigError(errors)
    return gates


def _parse_item(item: str, gates: dict[str, bool]) -> str:
    """Add the gate of one item to *gates*. Return an error message, or an empty string."""
    name, separator, value = item.partition("=")
    component, colon, bare_name = name.partition(":")
    if colon and component != "kube":
        return f"component not registered: {component}; want kube:{bare_name}=true or {bare_name}=true"
    name = bare_name if colon else name
    if not separator:
        return f"missing bool value for {name}; write {name}=true or {name}=false"
    if value not in TRUE_VALUES | FALSE_VALUES:
        return f"invalid value of {name}={value}: want true or false"
    spec = FEATURE_SPECS.get(name)
    if spec is None:
        return f"unrecognized feature gate: {name}{did_you_mean(name, FEATURE_SPECS)}"
    if spec.locked and (value in TRUE_VALUES) != spec.default:
        locked_value = str(spec.default).lower()
        return f"cannot set feature gate {name} to {value}, feature is locked to {locked_value}"
    gates[name] = value in TRUE_VALUES
    return ""


def _resolve_gates(gates: Mapping[str, bool]) -> dict[str, bool]:
    """Return the value of every gate. AllAlpha and AllBeta apply to unlocked gates that *gates* does not name."""
    value_by_stage = {stage: gates[name] for name, stage in _STAGE_SWITCHES.items() if name in gates}
    return {
        name: gates.get(name, spec.default if spec.locked else value_by_stage.get(spec.stage, spec.default))
        for name, spec in FEATURE_SPECS.items()
    }


def list_gates_by_stage(gates: Mapping[str, bool]) -> Mapping[tuple[str, str], bool]:
    """Return the value of every gate by (name, stage), for metrics."""
    return {(name, FEATURE_SPECS[name].stage): enabled for name, enabled in _resolve_gates(gates).items()}


def select_scheduling_gates(gates: Mapping[str, bool]) -> FeatureGates:
    """Return the gates that affect scheduling."""
    gate_values = _resolve_gates(gates)
    return FeatureGates({name: gate_values[name] for name in SCHEDULING_GATE_DEFAULTS})
