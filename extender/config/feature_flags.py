"""`--feature-gates` as kube-scheduler reads it: `Gate=bool` or `kube:Gate=bool`, comma-separated.

Source: G051, G058.
"""

from collections.abc import Iterable, Mapping
from typing import Final

from extender.config.faults import ConfigError, Fault
from extender.config.gates import DEFAULTS, FeatureGates
from extender.config.known_gates import KNOWN_GATES
from extender.config.nearest import hint

TRUE: Final = frozenset(("1", "t", "T", "true", "TRUE", "True"))
FALSE: Final = frozenset(("0", "f", "F", "false", "FALSE", "False"))
"""What Go takes for a boolean."""

_PATH: Final = "--feature-gates"
_ALL: Final = {"AllAlpha": "ALPHA", "AllBeta": "BETA"}
_NEEDS: Final[Mapping[str, tuple[str, ...]]] = {
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
"""Gates that may be on only if others are."""


def parse(values: Iterable[str]) -> dict[str, bool]:
    """What the flag says, later values over earlier ones, each gate by its bare name.

    Raises:
        ConfigError: a gate is unknown or locked, or what is written is not of that form.
    """
    asked: dict[str, bool] = {}
    faults: list[Fault] = []
    for item in (item.strip() for value in values for item in value.split(",")):
        if item:
            wrong = _read(item, asked)
            if wrong:
                faults.append(Fault(_PATH, wrong))
    on = _in_force(asked)
    faults += [
        Fault(_PATH, f"{gate} is enabled, but depends on features that are disabled: [{' '.join(missing)}]")
        for gate, needs in _NEEDS.items()
        if on.get(gate) and (missing := [need for need in needs if not on[need]])
    ]
    if faults:
        raise ConfigError(faults)
    return asked


def _read(item: str, asked: dict[str, bool]) -> str:
    """Put the gate of one item into *asked*; gives what is wrong with it, or nothing."""
    name, separator, value = item.partition("=")
    component, colon, bare = name.partition(":")
    if colon and component != "kube":
        return f"component not registered: {component}; want kube:{bare}=true or {bare}=true"
    name = bare if colon else name
    if not separator:
        return f"missing bool value for {name}; write {name}=true or {name}=false"
    if value not in TRUE | FALSE:
        return f"invalid value of {name}={value}: want true or false"
    known = KNOWN_GATES.get(name)
    if known is None:
        return f"unrecognized feature gate: {name}{hint(name, KNOWN_GATES)}"
    if known.locked and (value in TRUE) != known.default:
        locked = str(known.default).lower()
        return f"cannot set feature gate {name} to {value}, feature is locked to {locked}"
    asked[name] = value in TRUE
    return ""


def _in_force(asked: Mapping[str, bool]) -> dict[str, bool]:
    """Every gate there is, on or off. Gates of a stage that is switched as a whole follow unless set themselves."""
    stages = {stage: asked[name] for name, stage in _ALL.items() if name in asked}
    return {
        name: asked.get(name, known.default if known.locked else stages.get(known.stage, known.default))
        for name, known in KNOWN_GATES.items()
    }


def in_force(asked: Mapping[str, bool]) -> Mapping[tuple[str, str], bool]:
    """Every gate by name and stage, on or off, for metrics."""
    return {(name, KNOWN_GATES[name].stage): on for name, on in _in_force(asked).items()}


def scheduling_gates(asked: Mapping[str, bool]) -> FeatureGates:
    """Those that touch scheduling; the others change nothing here."""
    on = _in_force(asked)
    return FeatureGates({name: on[name] for name in DEFAULTS})
