"""The built-in plugins by name, and those that installed packages bring (entry point group `extender.plugins`)."""

from collections.abc import Iterable
from importlib.metadata import EntryPoint, entry_points
from typing import Any

from extender.config.faults import ConfigError, Fault
from extender.framework.contract import DefinitionError, wrong_with
from extender.framework.registry import Catalogue
from extender.framework.rowwise import plugin_class
from extender.plugins.azure_disk_limits import AzureDiskLimits
from extender.plugins.check_node_condition import CheckNodeCondition
from extender.plugins.check_node_disk_pressure import CheckNodeDiskPressure
from extender.plugins.check_node_memory_pressure import CheckNodeMemoryPressure
from extender.plugins.check_node_pid_pressure import CheckNodePIDPressure
from extender.plugins.cinder_limits import CinderLimits
from extender.plugins.default_binder import DefaultBinder
from extender.plugins.default_preemption import DefaultPreemption
from extender.plugins.dynamic_resources.plugin import DynamicResources
from extender.plugins.ebs_limits import EBSLimits
from extender.plugins.gang_scheduling import GangScheduling
from extender.plugins.gce_pd_limits import GCEPDLimits
from extender.plugins.image_locality import ImageLocality
from extender.plugins.inter_pod_affinity.plugin import InterPodAffinity
from extender.plugins.node_affinity import NodeAffinity
from extender.plugins.node_declared_features import NodeDeclaredFeatures
from extender.plugins.node_label import NodeLabel
from extender.plugins.node_name import NodeName
from extender.plugins.node_ports import NodePorts
from extender.plugins.node_prefer_avoid_pods import NodePreferAvoidPods
from extender.plugins.node_resource_limits import NodeResourceLimits
from extender.plugins.node_resources_balanced_allocation import NodeResourcesBalancedAllocation
from extender.plugins.node_resources_fit.plugin import NodeResourcesFit
from extender.plugins.node_resources_least_allocated import NodeResourcesLeastAllocated
from extender.plugins.node_resources_most_allocated import NodeResourcesMostAllocated
from extender.plugins.node_unschedulable import NodeUnschedulable
from extender.plugins.node_volume_limits import NodeVolumeLimits
from extender.plugins.pod_group_pods_count import PodGroupPodsCount
from extender.plugins.pod_topology_spread.plugin import PodTopologySpread
from extender.plugins.priority_sort import PrioritySort
from extender.plugins.requested_to_capacity_ratio import RequestedToCapacityRatio
from extender.plugins.scheduling_gates import SchedulingGates
from extender.plugins.selector_spread import SelectorSpread
from extender.plugins.service_affinity import ServiceAffinity
from extender.plugins.taint_toleration import TaintToleration
from extender.plugins.topology_placement_generator import TopologyPlacementGenerator
from extender.plugins.volume_binding.plugin import VolumeBinding
from extender.plugins.volume_restrictions import VolumeRestrictions
from extender.plugins.volume_zone import VolumeZone

GROUP = "extender.plugins"

BUILT_IN: tuple[type[Any], ...] = (
    AzureDiskLimits,
    CheckNodeCondition,
    CheckNodeDiskPressure,
    CheckNodeMemoryPressure,
    CheckNodePIDPressure,
    CinderLimits,
    DefaultBinder,
    DefaultPreemption,
    DynamicResources,
    EBSLimits,
    GangScheduling,
    GCEPDLimits,
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


def catalogue() -> Catalogue:
    """All plugins that can be enabled.

    Raises:
        ConfigError: installed plugins cannot be loaded, break the contract, or take a name that is taken (A079).
    """
    known = {plugin.name: plugin for plugin in BUILT_IN}
    faults: list[Fault] = []
    for entry in installed():
        plugin = _loaded(entry, faults)
        if plugin is None:
            continue
        if plugin.name in known:
            faults.append(Fault(_where(entry), f"a plugin named {plugin.name} already exists"))
        else:
            known[plugin.name] = plugin
    if faults:
        raise ConfigError(faults)
    return known


def installed() -> Iterable[EntryPoint]:
    """The entry points of installed packages, by name."""
    return sorted(entry_points(group=GROUP), key=lambda entry: entry.name)


def _where(entry: EntryPoint) -> str:
    package = entry.dist.name if entry.dist else "an installed package"
    return f'plugin "{entry.name}" of {package} ({entry.value})'


def _loaded(entry: EntryPoint, faults: list[Fault]) -> type[Any] | None:
    try:
        found = entry.load()
    except DefinitionError as wrong:
        faults.append(Fault(_where(entry), str(wrong)))
        return None
    except Exception as wrong:  # noqa: BLE001  importing somebody else's code may raise anything
        faults.append(Fault(_where(entry), f"cannot be imported: {type(wrong).__name__}: {wrong}"))
        return None
    plugin = plugin_class(found)
    wrongs = wrong_with(plugin)
    faults.extend(Fault(_where(entry), wrong) for wrong in wrongs)
    return plugin if isinstance(plugin, type) and not wrongs else None
