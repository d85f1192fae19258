"""Makes random scheduler configurations with one profile."""

from typing import Any, Final

from tests.oracle.generator.builder import ClusterBuilder, Raw
from tests.oracle.generator.terms import node_term

_API_VERSION: Final = "kubescheduler.config.k8s.io/v1"
_RESOURCES: Final = ("cpu", "memory", "ephemeral-storage", "example.com/fpga", "example.com/gpu", "hugepages-2Mi")
_SCORE_PLUGINS: Final = (
    "TaintToleration",
    "NodeAffinity",
    "PodTopologySpread",
    "InterPodAffinity",
    "NodeResourcesFit",
    "NodeResourcesBalancedAllocation",
    "ImageLocality",
)
_FILTER_PLUGINS: Final = (
    "NodeUnschedulable",
    "NodeName",
    "TaintToleration",
    "NodeAffinity",
    "NodePorts",
    "InterPodAffinity",
)


def make_configuration(builder: ClusterBuilder, scheduler: str) -> Raw:
    """Return a configuration with changed plugins and arguments."""
    plugins: dict[str, Any] = {}
    if builder.chance(0.5):
        names = builder.sample(_SCORE_PLUGINS, 1, 3)
        enabled = [{"name": name, "weight": builder.pick((1, 2, 5, 50))} for name in names]
        plugins["score"] = {"disabled": [{"name": name} for name in names]}
        if builder.chance(0.7):
            plugins["score"]["enabled"] = enabled
        elif builder.chance(0.2):
            plugins["score"] = {"disabled": [{"name": "*"}]}
    if builder.chance(0.3):
        plugins["filter"] = {"disabled": [{"name": name} for name in builder.sample(_FILTER_PLUGINS, 1, 2)]}
    if builder.chance(0.2):
        name = builder.pick(("ImageLocality", "InterPodAffinity", "PodTopologySpread", "DefaultPreemption"))
        plugins["multiPoint"] = {"disabled": [{"name": name}]}
        if name != "DefaultPreemption" and builder.chance(0.5):
            plugins["multiPoint"]["enabled"] = [{"name": name, "weight": 3}]
    profile: Raw = {"schedulerName": scheduler}
    if plugins:
        profile["plugins"] = plugins
    arguments = _make_arguments(builder)
    if arguments:
        profile["pluginConfig"] = make_plugin_config(arguments)
    return {"apiVersion": _API_VERSION, "kind": "KubeSchedulerConfiguration", "profiles": [profile]}


def make_plugin_config(arguments: dict[str, Raw]) -> list[Raw]:
    """Return the `pluginConfig` of a profile with the *arguments* of plugins by name."""
    return [
        {"name": name, "args": {"apiVersion": _API_VERSION, "kind": f"{name}Args", **fields}}
        for name, fields in arguments.items()
    ]


def _make_arguments(builder: ClusterBuilder) -> dict[str, Raw]:
    arguments: dict[str, Raw] = {}
    if builder.chance(0.6):
        arguments["NodeResourcesFit"] = _make_fit_arguments(builder)
    if builder.chance(0.3):
        resources = [{"name": name, "weight": 1} for name in builder.sample(_RESOURCES, 1, 3)]
        arguments["NodeResourcesBalancedAllocation"] = {"resources": resources}
    if builder.chance(0.3):
        arguments["InterPodAffinity"] = {
            "hardPodAffinityWeight": builder.pick((0, 1, 10, 100)),
            "ignorePreferredTermsOfExistingPods": builder.chance(0.5),
        }
    if builder.chance(0.3):
        terms = {
            "nodeSelectorTerms": [node_term(builder) or {"matchExpressions": [{"key": "disk", "operator": "Exists"}]}]
        }
        arguments["NodeAffinity"] = {"addedAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": terms}}
    if builder.chance(0.4):
        constraint = {
            "maxSkew": builder.pick((1, 4)),
            "topologyKey": builder.pick(("kubernetes.io/hostname", "topology.kubernetes.io/zone")),
            "whenUnsatisfiable": builder.pick(("ScheduleAnyway", "DoNotSchedule")),
        }
        arguments["PodTopologySpread"] = {"defaultingType": "List", "defaultConstraints": [constraint]}
    return arguments


def _make_fit_arguments(builder: ClusterBuilder) -> Raw:
    resources = [{"name": name, "weight": builder.pick((1, 2, 5, 100))} for name in builder.sample(_RESOURCES, 1, 4)]
    strategy: Raw = {
        "type": builder.pick(("LeastAllocated", "MostAllocated", "RequestedToCapacityRatio")),
        "resources": resources,
    }
    if strategy["type"] == "RequestedToCapacityRatio":
        utilizations = sorted(builder.sample((0, 10, 33, 50, 80, 100), 2, 3))
        shape = [{"utilization": value, "score": builder.rng.randint(0, 10)} for value in utilizations]
        strategy["requestedToCapacityRatio"] = {"shape": shape}
    arguments: Raw = {"scoringStrategy": strategy}
    if builder.chance(0.2):
        arguments["ignoredResources"] = ["example.com/fpga"]
    if builder.chance(0.2):
        arguments["ignoredResourceGroups"] = ["example.com"]
    return arguments
