"""The plugins of one profile, sorted by extension point, built and ready to call."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from extender.framework.points import (
    Bind,
    Filter,
    Permit,
    PlacementGenerate,
    PlacementScore,
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
class Profile:
    """What decides for pods of one scheduler name.

    Attributes:
        scheduler_name: the `spec.schedulerName` it serves.
        percentage_of_nodes_to_score: None or 0: every node is scored; 1 to 100: the search stops at that
            share. Source: A085.
        queue_sort: the order of the queue.
        pre_enqueues, pre_filters, filters, post_filters, pre_scores, scores, reserves, permits, pre_binds,
            binds, post_binds, placement_generates, placement_scores: in the order they run.
        plugins: every plugin of the profile by name.
        check_all_filters: a refused node is told by every plugin that refuses it, not by the first alone.
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
    plugins: Mapping[str, Any] = field(default_factory=dict)
    check_all_filters: bool = False
