"""Plugins for tests: they accept or reject given nodes, raise, return given scores, or record their calls."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np

from extender.cache.pod_info import PodInfo
from extender.cache.snapshot import NodeView, Snapshot
from extender.cache.tables.arrays import IntArray
from extender.framework.extension_points import PASS, PreFilterResult, QueueSortEntry
from extender.framework.profiles import Profile, WeightedScore
from extender.framework.status import Reason, Rejection, Status


@dataclass(slots=True)
class AcceptingFilter:
    """Rejects no node."""

    name: ClassVar[str] = "AcceptingFilter"

    def filter(self, pod: PodInfo, nodes: NodeView, state: Any) -> Sequence[Rejection]:
        return ()


@dataclass(slots=True)
class RejectingFilter:
    """Rejects the given nodes for each reason; None stands for all nodes."""

    name: ClassVar[str] = "RejectingFilter"
    nodes_by_reason: Mapping[Reason, Sequence[str] | None]

    def filter(self, pod: PodInfo, nodes: NodeView, state: Any) -> Sequence[Rejection]:
        return [
            Rejection(np.array([names is None or name in names for name in nodes.names], dtype=np.bool_), reason)
            for reason, names in self.nodes_by_reason.items()
        ]


@dataclass(slots=True)
class RaisingPlugin:
    """Raises at every extension point."""

    name: ClassVar[str] = "RaisingPlugin"

    def filter(self, pod: PodInfo, nodes: NodeView, state: Any) -> Sequence[Rejection]:
        raise ZeroDivisionError("a bug")

    def score(self, pod: PodInfo, nodes: NodeView, state: Any) -> IntArray:
        raise ZeroDivisionError("a bug")


@dataclass(slots=True)
class RejectingPreFilter:
    """Returns the given status and node names from PreFilter, and the status from PreEnqueue."""

    name: ClassVar[str] = "RejectingPreFilter"
    status: Status | None = None
    node_names: frozenset[str] | None = None

    def pre_filter(self, pod: PodInfo, snapshot: Snapshot) -> PreFilterResult:
        return (
            PASS if self.status is None and self.node_names is None else PreFilterResult(self.status, self.node_names)
        )

    def pre_enqueue(self, pod: PodInfo, snapshot: Snapshot) -> Status | None:
        return self.status


@dataclass(slots=True)
class FixedScore:
    """Returns the given scores by node name, 0 for other nodes."""

    name: ClassVar[str] = "FixedScore"
    scores: Mapping[str, int]

    def score(self, pod: PodInfo, nodes: NodeView, state: Any) -> IntArray:
        return np.array([self.scores.get(name, 0) for name in nodes.names], dtype=np.int64)


@dataclass(slots=True)
class CountingFilter:
    """Rejects no node, and records the pod and the number of nodes of each call."""

    name: ClassVar[str] = "CountingFilter"
    calls: list[tuple[str, int]] = field(default_factory=list)

    def filter(self, pod: PodInfo, nodes: NodeView, state: Any) -> Sequence[Rejection]:
        self.calls.append((pod.key, len(nodes)))
        return ()


@dataclass(slots=True)
class OccupiedNodeFilter:
    """Rejects nodes with pods."""

    name: ClassVar[str] = "OccupiedNodeFilter"

    def filter(self, pod: PodInfo, nodes: NodeView, state: Any) -> Sequence[Rejection]:
        return [Rejection(nodes.pod_count > 0, Reason("has pods"))]


class _TimestampSort:
    name: ClassVar[str] = "TimestampSort"

    def sort_key(self, entry: QueueSortEntry) -> tuple[float, ...]:
        return (entry.timestamp,)


def make_profile(*plugins: Any, scheduler_name: str = "default-scheduler", weight: int = 1) -> Profile:
    """Make a profile with these plugins at every extension point they have a method for, except PreEnqueue."""

    def plugins_with(method: str) -> tuple[Any, ...]:
        return tuple(plugin for plugin in plugins if hasattr(plugin, method))

    return Profile(
        scheduler_name=scheduler_name,
        queue_sort=_TimestampSort(),
        pre_filter_plugins=plugins_with("pre_filter"),
        filter_plugins=plugins_with("filter"),
        score_plugins=tuple(WeightedScore(plugin, weight) for plugin in plugins_with("score")),
        plugins={plugin.name: plugin for plugin in plugins},
    )
