"""Defaults of the configuration: the default plugins and the values of absent fields.

Source: pkg/scheduler/apis/config/v1/defaults.go, SetDefaults_KubeSchedulerConfiguration;
pkg/scheduler/apis/config/v1/default_plugins.go, getDefaultPlugins (1.36).
"""

from collections.abc import Mapping
from dataclasses import replace
from typing import Final

import msgspec

from extender.api.defaults import DEFAULT_SCHEDULER_NAME
from extender.config.feature_gates import FeatureGates
from extender.config.merge import merge_plugins
from extender.config.model import (
    ClientConnection,
    Configuration,
    LeaderElection,
    Plugin,
    Plugins,
    PluginSet,
    Profile,
)

# DynamicResources precedes DefaultPreemption: deallocating an unused claim is preferred to evicting a pod.
DEFAULT_PLUGINS: Final = Plugins(
    multi_point=PluginSet(
        enabled=(
            Plugin("SchedulingGates"),
            Plugin("PrioritySort"),
            Plugin("NodeUnschedulable"),
            Plugin("NodeName"),
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
            Plugin("DynamicResources", 2),
            Plugin("DefaultPreemption"),
            Plugin("NodeResourcesBalancedAllocation", 1),
            Plugin("ImageLocality", 1),
            Plugin("DefaultBinder"),
            Plugin("NodeDeclaredFeatures"),
        )
    )
)
"""The default plugin sets with the feature gates of 1.36 at their defaults.

Source: pkg/scheduler/apis/config/v1/default_plugins.go, getDefaultPlugins (1.36).
"""

FEATURE_GATED_PLUGINS: Final[Mapping[str, tuple[Plugin, ...]]] = {
    "GangScheduling": (Plugin("GangScheduling"),),
    "TopologyAwareWorkloadScheduling": (Plugin("TopologyPlacementGenerator"), Plugin("PodGroupPodsCount", 1)),
}
"""The default plugins that a feature gate adds, by gate; all of these gates are off by default.

Source: pkg/scheduler/schedule_one.go, Scheduler.ScheduleOne; pkg/scheduler/schedule_one_podgroup.go,
Scheduler.podGroupSchedulingPlacementAlgorithm (1.36).
"""

# Plugins behind a gate are included. Source: pkg/scheduler/framework/plugins/registry.go, NewInTreeRegistry (1.36).
IN_TREE_PLUGINS: Final = (
    *(plugin.name for plugin in DEFAULT_PLUGINS.multi_point.enabled),
    "GangScheduling",
    "TopologyPlacementGenerator",
    "PodGroupPodsCount",
)

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
"""The in-tree plugins with arguments; the kind of the arguments is the plugin name followed by `Args`."""


def make_default_profile(scheduler_name: str = DEFAULT_SCHEDULER_NAME, path: str = "") -> Profile:
    """Return the profile of an empty configuration.

    Source: pkg/scheduler/apis/config/v1/defaults.go, SetDefaults_KubeSchedulerConfiguration (1.36).
    """
    return Profile(scheduler_name, plugins=DEFAULT_PLUGINS, path=path)


def make_default_configuration() -> Configuration:
    """Return the configuration of an empty or missing document.

    Source: cmd/kube-scheduler/app/options/options.go, Options.ApplyTo (1.36).
    """
    return Configuration(profiles=(make_default_profile(path="profiles[0]"),))


def add_gated_plugins(configuration: Configuration, gates: FeatureGates) -> Configuration:
    """Return *configuration* with the plugins of enabled gates added to the default plugins of each profile.

    A profile that disables all default plugins is not changed.
    """
    gated_plugins = tuple(
        plugin for gate, plugins in FEATURE_GATED_PLUGINS.items() if gate in gates for plugin in plugins
    )
    if not gated_plugins:
        return configuration
    profiles = tuple(
        replace(profile, plugins=_add_default_plugins(profile.plugins, gated_plugins))
        for profile in configuration.profiles
    )
    return replace(configuration, profiles=profiles)


def _add_default_plugins(plugins: Plugins, gated_plugins: tuple[Plugin, ...]) -> Plugins:
    """Insert the *gated_plugins* that the profile neither disables nor lists after the last default plugin."""
    multi_point = plugins.multi_point
    disabled_names = {plugin.name for plugin in multi_point.disabled}
    listed_names = {plugin.name for plugin in multi_point.enabled}
    missing_plugins = tuple(plugin for plugin in gated_plugins if plugin.name not in disabled_names | listed_names)
    if "*" in disabled_names or not missing_plugins:
        return plugins
    default_names = {plugin.name for plugin in DEFAULT_PLUGINS.multi_point.enabled}
    enabled_plugins = multi_point.enabled
    insert_index = max(
        (index + 1 for index, plugin in enumerate(enabled_plugins) if plugin.name in default_names), default=0
    )
    enabled_plugins = (*enabled_plugins[:insert_index], *missing_plugins, *enabled_plugins[insert_index:])
    return msgspec.structs.replace(plugins, multi_point=PluginSet(enabled_plugins, multi_point.disabled))


def merge_with_default_plugins(custom_plugins: Plugins | None) -> Plugins:
    """Merge the plugin sets of a profile with the default ones.

    Source: pkg/scheduler/apis/config/v1/default_plugins.go, mergePluginSet (1.36).
    """
    return DEFAULT_PLUGINS if custom_plugins is None else merge_plugins(DEFAULT_PLUGINS, custom_plugins)


def default_leader_election(leader_election: LeaderElection) -> LeaderElection:
    """Return *leader_election* with the defaults in place of empty strings and durations of 0.

    Source: component-base/config/v1alpha1/defaults.go, RecommendedDefaultLeaderElectionConfiguration;
    pkg/scheduler/apis/config/v1/defaults.go, SetDefaults_KubeSchedulerConfiguration (1.36).
    """
    defaults = LeaderElection()
    return msgspec.structs.replace(
        leader_election,
        lease_duration=leader_election.lease_duration or defaults.lease_duration,
        renew_deadline=leader_election.renew_deadline or defaults.renew_deadline,
        retry_period=leader_election.retry_period or defaults.retry_period,
        resource_lock=leader_election.resource_lock or defaults.resource_lock,
        resource_name=leader_election.resource_name or defaults.resource_name,
        resource_namespace=leader_election.resource_namespace or defaults.resource_namespace,
    )


def default_client_connection(client_connection: ClientConnection) -> ClientConnection:
    """Return *client_connection* with the defaults in place of an empty content type and a qps or burst of 0.

    Source: pkg/scheduler/apis/config/v1/defaults.go, SetDefaults_KubeSchedulerConfiguration (1.36).
    """
    defaults = ClientConnection()
    return msgspec.structs.replace(
        client_connection,
        content_type=client_connection.content_type or defaults.content_type,
        qps=client_connection.qps or defaults.qps,
        burst=client_connection.burst or defaults.burst,
    )
