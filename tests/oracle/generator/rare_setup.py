"""Makes rare scheduler configurations, and selects feature gates that differ from their defaults."""

from typing import Any, Final

from tests.oracle.generator.builder import ClusterBuilder, Raw
from tests.oracle.generator.configuration import make_plugin_config
from tests.oracle.generator.terms import node_term

_API_VERSION: Final = "kubescheduler.config.k8s.io/v1"
_FILTER: Final = (
    "NodeUnschedulable",
    "NodeName",
    "TaintToleration",
    "NodeAffinity",
    "NodePorts",
    "NodeResourcesFit",
    "VolumeRestrictions",
    "NodeVolumeLimits",
    "VolumeBinding",
    "VolumeZone",
    "PodTopologySpread",
    "InterPodAffinity",
    "DynamicResources",
    "NodeDeclaredFeatures",
)
_SCORE: Final = (
    "TaintToleration",
    "NodeAffinity",
    "NodeResourcesFit",
    "VolumeBinding",
    "PodTopologySpread",
    "InterPodAffinity",
    "DynamicResources",
    "NodeResourcesBalancedAllocation",
    "ImageLocality",
)
_WITHOUT_PRE_SCORE: Final = ("ImageLocality", "DynamicResources")
_RESOURCES: Final = ("cpu", "memory", "pods", "ephemeral-storage", "example.com/gpu", "hugepages-2Mi", "nothing.com/x")
_GATES: Final = {
    "1.36": (
        "TaintTolerationComparisonOperators",
        "StorageCapacityScoring",
        "VolumeLimitScaling",
        "DRAListTypeAttributes",
        "DRANodeAllocatableResources",
        "DRADeviceTaints",
        "DRAPartitionableDevices",
        "DRAConsumableCapacity",
        "DRADeviceBindingConditions",
        "DRAExtendedResource",
        "DRAPrioritizedList",
        "DRASchedulerFilterTimeout",
        "DRADeviceTaintRules",
        "DRAResourceClaimDeviceStatus",
        "InPlacePodLevelResourcesVerticalScaling",
        "PodLevelResources",
        "NodeDeclaredFeatures",
        "MatchLabelKeysInPodTopologySpread",
        "SchedulerAsyncPreemption",
    ),
    "1.37": (
        "TaintTolerationComparisonOperators",
        "StorageCapacityScoring",
        "VolumeLimitScaling",
        "DRAListTypeAttributes",
        "DRANodeAllocatableResources",
        "DRADeviceTaints",
        "DRADeviceTaintRules",
        "DRAPartitionableDevices",
        "DRAConsumableCapacity",
        "DRADeviceBindingConditions",
        "DRAFractionalCapacityRange",
        "DRASchedulerFilterTimeout",
        "InPlacePodLevelResourcesVerticalScaling",
        "PodLevelResources",
        "InterPodAffinityHostnameFastPath",
        "VolumeBindMountOptions",
        "MatchLabelKeysInPodTopologySpread",
        "SchedulerAsyncPreemption",
    ),
}
"""Gates that change the answers for pods without a group, by Kubernetes minor."""

_DEFAULT_OFF: Final = frozenset(
    (
        "TaintTolerationComparisonOperators",
        "StorageCapacityScoring",
        "VolumeLimitScaling",
        "DRAListTypeAttributes",
        "DRANodeAllocatableResources",
        "InterPodAffinityHostnameFastPath",
        "VolumeBindMountOptions",
        "DRADeviceTaintRules",
        "DRAFractionalCapacityRange",
    )
)


_DEPENDENTS: Final = {
    "MatchLabelKeysInPodTopologySpread": ("MatchLabelKeysInPodTopologySpreadSelectorMerge",),
    "NodeDeclaredFeatures": (
        "ExtendWebSocketsToKubelet",
        "InPlacePodLevelResourcesVerticalScaling",
        "InPlacePodVerticalScalingInitContainers",
        "RestartAllContainersOnContainerExits",
    ),
    "PodLevelResources": (
        "InPlacePodLevelResourcesVerticalScaling",
        "PodLevelResourcesFixDefaulting",
        "PodLevelResourcesFixKubeletQOSClass",
    ),
    "DRAConsumableCapacity": ("DRAFractionalCapacityRange",),
    "DRADeviceTaints": ("DRADeviceTaintRules",),
    "DRAResourceClaimDeviceStatus": ("DRADeviceBindingConditions", "DRAResourceClaimGranularStatusAuthorization"),
    "DRAPartitionableDevices": ("DRADeviceCompatibilityGroups",),
}
"""Gates that must be off if another gate is off."""


_LATER_GATES: Final = (
    "DRAFractionalCapacityRange",
    "DRADeviceCompatibilityGroups",
    "PodLevelResourcesFixDefaulting",
    "PodLevelResourcesFixKubeletQOSClass",
)
"""Gates that 1.36 does not have."""


def select_gates(builder: ClusterBuilder, version: str) -> dict[str, bool]:
    """Return values of some gates that mostly differ from the defaults."""
    gates = {name: name in _DEFAULT_OFF for name in builder.sample(_GATES[version], 1, 3)}
    if version == "1.37":
        on_by_default = ("StorageCapacityScoring", "VolumeLimitScaling", "DRADeviceTaintRules")
        gates.update({name: False for name in on_by_default if name in gates})
    for name, dependents in _DEPENDENTS.items():
        if gates.get(name) is False:
            gates.update(dict.fromkeys(dependents, False))
    if version == "1.36":
        for name in _LATER_GATES:
            gates.pop(name, None)
    return gates


