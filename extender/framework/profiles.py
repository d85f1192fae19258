"""The plugins of one profile, sorted by extension point, built and ready to call."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from extender.framework.group_points import PlacementGenerate, PlacementScore, PodGroupPostFilter
from extender.framework.points import (
    Assuming,
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


@dataclass(frozen=True, slots=True)
class WeightedScore:
    """A score plugin with its weight in the profile, at least 1. Source: A067."""

    plugin: Score
    weight: int


@dataclass(frozen=True, slots=True)
class WeightedPlacementScore:
    """A placement score plugin with its weight in the profile, at least 1. Source: A152."""

    plugin: PlacementScore
    weight: int


@dataclass(frozen=True, slots=True)
class GroupRules:
    """How pod groups are scheduled; all of it alpha. Source: A144, A152, A153.

    Attributes:
        gangs: a pod that appears may complete a gang (gate GangScheduling).
        by_placement: one set of nodes is tried after another (gate TopologyAwareWorkloadScheduling).
        preempts: room is made for groups as a whole (gate WorkloadAwarePreemption).
        post_filter: says how; None if there is no such plugin.
    """

    gangs: bool = False
    by_placement: bool = False
    preempts: bool = False
    post_filter: PodGroupPostFilter | None = None


@dataclass(frozen=True, slots=True)
class Profile:
    """What decides for pods of one scheduler name.

    Attributes:
        scheduler_name: the `spec.schedulerName` it serves.
        percentage_of_nodes_to_score: None or 0: every node is scored; 1 to 100: the search stops at that
            share. Source: A085.
        queue_sort: the order of the queue.
        pre_enqueues, pre_filters, filters, post_filters, pre_scores, scores, reserves, permits, pre_binds,
            binds, post_binds, placement_generates, placement_scores: in the order they run.
        assumings: those of `reserves` that say how a pod counts on its node.
        plugins: every plugin of the profile by name.
        check_all_filters: a refused node is told by every plugin that refuses it, not by the first alone.
        groups: None: members of pod groups are scheduled like any pod (gate GenericWorkload is off).
    """

    scheduler_name: str
    queue_sort: QueueSort
    percentage_of_nodes_to_score: int | None = None
    pre_enqueues: tuple[PreEnqueue, ...] = ()
    pre_filters: tuple[PreFilter, ...] = ()
    filters: tuple[Filter, ...] = ()
    post_filters: tuple[PostFilter, ...] = ()
    pre_scores: tuple[PreScore, ...] = ()
    scores: tuple[WeightedScore, ...] = ()
    reserves: tuple[Reserve, ...] = ()
    permits: tuple[Permit, ...] = ()
    pre_binds: tuple[PreBind, ...] = ()
    binds: tuple[Bind, ...] = ()
    post_binds: tuple[PostBind, ...] = ()
    placement_generates: tuple[PlacementGenerate, ...] = ()
    placement_scores: tuple[WeightedPlacementScore, ...] = ()
    assumings: tuple[Assuming, ...] = ()
    plugins: Mapping[str, Any] = field(default_factory=dict)
    check_all_filters: bool = False
    groups: GroupRules | None = None
