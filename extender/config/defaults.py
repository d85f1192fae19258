"""Defaults of the configuration: the default plugins, merged with those of a profile, and the values of empty fields.

Source: pkg/scheduler/apis/config/v1/defaults.go, SetDefaults_KubeSchedulerConfiguration;
pkg/scheduler/apis/config/v1/default_plugins.go, getDefaultPlugins (1.36).
"""

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Final, TypeVar

import msgspec

from extender.api.defaults import DEFAULT_SCHEDULER_NAME
from extender.config.feature_gates import FeatureGates
from extender.config.model import ClientConnection, Configuration, LeaderElection, Plugin, Plugins, PluginSet, Profile
from extender.config.releases import DEFAULT_RELEASE, Release

SettingsT = TypeVar("SettingsT", ClientConnection, LeaderElection)


def _make_multi_point(*first_plugins: str) -> Plugins:
    """Return the default plugins: *first_plugins*, and then the plugins with the same order in all releases."""
    return Plugins(
        multi_point=PluginSet(
            enabled=(
                *map(Plugin, first_plugins),
                Plugin("TaintToleration", 3),
                Plugin("NodeAffinity", 2),
                Plugin("NodePorts"),
                Plugin("NodeResourcesFit", 1),
                Plugin("VolumeRestrictions"),
                Plugin("NodeVolumeLimits"),
                Plugin("VolumeBinding"),
                Plugin("VolumeZone"),
                Plugin("PodTopologySpread", 2),
                Plugin("InterPodAffinity", 2),
                # DynamicResources precedes DefaultPreemption: to deallocate an unused claim is better than to evict.
                Plugin("DynamicResources", 2),
                Plugin("DefaultPreemption"),
                Plugin("NodeResourcesBalancedAllocation", 1),
                Plugin("ImageLocality", 1),
                Plugin("DefaultBinder"),
                Plugin("NodeDeclaredFeatures"),
            )
        )
    )


DEFAULT_PLUGINS: Final[Mapping[str, Plugins]] = {
    "1.36": _make_multi_point("SchedulingGates", "PrioritySort", "NodeUnschedulable", "NodeName"),
    "1.37": _make_multi_point("SchedulingGates", "PrioritySort", "NodeName", "NodeUnschedulable"),
}
"""The default plugin sets by minor release, if all feature gates have their default values.

Source: pkg/scheduler/apis/config/v1/default_plugins.go, getDefaultPlugins (1.36, 1.37).
"""

FEATURE_GATED_PLUGINS: Final[Mapping[str, tuple[Plugin, ...]]] = {
    "InPlacePodVerticalScalingSchedulerPreemption": (Plugin("DeferredPodScheduling"),),
    "GangScheduling": (Plugin("GangScheduling"),),
    "TopologyAwareWorkloadScheduling": (Plugin("TopologyPlacementGenerator"), Plugin("PodGroupPodsCount", 1)),
}
"""The plugins that a feature gate adds to the default plugins, by gate. All of these gates are off by default.

Source: pkg/scheduler/apis/config/v1/default_plugins.go, applyFeatureGates, applyDeferredPodScheduling (1.37).
"""

_FOLLOWING_PLUGINS: Final[Mapping[str, str]] = {"DeferredPodScheduling": "NodeResourcesFit"}
"""By gated plugin, the default plugin before which it is inserted. Other gated plugins follow the default plugins.

A node without preemption for resizes is then rejected by DeferredPodScheduling, whose queueing hint requeues the pod.
"""

_DEFAULT_NAMES: Final = tuple(plugin.name for plugin in DEFAULT_PLUGINS["1.37"].multi_point.enabled)
"""The names of the default plugins, which are the same in all releases."""

IN_TREE_PLUGINS: Final = (
    *_DEFAULT_NAMES,
    "DeferredPodScheduling",
    "GangScheduling",
    "TopologyPlacementGenerator",
    "PodGroupPodsCount",
)
"""The names of all in-tree plugins, including those that a feature gate adds.

Source: pkg/scheduler/framework/plugins/registry.go, NewInTreeRegistry (1.36).
"""

# Source: pkg/scheduler/apis/config/validation/validation_pluginargs.go, ValidateDefaultPreemptionArgs,
# ValidateInterPodAffinityArgs, ValidateNodeAffinityArgs (1.36).
PLUGINS_WITH_ARGS: Final = frozenset(
    {
        "DefaultPreemption",
        "DynamicResources",
        "InterPodAffinity",
        "NodeAffinity",
        "NodeResourcesBalancedAllocation",
        "NodeResourcesFit",
        "PodTopologySpread",
        "VolumeBinding",
    }
)
"""The names of the in-tree plugins with arguments. The kind of the arguments is the plugin name followed by `Args`."""


