"""A profile: its plugin instances by extension point."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

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
from extender.framework.pod_group_points import PlacementGenerate, PlacementScore, PodGroupPostFilter


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
        post_filter: the plugin that selects these victims, or None.

    Source: pkg/scheduler/schedule_one.go, Scheduler.ScheduleOne; pkg/scheduler/schedule_one_podgroup.go,
    Scheduler.podGroupSchedulingPlacementAlgorithm, Scheduler.runWorkloadAwarePreemption (1.36).
    """

    gang_scheduling: bool = False
    topology_aware: bool = False
    workload_aware_preemption: bool = False
    post_filter: PodGroupPostFilter | None = None


@dataclass(frozen=True, slots=True)
class Profile:
    """The plugins for the pods of one scheduler name, and its settings.

    Each field with a name such as `filter_plugins` has the plugins of one extension point, in execution order.

    Attributes:
        scheduler_name: the `spec.schedulerName` of its pods.
        queue_sort: the plugin that orders the active queue.
        percentage_of_nodes_to_score: the percentage of all nodes that is enough as feasible nodes; None or 0: every
            feasible node is scored.
        assume_extensions: the plugins in `reserve_plugins` that modify the assumed pod.
        plugins: all plugins of the profile, by name.
        check_all_filters: whether a rejected node lists the reasons of all plugins that reject it, not only of the
            first.
        pod_groups: the settings of pod groups; None if their members are scheduled one by one (gate GenericWorkload
            is off).

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
    pod_groups: PodGroupSettings | None = None
