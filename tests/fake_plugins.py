"""Plugins for tests: they accept all, refuse some, raise, score by a table, and count how often they are asked."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np

from extender.cluster.arrays import IntArray
from extender.cluster.pods import PodQuery
from extender.cluster.snapshot import NodeView, Snapshot
from extender.framework.points import PASS, PreFiltered, Queued
from extender.framework.profiles import Profile, WeightedScore
from extender.framework.verdict import Reason, Rejection, Status


@dataclass(slots=True)
class AcceptsAll:
    """Refuses no node."""

    name: ClassVar[str] = "AcceptsAll"

    def filter(self, pod: PodQuery, nodes: NodeView, notes: Any) -> Sequence[Rejection]:
        return ()


@dataclass(slots=True)
class Refuses:
    """Refuses nodes by name: each reason with the nodes it applies to; None stands for all."""

    name: ClassVar[str] = "Refuses"
    reasons: Mapping[Reason, Sequence[str] | None]

    def filter(self, pod: PodQuery, nodes: NodeView, notes: Any) -> Sequence[Rejection]:
        return [
            Rejection(np.array([names is None or name in names for name in nodes.names], dtype=np.bool_), reason)
            for reason, names in self.reasons.items()
        ]


@dataclass(slots=True)
class Raises:
    """Has a bug at every point."""

    name: ClassVar[str] = "Raises"

    def filter(self, pod: PodQuery, nodes: NodeView, notes: Any) -> Sequence[Rejection]:
        raise ZeroDivisionError("a bug")

    def score(self, pod: PodQuery, nodes: NodeView, notes: Any) -> IntArray:
        raise ZeroDivisionError("a bug")


@dataclass(slots=True)
class TurnsAway:
    """Answers PreFilter and PreEnqueue with what it is given."""

    name: ClassVar[str] = "TurnsAway"
    status: Status | None = None
    nodes: frozenset[str] | None = None

    def pre_filter(self, pod: PodQuery, cluster: Snapshot) -> PreFiltered:
        return PASS if self.status is None and self.nodes is None else PreFiltered(self.status, self.nodes)

    def pre_enqueue(self, pod: PodQuery, cluster: Snapshot) -> Status | None:
        return self.status


@dataclass(slots=True)
class Scores:
    """Scores nodes by name, 0 for those it does not know."""

    name: ClassVar[str] = "Scores"
    table: Mapping[str, int]

    def score(self, pod: PodQuery, nodes: NodeView, notes: Any) -> IntArray:
        return np.array([self.table.get(name, 0) for name in nodes.names], dtype=np.int64)


@dataclass(slots=True)
class Counts:
    """Refuses no node and notes for which pods and how many nodes it was asked."""

    name: ClassVar[str] = "Counts"
    asked: list[tuple[str, int]] = field(default_factory=list)

    def filter(self, pod: PodQuery, nodes: NodeView, notes: Any) -> Sequence[Rejection]:
        self.asked.append((pod.key, len(nodes)))
        return ()


@dataclass(slots=True)
class CountsPods:
    """Refuses nodes with pods on them."""

    name: ClassVar[str] = "CountsPods"

    def filter(self, pod: PodQuery, nodes: NodeView, notes: Any) -> Sequence[Rejection]:
        return [Rejection(nodes.pod_count > 0, Reason("has pods"))]


class _InOrder:
    name: ClassVar[str] = "InOrder"

    def sort_key(self, queued: Queued) -> tuple[float, ...]:
        return (queued.since,)


def a_profile(*plugins: Any, scheduler_name: str = "default-scheduler", weight: int = 1) -> Profile:
    """A profile of these plugins, each at every point it has a method for; TurnsAway stands at PreFilter only."""

    def at(method: str) -> tuple[Any, ...]:
        return tuple(plugin for plugin in plugins if hasattr(plugin, method))

    return Profile(
        scheduler_name=scheduler_name,
        queue_sort=_InOrder(),
        pre_filters=at("pre_filter"),
        filters=at("filter"),
        scores=tuple(WeightedScore(plugin, weight) for plugin in at("score")),
        plugins={plugin.name: plugin for plugin in plugins},
    )
