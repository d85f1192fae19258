"""The plugin registry: built-in plugins, and plugins of installed packages (entry point group `extender.plugins`).

Source: pkg/scheduler/framework/plugins/registry.go, NewInTreeRegistry (1.36).
"""

import sys
from collections import defaultdict
from collections.abc import Iterable, Sequence
from importlib.metadata import EntryPoint, entry_points
from typing import Any

from extender.config.errors import ConfigError, FieldError
from extender.framework.per_node.decorators import unwrap_plugin
from extender.framework.plugin_errors import find_source_location, plugin_exceptions
from extender.framework.plugin_validation import DefinitionError, validate_plugin
from extender.framework.profile_builder import PluginRegistry
from extender.plugins.default_binder import DefaultBinder
from extender.plugins.default_preemption import DefaultPreemption
from extender.plugins.deferred_pod_scheduling import DeferredPodScheduling
from extender.plugins.dynamic_resources.plugin import DynamicResources
from extender.plugins.gang_scheduling import GangScheduling
from extender.plugins.gpu_share.plugin import GpuShare
from extender.plugins.image_locality import ImageLocality
from extender.plugins.inter_pod_affinity.plugin import InterPodAffinity
from extender.plugins.legacy.check_node_condition import CheckNodeCondition
from extender.plugins.legacy.check_node_pressure import (
    CheckNodeDiskPressure,
    CheckNodeMemoryPressure,
    CheckNodePIDPressure,
)
from extender.plugins.legacy.node_label import NodeLabel
from extender.plugins.legacy.node_prefer_avoid_pods import NodePreferAvoidPods
from extender.plugins.legacy.node_resource_limits import NodeResourceLimits
from extender.plugins.legacy.non_csi_limits import AzureDiskLimits, CinderLimits, EBSLimits, GCEPDLimits
from extender.plugins.legacy.resource_allocation import (
    NodeResourcesLeastAllocated,
    NodeResourcesMostAllocated,
    RequestedToCapacityRatio,
)
from extender.plugins.legacy.selector_spread import SelectorSpread
from extender.plugins.legacy.service_affinity import ServiceAffinity
from extender.plugins.node_affinity import NodeAffinity
from extender.plugins.node_declared_features import NodeDeclaredFeatures
from extender.plugins.node_name import NodeName
from extender.plugins.node_ports import NodePorts
from extender.plugins.node_resources_balanced_allocation import NodeResourcesBalancedAllocation
from extender.plugins.node_resources_fit.plugin import NodeResourcesFit
from extender.plugins.node_unschedulable import NodeUnschedulable
from extender.plugins.node_volume_limits import NodeVolumeLimits
from extender.plugins.pod_group_pods_count import PodGroupPodsCount
from extender.plugins.pod_topology_spread.plugin import PodTopologySpread
from extender.plugins.priority_sort import PrioritySort
from extender.plugins.scheduling_gates import SchedulingGates
from extender.plugins.taint_toleration import TaintToleration
from extender.plugins.topology_placement_generator import TopologyPlacementGenerator
from extender.plugins.volume_binding.plugin import VolumeBinding
from extender.plugins.volume_restrictions import VolumeRestrictions
from extender.plugins.volume_zone import VolumeZone

ENTRY_POINT_GROUP = "extender.plugins"

BUILT_IN_PLUGINS: tuple[type[Any], ...] = (
    AzureDiskLimits,
    CheckNodeCondition,
    CheckNodeDiskPressure,
    CheckNodeMemoryPressure,
    CheckNodePIDPressure,
    CinderLimits,
    DefaultBinder,
    DefaultPreemption,
    DeferredPodScheduling,
    DynamicResources,
    EBSLimits,
    GangScheduling,
    GCEPDLimits,
    GpuShare,
    ImageLocality,
    InterPodAffinity,
    NodeAffinity,
    NodeDeclaredFeatures,
    NodeLabel,
    NodeName,
    NodePorts,
    NodePreferAvoidPods,
    NodeResourceLimits,
    NodeResourcesBalancedAllocation,
    NodeResourcesFit,
    NodeResourcesLeastAllocated,
    NodeResourcesMostAllocated,
    NodeUnschedulable,
    NodeVolumeLimits,
    PodGroupPodsCount,
    PodTopologySpread,
    PrioritySort,
    RequestedToCapacityRatio,
    SchedulingGates,
    SelectorSpread,
    ServiceAffinity,
    TaintToleration,
    TopologyPlacementGenerator,
    VolumeBinding,
    VolumeRestrictions,
    VolumeZone,
)


