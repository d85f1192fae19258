"""What holds when nothing is written: the default plugins, and the value of every absent field. Source: G.1, B002."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Final

import msgspec

from extender.config.gates import FeatureGates
from extender.config.merge import merge
from extender.config.model import (
    ClientConnection,
    Configuration,
    LeaderElection,
    Plugin,
    Plugins,
    PluginSet,
    Profile,
)

DEFAULT_SCHEDULER_NAME: Final = "default-scheduler"

# DynamicResources stands before DefaultPreemption: giving back an idle claim comes before evicting a pod.
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
"""The default plugin sets with the feature gates of 1.36 at their defaults. Source: B002."""

GATED_PLUGINS: Final[Mapping[str, tuple[Plugin, ...]]] = {
    "GangScheduling": (Plugin("GangScheduling"),),
    "TopologyAwareWorkloadScheduling": (Plugin("TopologyPlacementGenerator"), Plugin("PodGroupPodsCount", 1)),
}
"""By feature gate, the plugins that join the default ones if it is on; all off by default. Source: A144, A152."""

# Those that no gate turns on by default are known all the same. Source: B001.
BUILT_IN: Final = (
    *(plugin.name for plugin in DEFAULT_PLUGINS.multi_point.enabled),
    "GangScheduling",
    "TopologyPlacementGenerator",
    "PodGroupPodsCount",
)

# Source: G035-G043.
WITH_ARGS: Final = frozenset(
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
"""The plugins that take arguments; their `kind` is the name followed by `Args`."""


def default_profile(scheduler_name: str = DEFAULT_SCHEDULER_NAME, path: str = "") -> Profile:
    """The profile of an empty configuration. Source: G015, G020."""
    return Profile(scheduler_name, plugins=DEFAULT_PLUGINS, path=path)


def default_configuration() -> Configuration:
    """The configuration of an empty document, and of no document at all. Source: G056."""
    return Configuration(profiles=(default_profile(path="profiles[0]"),))


def with_gated_plugins(configuration: Configuration, gates: FeatureGates) -> Configuration:
    """*configuration* with the plugins of gates that are on among the defaults of each profile that keeps some."""
    added = tuple(plugin for gate, plugins in GATED_PLUGINS.items() if gate in gates for plugin in plugins)
    if not added:
        return configuration
    profiles = tuple(
        replace(profile, plugins=_with_more_defaults(profile.plugins, added)) for profile in configuration.profiles
    )
    return replace(configuration, profiles=profiles)


def _with_more_defaults(plugins: Plugins, added: tuple[Plugin, ...]) -> Plugins:
    """*added* after the last default plugin, but for those that are disabled or listed."""
    own = plugins.multi_point
    gone = {plugin.name for plugin in own.disabled}
    listed = {plugin.name for plugin in own.enabled}
    more = tuple(plugin for plugin in added if plugin.name not in gone | listed)
    if "*" in gone or not more:
        return plugins
    known = {plugin.name for plugin in DEFAULT_PLUGINS.multi_point.enabled}
    end = max((index + 1 for index, plugin in enumerate(own.enabled) if plugin.name in known), default=0)
    enabled = (*own.enabled[:end], *more, *own.enabled[end:])
    return msgspec.structs.replace(plugins, multi_point=PluginSet(enabled, own.disabled))


def with_default_plugins(custom: Plugins | None) -> Plugins:
    """A profile's plugin sets laid over the default ones. Source: G028."""
    return DEFAULT_PLUGINS if custom is None else merge(DEFAULT_PLUGINS, custom)


def leader_election(written: LeaderElection) -> LeaderElection:
    """*written* with empty strings and durations of 0 replaced, as kube-scheduler replaces them. Source: G003-G008."""
    default = LeaderElection()
    return msgspec.structs.replace(
        written,
        lease_duration=written.lease_duration or default.lease_duration,
        renew_deadline=written.renew_deadline or default.renew_deadline,
        retry_period=written.retry_period or default.retry_period,
        resource_lock=written.resource_lock or default.resource_lock,
        resource_name=written.resource_name or default.resource_name,
        resource_namespace=written.resource_namespace or default.resource_namespace,
    )


def client_connection(written: ClientConnection) -> ClientConnection:
    """*written* with an empty content type and a qps or burst of 0 replaced. Source: G010."""
    default = ClientConnection()
    return msgspec.structs.replace(
        written,
        content_type=written.content_type or default.content_type,
        qps=written.qps or default.qps,
        burst=written.burst or default.burst,
    )
