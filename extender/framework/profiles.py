"""A profile: the plugin instances of each extension point, and settings."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from extender.api.requests import is_resize_deferred
from extender.cache.pod_info import PodInfo
from extender.config.releases import DEFAULT_RELEASE, Release
from extender.framework.extension_points import (
    AssumeExtensions,
    Bind,
    Filter,
    Permit,
    PostBind,
    PostFilter,
    PreBind,
    PreEnqueue,
    PreFilter,
    PreScore,
    QueueSort,
    Reserve,
    Score,
)
from extender.framework.pod_group_points import PlacementFeasible, PlacementGenerate, PlacementScore, PodGroupPostFilter

_IGNORING_PLUGINS: Final = frozenset(
    {
        "DynamicResources",
        "InterPodAffinity",
        "NodeAffinity",
        "NodeDeclaredFeatures",
        "NodePorts",
        "NodeUnschedulable",
        "NodeVolumeLimits",
        "PodTopologySpread",
        "TaintToleration",
        "VolumeBinding",
        "VolumeRestrictions",
        "VolumeZone",
    }
)
"""The in-tree filters that ignore a pod whose in-place resize is deferred, because the pod stays on its node.

Source: pkg/scheduler/framework/plugins/nodeports/node_ports.go, NodePorts.PreFilter;
pkg/scheduler/framework/plugins/nodeaffinity/node_affinity.go, NodeAffinity.PreFilter (1.37).
"""


@dataclass(frozen=True, slots=True)
class WeightedScore:
    """A score plugin with its weight in the profile, at least 1.

    Source: pkg/scheduler/framework/runtime/framework.go, getValidScoreWeights (1.36).
    """

    plugin: Score
    weight: int


@dataclass(frozen=True, slots=True)
class WeightedPlacementScore:
    """A placement score plugin with its weight in the profile, at least 1.

    Source: pkg/scheduler/schedule_one_podgroup.go, Scheduler.podGroupSchedulingPlacementAlgorithm (1.36).
    """

    plugin: PlacementScore
    weight: int


@dataclass(frozen=True, slots=True)
class PodGroupSettings:
    """The settings of pod group scheduling, which is alpha.

    Attributes:
        gang_scheduling: whether a new pod requeues the waiting pods of its gang (gate GangScheduling).
        topology_aware: whether several placements are tried (gate TopologyAwareWorkloadScheduling).
        workload_aware_preemption: whether victims are selected for a whole group (gate WorkloadAwarePreemption).
        preemption_policy_of_group: whether the preemption policy is the group's (gate PodGroupPreemptionPolicy).
            Otherwise it is that of its members.
        coscheduling: whether the groups are those of the coscheduling plugin. Their status is not written.
        composite_groups: whether pod groups form trees with composite pod groups (gate CompositePodGroup).
        post_filter_plugins: the plugins that run for a group that cannot be scheduled, in order.
        placement_feasible_plugins: the plugins that decide after each member whether the group can be scheduled.

    Source: pkg/scheduler/schedule_one.go, Scheduler.ScheduleOne; pkg/scheduler/schedule_one_podgroup.go,
    Scheduler.podGroupSchedulingPlacementAlgorithm, Scheduler.runWorkloadAwarePreemption (1.36).
    """

    gang_scheduling: bool = False
    topology_aware: bool = False
    workload_aware_preemption: bool = False
    preemption_policy_of_group: bool = False
    coscheduling: bool = False
    composite_groups: bool = False
    post_filter_plugins: tuple[PodGroupPostFilter[Any], ...] = ()
    placement_feasible_plugins: tuple[PlacementFeasible, ...] = ()


@dataclass(frozen=True, slots=True)
class Profile:
    """The plugins for the pods of one scheduler name, and its settings.

    Each field with a name such as `filter_plugins` has the plugins of one extension point, in execution order.

    Attributes:
        scheduler_name: the `spec.schedulerName` of the pods that use the profile.
        queue_sort: the plugin that orders the active queue.
        percentage_of_nodes_to_score: the search for feasible nodes stops when it has found this percentage of the
            nodes. With None or 0, all feasible nodes are found and scored.
        assume_extensions: the plugins in `reserve_plugins` that modify the assumed pod.
        plugins: all plugins of the profile, by name.
        check_all_filters: whether messages have the reasons of all plugins that reject a node, and not only the reasons
            of the first such plugin.
        pod_group_settings: the settings of pod group scheduling. None if the gate GenericWorkload is off: the members
            of a pod group are then scheduled one by one.
        resize_preemption: whether pods on nodes whose resize is deferred are scheduled again, so that they preempt
            others (gate InPlacePodVerticalScalingSchedulerPreemption).
        release: the emulated release, with the scheduling rules that no feature gate guards.
        pre_filter_state_readers: the name of each Score plugin that gets the state of PreFilter, because it has no
            PreScore or has the attribute `scores_from_pre_filter`; and whether its PreScore runs.

    Source: pkg/scheduler/schedule_one.go, Scheduler.numFeasibleNodesToFind (1.36).
    """

    scheduler_name: str
    queue_sort: QueueSort
    percentage_of_nodes_to_score: int | None = None
    pre_enqueue_plugins: tuple[PreEnqueue, ...] = ()
    pre_filter_plugins: tuple[PreFilter, ...] = ()
    filter_plugins: tuple[Filter, ...] = ()
    post_filter_plugins: tuple[PostFilter[Any], ...] = ()
    pre_score_plugins: tuple[PreScore, ...] = ()
    score_plugins: tuple[WeightedScore, ...] = ()
    reserve_plugins: tuple[Reserve, ...] = ()
    permit_plugins: tuple[Permit, ...] = ()
    pre_bind_plugins: tuple[PreBind, ...] = ()
    bind_plugins: tuple[Bind, ...] = ()
    post_bind_plugins: tuple[PostBind, ...] = ()
    placement_generate_plugins: tuple[PlacementGenerate, ...] = ()
    placement_score_plugins: tuple[WeightedPlacementScore, ...] = ()
    assume_extensions: tuple[AssumeExtensions, ...] = ()
    plugins: Mapping[str, Any] = field(default_factory=dict)
    check_all_filters: bool = False
    pod_group_settings: PodGroupSettings | None = None
    resize_preemption: bool = False
    release: Release = DEFAULT_RELEASE
    pre_filter_state_readers: tuple[tuple[str, bool], ...] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        """Derive `pre_filter_state_readers` once, because each decision needs it."""
        pre_score_names = {plugin.name for plugin in self.pre_score_plugins}
        readers = tuple(
            (entry.plugin.name, entry.plugin.name in pre_score_names)
            for entry in self.score_plugins
            if not hasattr(entry.plugin, "pre_score") or getattr(entry.plugin, "scores_from_pre_filter", False)
        )
        object.__setattr__(self, "pre_filter_state_readers", readers)

    def select_pre_filter_plugins(self, pod: PodInfo) -> tuple[tuple[PreFilter, ...], frozenset[str]]:
        """Return the PreFilter plugins that run for *pod*, and the names of the filters that ignore it.

        No filter ignores the pod unless it is on a node and its resize is deferred.
        """
        if not (self.resize_preemption and is_resize_deferred(pod.pod)):
            return self.pre_filter_plugins, frozenset()
        plugins = tuple(plugin for plugin in self.pre_filter_plugins if plugin.name not in _IGNORING_PLUGINS)
        return plugins, _IGNORING_PLUGINS

    def get_pod_group_settings(self) -> PodGroupSettings:
        """Return the settings of pod group scheduling; if the gate GenericWorkload is off, settings without plugins."""
        return self.pod_group_settings or PodGroupSettings()