def load_registry() -> PluginRegistry:
    """Return all plugins by name.

    Raises:
        ConfigError: an installed plugin cannot be imported, violates the plugin contract, or has a name already in use.
    """
    registry, errors = load_valid_plugins()
    if errors:
        raise ConfigError(errors)
    return registry


def load_valid_plugins() -> tuple[PluginRegistry, list[FieldError]]:
    """Return the valid plugins by name, and the errors of the installed plugins that cannot be used.

    If two packages have a plugin of one name, none of these two can be used. A built-in plugin can.

    Source: pkg/scheduler/framework/runtime/registry.go, Registry.Merge (1.36).
    """
    built_in_plugins = {plugin.name: plugin for plugin in BUILT_IN_PLUGINS}
    registry = dict(built_in_plugins)
    entry_points_by_error: defaultdict[tuple[str, str], list[EntryPoint]] = defaultdict(list)
    ambiguous_names = set[str]()
    for entry_point in find_installed_entry_points():
        plugin, messages = _load_plugin(entry_point)
        if plugin is not None and plugin.name in registry:
            messages = [f"a plugin named {plugin.name} already exists"]
            ambiguous_names.add(plugin.name)
        elif plugin is not None:
            registry[plugin.name] = plugin
        for message in messages:
            entry_points_by_error[entry_point.module, message].append(entry_point)
    for name in ambiguous_names - built_in_plugins.keys():
        del registry[name]
    return registry, [_make_error(entries, message) for (_, message), entries in entry_points_by_error.items()]


def validate_plugins(*plugins: object) -> PluginRegistry:
    """Validate plugins that no package has, and return their classes by name.

    Each is a plugin class, or a function or class decorated with `filter_plugin`, `score_plugin` or `per_node_plugin`.

    Raises:
        ConfigError: a plugin is invalid.
    """
    errors: list[FieldError] = []
    plugin_classes: dict[str, type[Any]] = {}
    for decorated_plugin in plugins:
        plugin: Any = unwrap_plugin(decorated_plugin)
        error_messages = validate_plugin(plugin)
        if not error_messages and plugin_classes.setdefault(plugin.name, plugin) is not plugin:
            error_messages = ["two plugins have this name"]
        errors += [FieldError(f"plugin {getattr(plugin, 'name', plugin)}", message) for message in error_messages]
    if errors:
        raise ConfigError(errors)
    return plugin_classes


def find_installed_entry_points() -> Iterable[EntryPoint]:
    """Return the entry points of installed packages, sorted by name."""
    return sorted(entry_points(group=ENTRY_POINT_GROUP), key=lambda entry_point: entry_point.name)


def find_own_names(registry: PluginRegistry) -> dict[str, str]:
    """Return the own names of the installed plugins by entry point; empty for a plugin that is not in *registry*.

    A module that could not be imported is not imported again.
    """
    own_names: dict[str, str] = {}
    for entry_point in find_installed_entry_points():
        module = sys.modules.get(entry_point.module)
        plugin: Any = unwrap_plugin(getattr(module, entry_point.attr or "", None))
        name = str(getattr(plugin, "name", ""))
        own_names[entry_point.name] = name if plugin is not None and registry.get(name) is plugin else ""
    return own_names


def _make_error(entries: Sequence[EntryPoint], message: str) -> FieldError:
    """Make the error of *entries*, all of which are in one module."""
    package = entries[0].dist.name if entries[0].dist else "an installed package"
    fix = f"; pip uninstall {package} removes it" if entries[0].dist else ""
    names = ", ".join(f'"{entry_point.name}"' for entry_point in entries)
    value = entries[0].value if len(entries) == 1 else entries[0].module
    return FieldError(f"plugin {names} of {package} ({value})", f"{message}{fix}")


def _load_plugin(entry_point: EntryPoint) -> tuple[type[Any] | None, list[str]]:
    """Import and validate one plugin. Return it, or None and the messages of its errors."""
    try:
        loaded_object = entry_point.load()
    except DefinitionError as error:
        return None, [str(error)]
    except plugin_exceptions() as error:
        location = find_source_location(error.__traceback__, entry_point.module)
        return None, [f"cannot be imported: {type(error).__name__}: {error}" + (f" ({location})" if location else "")]
    plugin = unwrap_plugin(loaded_object)
    messages = validate_plugin(plugin)
    return (plugin if isinstance(plugin, type) and not messages else None), messages