def make_default_profile(
    scheduler_name: str = DEFAULT_SCHEDULER_NAME, path: str = "", release: Release = DEFAULT_RELEASE
) -> Profile:
    """Return the profile of an empty configuration in *release*.

    Source: pkg/scheduler/apis/config/v1/defaults.go, SetDefaults_KubeSchedulerConfiguration (1.36).
    """
    return Profile(scheduler_name, plugins=DEFAULT_PLUGINS[release.version], path=path)


def make_default_configuration(release: Release = DEFAULT_RELEASE) -> Configuration:
    """Return the configuration of an empty or missing document in *release*.

    Source: cmd/kube-scheduler/app/options/options.go, Options.ApplyTo (1.36).
    """
    return Configuration(profiles=(make_default_profile(path="profiles[0]", release=release),))


def add_gated_plugins(configuration: Configuration, gates: FeatureGates) -> Configuration:
    """Return *configuration* with the plugins of enabled gates added to the default plugins of each profile.

    A profile that disables all default plugins is not changed.
    """
    gated_plugins = tuple(
        plugin for gate, plugins in FEATURE_GATED_PLUGINS.items() if gate in gates for plugin in plugins
    )
    if not gated_plugins:
        return configuration
    default_set = _add_to_default_plugins(DEFAULT_PLUGINS[gates.release.version].multi_point, gated_plugins)
    profiles = tuple(
        replace(
            profile,
            plugins=msgspec.structs.replace(
                profile.plugins, multi_point=merge_plugin_set(default_set, profile.plugins.multi_point)
            ),
        )
        for profile in configuration.profiles
    )
    return replace(configuration, profiles=profiles)


def _add_to_default_plugins(default_set: PluginSet, gated_plugins: Iterable[Plugin]) -> PluginSet:
    """Return *default_set* with *gated_plugins* at their places.

    Source: pkg/scheduler/apis/config/v1/default_plugins.go, applyFeatureGates, applyDeferredPodScheduling (1.37).
    """
    enabled_plugins = list(default_set.enabled)
    names = [plugin.name for plugin in default_set.enabled]
    for plugin in gated_plugins:
        following_plugin = _FOLLOWING_PLUGINS.get(plugin.name)
        place = names.index(following_plugin) if following_plugin else len(enabled_plugins)
        enabled_plugins.insert(place, plugin)
    return PluginSet(tuple(enabled_plugins))


def merge_with_default_plugins(custom_plugins: Plugins | None, release: Release = DEFAULT_RELEASE) -> Plugins:
    """Merge the plugin set of each extension point, and of `multi_point`, with the default one of *release*."""
    default_plugins = DEFAULT_PLUGINS[release.version]
    if custom_plugins is None:
        return default_plugins
    names = Plugins.__struct_fields__
    return Plugins(
        **{name: merge_plugin_set(getattr(default_plugins, name), getattr(custom_plugins, name)) for name in names}
    )


def merge_plugin_set(default_set: PluginSet, custom_set: PluginSet) -> PluginSet:
    """Merge one plugin set.

    Default plugins that are disabled are dropped; `*` disables all. A default plugin that *custom_set* lists again
    keeps its position and takes the weight of *custom_set*. The other custom plugins follow in order. Duplicates are
    kept, because expansion reports them.

    Source: pkg/scheduler/apis/config/v1/default_plugins.go, mergePluginSet (1.36).
    """
    disabled_plugins = tuple(Plugin(plugin.name) for plugin in (*custom_set.disabled, *default_set.disabled))
    disabled_names = {plugin.name for plugin in disabled_plugins}
    custom_index = {plugin.name: index for index, plugin in enumerate(custom_set.enabled)}
    used_indices: set[int] = set()
    enabled_plugins: list[Plugin] = []
    for plugin in () if "*" in disabled_names else default_set.enabled:
        if plugin.name in disabled_names:
            continue
        index = custom_index.get(plugin.name)
        if index is None:
            enabled_plugins.append(plugin)
        else:
            enabled_plugins.append(custom_set.enabled[index])
            used_indices.add(index)
    enabled_plugins += (plugin for index, plugin in enumerate(custom_set.enabled) if index not in used_indices)
    return PluginSet(tuple(enabled_plugins), disabled_plugins)


def replace_empty_fields(settings: SettingsT) -> SettingsT:
    """Return *settings* with the defaults in place of empty strings, numbers of 0 and durations of 0.

    Source: component-base/config/v1alpha1/defaults.go, RecommendedDefaultLeaderElectionConfiguration;
    pkg/scheduler/apis/config/v1/defaults.go, SetDefaults_KubeSchedulerConfiguration (1.36).
    """
    fields = {field.name: (getattr(settings, field.name), field.default) for field in msgspec.structs.fields(settings)}
    empty_fields = {name: default for name, (value, default) in fields.items() if not value and value is not False}
    return msgspec.structs.replace(settings, **empty_fields)