def make_rare_configuration(builder: ClusterBuilder, scheduler: str, *, scores_capacity: bool) -> Raw:
    """Return a configuration that reorders, lists or disables plugins, with rare arguments."""
    plugins: dict[str, Any] = {}
    change = builder.pick(("filter order", "score list", "one filter", "no multipoint", "post filter", "order", "none"))
    if change == "filter order":
        names = builder.sample(_FILTER, 2, 5)
        plugins["filter"] = {"enabled": [{"name": name} for name in names]}
    elif change == "score list":
        names = builder.sample(_SCORE, 1, 4)
        enabled = [{"name": name, "weight": builder.pick((1, 3, 100))} for name in names]
        plugins["score"] = {"disabled": [{"name": "*"}], "enabled": enabled}
        with_pre_score = [{"name": name} for name in names if name not in _WITHOUT_PRE_SCORE]
        plugins["preScore"] = {"disabled": [{"name": "*"}], "enabled": with_pre_score}
    elif change == "one filter":
        names = builder.sample(_FILTER, 1, 3)
        plugins["multiPoint"] = {"disabled": [{"name": name} for name in names]}
    elif change == "no multipoint":
        names = builder.sample((*_FILTER, "ImageLocality", "DefaultPreemption"), 2, 8)
        names = ["PrioritySort", "DefaultBinder", *names]
        enabled = [{"name": name, "weight": builder.pick((0, 0, 2))} for name in names]
        plugins["multiPoint"] = {"disabled": [{"name": "*"}], "enabled": enabled}
    elif change == "post filter":
        names = builder.pick((["*"], ["DefaultPreemption"], ["DynamicResources"]))
        plugins["postFilter"] = {"disabled": [{"name": name} for name in names]}
    elif change == "order":
        names = builder.sample(_SCORE, 1, 3)
        plugins["multiPoint"] = {"enabled": [{"name": name, "weight": builder.pick((0, 4))} for name in names]}
    profile: Raw = {"schedulerName": scheduler, "plugins": plugins}
    arguments = _make_arguments(builder, scores_capacity=scores_capacity)
    profile["pluginConfig"] = make_plugin_config(arguments)
    return {"apiVersion": _API_VERSION, "kind": "KubeSchedulerConfiguration", "profiles": [profile]}


def _make_arguments(builder: ClusterBuilder, *, scores_capacity: bool) -> dict[str, Raw]:
    arguments: dict[str, Raw] = {}
    if builder.chance(0.5):
        arguments["NodeResourcesFit"] = _make_fit_arguments(builder)
    if builder.chance(0.3):
        resources = [{"name": name, "weight": 1} for name in builder.sample(_RESOURCES, 1, 5)]
        arguments["NodeResourcesBalancedAllocation"] = {"resources": resources}
    if builder.chance(0.4):
        preferred = [
            {"weight": builder.pick((1, 40)), "preference": node_term(builder)}
            for _ in range(builder.rng.randint(1, 2))
        ]
        affinity: Raw = {"preferredDuringSchedulingIgnoredDuringExecution": preferred}
        if builder.chance(0.4):
            term = {"matchFields": [{"key": "metadata.name", "operator": "In", "values": ["node-1"]}]}
            terms = [term, node_term(builder)]
            affinity["requiredDuringSchedulingIgnoredDuringExecution"] = {"nodeSelectorTerms": terms}
        arguments["NodeAffinity"] = {"addedAffinity": affinity}
    if builder.chance(0.4):
        keys = ("kubernetes.io/hostname", "topology.kubernetes.io/zone", "example.com/rack")
        constraints = [
            {"maxSkew": builder.pick((1, 2, 9)), "topologyKey": key, "whenUnsatisfiable": when}
            for key, when in builder.sample(
                [(key, when) for key in keys for when in ("ScheduleAnyway", "DoNotSchedule")], 0, 3
            )
        ]
        arguments["PodTopologySpread"] = {"defaultingType": "List", "defaultConstraints": constraints}
    if scores_capacity and builder.chance(0.5):
        arguments["VolumeBinding"] = {"shape": _make_shape(builder)}
    if builder.chance(0.2):
        arguments["InterPodAffinity"] = {"hardPodAffinityWeight": 0, "ignorePreferredTermsOfExistingPods": True}
    return arguments


def _make_shape(builder: ClusterBuilder) -> list[Raw]:
    utilizations = sorted(builder.sample((0, 1, 25, 50, 75, 99, 100), 1, 5))
    return [{"utilization": value, "score": builder.rng.randint(0, 10)} for value in utilizations]


def _make_fit_arguments(builder: ClusterBuilder) -> Raw:
    arguments: Raw = {}
    if builder.chance(0.8):
        resources = [{"name": name, "weight": builder.pick((0, 1, 99))} for name in builder.sample(_RESOURCES, 1, 5)]
        kind = builder.pick(("LeastAllocated", "MostAllocated", "RequestedToCapacityRatio", "RequestedToCapacityRatio"))
        strategy: Raw = {"type": kind, "resources": resources}
        if builder.chance(0.2):
            del strategy["resources"]
        if kind == "RequestedToCapacityRatio":
            strategy["requestedToCapacityRatio"] = {"shape": _make_shape(builder)}
        arguments["scoringStrategy"] = strategy
    if builder.chance(0.3):
        arguments["ignoredResources"] = builder.sample(("example.com/gpu", "cpu", "hugepages-2Mi"), 1, 2)
    if builder.chance(0.3):
        arguments["ignoredResourceGroups"] = builder.sample(("example.com", "kubernetes.io", "cpu"), 1, 2)
    return arguments
