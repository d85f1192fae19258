"""Makes random configurations that select and order the plugins of single extension points, also of pod groups."""

from typing import Any, Final

from tests.oracle.generator.builder import ClusterBuilder, Raw

_POINTS: Final = {
    "preFilter": (
        "NodeAffinity", "NodePorts", "NodeResourcesFit", "VolumeRestrictions", "NodeVolumeLimits", "VolumeBinding",
        "VolumeZone", "PodTopologySpread", "InterPodAffinity", "DynamicResources", "NodeDeclaredFeatures",
    ),
    "filter": (
        "NodeUnschedulable", "NodeName", "TaintToleration", "NodeAffinity", "NodePorts", "NodeResourcesFit",
        "VolumeRestrictions", "NodeVolumeLimits", "VolumeZone", "PodTopologySpread", "InterPodAffinity",
        "DynamicResources", "NodeDeclaredFeatures",
    ),
    "postFilter": ("DynamicResources", "DefaultPreemption"),
    "preScore": (
        "TaintToleration", "NodeAffinity", "NodeResourcesFit", "NodeResourcesBalancedAllocation", "PodTopologySpread",
        "InterPodAffinity",
    ),
    "score": (
        "TaintToleration", "NodeAffinity", "NodeResourcesFit", "NodeResourcesBalancedAllocation", "PodTopologySpread",
        "InterPodAffinity", "VolumeBinding", "ImageLocality", "DynamicResources",
    ),
}  # fmt: skip
"""The plugins of each extension point that have it in all minors, whatever the feature gates.

Without VolumeBinding where Reserve or PreScore would need the results of its disabled Filter or PreFilter.
"""


def change_extension_points(builder: ClusterBuilder, profile: Raw) -> None:
    """Disable plugins of some extension points of a *profile*, and enable some of the others in any order."""
    plugins: dict[str, Any] = profile.setdefault("plugins", {})
    for point in builder.sample(list(_POINTS), 1, 2):
        if point == "postFilter" and "disabled" in plugins.get("multiPoint", {}):
            continue  # the hints of a plugin with PostFilter only are never asked
        names = _POINTS[point]
        disabled = builder.sample(names, 1, max(1, len(names) // 3))
        if point != "filter" and builder.chance(0.3):
            disabled = ["*"]
        candidates = names if "*" in disabled or builder.chance(0.5) else disabled
        enabled: list[Raw] = [{"name": name} for name in builder.sample(candidates, 0, len(candidates))]
        if point == "score":
            for plugin in enabled:
                plugin["weight"] = builder.pick((0, 1, 3, 21474836))
        plugins[point] = {"disabled": [{"name": name} for name in disabled], "enabled": enabled}


def change_group_plugins(builder: ClusterBuilder, profile: Raw, version: str) -> None:
    """Change the plugins of a *profile* that select placements of pod groups, and those that preempt for them.

    The oracle selects the first of equal nodes by a Score plugin of its own, so that a profile never disables them all.

    Args:
        builder: the source of the choices.
        profile: the profile.
        version: the Kubernetes minor, such as `1.36`, which preempts for pod groups in PostFilter.
    """
    plugins: dict[str, Any] = profile.setdefault("plugins", {})
    if {"name": "*"} in plugins.get("score", {}).get("disabled", ()):
        del plugins["score"]
    names = builder.sample(("NodeResourcesFit", "PodGroupPodsCount"), 1, 2)
    enabled = [{"name": name, "weight": builder.pick((0, 1, 3, 100))} for name in builder.sample(names, 0, 2)]
    plugins["placementScore"] = {"disabled": [{"name": name} for name in names], "enabled": enabled}
    if builder.chance(0.3) and {"name": "DefaultPreemption"} not in plugins.get("multiPoint", {}).get("disabled", []):
        point, preemptors = "podGroupPostFilter", ("DefaultPreemption", "DynamicResources")
        if version == "1.36":
            point, preemptors = "postFilter", ("DynamicResources", "DefaultPreemption")
        enabled = [{"name": name} for name in builder.sample(preemptors, 0, 2)]
        plugins[point] = {"disabled": [{"name": name} for name in preemptors], "enabled": enabled}
    if builder.chance(0.15):
        plugins["placementGenerate"] = {"disabled": [{"name": "*"}]}
    if builder.chance(0.2):
        name = builder.pick(("PodGroupPodsCount", "TopologyPlacementGenerator"))
        plugins.setdefault("multiPoint", {}).setdefault("disabled", []).append({"name": name})
