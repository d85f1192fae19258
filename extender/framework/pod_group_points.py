"""The extension points of pod groups: placements, their scores, and preemption for a group.

Source: kube-scheduler/framework/interface.go, PlacementGeneratePlugin; pkg/scheduler/framework/interface.go,
PodGroupPostFilterPlugin; pkg/scheduler/schedule_one_podgroup.go, Scheduler.podGroupSchedulingPlacementAlgorithm
(1.36).
"""

from collections.abc import Generator, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol, TypeAlias, runtime_checkable

from extender.api.kinds.pod_group import PodGroup
from extender.cache.pod_info import PodInfo
from extender.cache.snapshot import Snapshot
from extender.framework.extension_points import NamedPlugin, PostFilterResult
from extender.framework.status import Status


@dataclass(frozen=True, slots=True)
class PodGroupInfo:
    """A pod group that is being scheduled."""

    namespace: str
    name: str

    @property
    def key(self) -> str:
        """`namespace/name`."""
        return f"{self.namespace}/{self.name}"


@dataclass(frozen=True, slots=True)
class Placement:
    """A set of nodes to which a pod group is restricted. `node_names` is None for all nodes.

    Source: pkg/scheduler/schedule_one_podgroup.go, Scheduler.podGroupSchedulingPlacementAlgorithm (1.36).
    """

    name: str = ""
    node_names: frozenset[str] | None = None


@dataclass(frozen=True, slots=True)
class PodGroupAssignments:
    """The nodes assigned to a pod group's members in one placement; node names by pod uid."""

    placement: Placement
    node_name_by_uid: Mapping[str, str]


class PlacementGenerate(NamedPlugin, Protocol):
    """Generates the candidate placements of a pod group; at most one plugin in a profile.

    Source: pkg/scheduler/schedule_one_podgroup.go, Scheduler.podGroupSchedulingPlacementAlgorithm;
    pkg/scheduler/framework/plugins/topologyaware/topology_placement.go, TopologyPlacement.GeneratePlacements (1.36).
    """

    def generate_placements(self, pod_group: PodGroupInfo, snapshot: Snapshot) -> tuple[Placement, ...] | Status:
        """Return the placements to try, or an error."""


class PlacementScore(NamedPlugin, Protocol):
    """Scores the feasible placements of a pod group.

    Source: pkg/scheduler/schedule_one_podgroup.go, Scheduler.podGroupSchedulingPlacementAlgorithm;
    pkg/scheduler/framework/plugins/podgrouppodscount/podgroup_pods_count.go, PodGroupPodsCount.ScorePlacement (1.36).
    """

    def score_placement(
        self, pod_group: PodGroupInfo, snapshot: Snapshot, assignments: PodGroupAssignments
    ) -> int | Status:
        """Return a score, 0 to 100 unless the plugin normalizes, or an error."""


@runtime_checkable
class NormalizePlacementScore(Protocol):
    """A PlacementScore plugin whose scores are normalized to 0..100 over all placements."""

    def normalize_placement_score(self, pod_group: PodGroupInfo, scores: tuple[int, ...]) -> tuple[int, ...] | Status:
        """Return scores from 0 to 100 in the same order, or an error."""


DryRunGenerator: TypeAlias = Generator[Snapshot, Status, PostFilterResult]
"""Yields hypothetical snapshots, is sent the status of scheduling the pod group on each, and returns the result."""


@runtime_checkable
class PodGroupPostFilter(NamedPlugin, Protocol):
    """Runs when a pod group cannot be scheduled.

    Source: pkg/scheduler/framework/interface.go, PodGroupPostFilterPlugin; pkg/scheduler/schedule_one_podgroup.go,
    Scheduler.runWorkloadAwarePreemption (1.36).
    """

    def pod_group_post_filter(
        self, pod_group: PodGroup, pods: Sequence[PodInfo], snapshot: Snapshot
    ) -> DryRunGenerator:
        """Try to make *pod_group* schedulable; *pods* are its pending members."""
