"""The extension points of pod groups: placements, their scores, and preemption for a group.

Source: kube-scheduler/framework/interface.go, PlacementGeneratePlugin (1.36).
"""

from collections.abc import Generator, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol, TypeAlias, runtime_checkable

from extender.cache.group_hierarchy import Group, GroupKey
from extender.cache.pod_info import PodInfo
from extender.cache.snapshot import Snapshot
from extender.framework.extension_points import AttemptT_contra, NamedPlugin
from extender.framework.status import Status


@dataclass(frozen=True, slots=True)
class PodGroupInfo:
    """A pod group or composite pod group that is being scheduled.

    Attributes:
        is_composite: whether it is a composite pod group.
        children: the child groups of a composite pod group in scheduling order; empty for a pod group.
    """

    namespace: str
    name: str
    is_composite: bool = False
    children: "tuple[PodGroupInfo, ...]" = ()

    @property
    def key(self) -> str:
        """`namespace/name`."""
        return f"{self.namespace}/{self.name}"

    @property
    def group_key(self) -> GroupKey:
        """The key, with the kind of the group."""
        return GroupKey(self.namespace, self.name, self.is_composite)

    def iterate_pod_groups(self) -> "Iterator[PodGroupInfo]":
        """Yield the pod groups below the composite pod group in scheduling order, or the pod group itself."""
        unvisited = [self]
        while unvisited:
            info = unvisited.pop()
            if not info.is_composite:
                yield info
            unvisited.extend(reversed(info.children))


@dataclass(frozen=True, slots=True)
class Placement:
    """A set of nodes to which a pod group is restricted. If `node_names` is None, the set has all nodes.

    Source: pkg/scheduler/schedule_one_podgroup.go, Scheduler.podGroupSchedulingPlacementAlgorithm (1.36).
    """

    name: str = ""
    node_names: frozenset[str] | None = None


@dataclass(frozen=True, slots=True)
class PodGroupAssignments:
    """The nodes assigned to a pod group's members in one placement.

    Attributes:
        node_name_by_uid: the node of each assigned member, by uid.
        assigned_pods: the assigned members.
    """

    placement: Placement
    node_name_by_uid: Mapping[str, str]
    assigned_pods: tuple[PodInfo, ...] = ()


@dataclass(frozen=True, slots=True)
class PlacementProgress:
    """The progress of a pod group's cycle.

    Attributes:
        scheduled: the number of members that are scheduled, in this cycle or before; for a composite pod group, the
            number of its child groups that this cycle can schedule.
        remaining: the number of pending members that are not tried yet.

    Source: pkg/scheduler/framework/interface.go, PlacementProgress (1.37).
    """

    scheduled: int
    remaining: int


@runtime_checkable
class PlacementFeasible(NamedPlugin, Protocol):
    """Decides before the first member and after each member whether the pod group can be scheduled. Since 1.37.

    Source: pkg/scheduler/framework/interface.go, PlacementFeasiblePlugin (1.37).
    """

    def placement_feasible(self, pod_group: Group, progress: PlacementProgress) -> Status | None:
        """Return None if the scheduled members suffice, WAIT if more are needed, or UNSCHEDULABLE to end the cycle.

        The members of a composite pod group are its child groups.
        """


class PlacementGenerate(NamedPlugin, Protocol):
    """Generates the candidate placements of a pod group. A profile has at most one such plugin.

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
        """Return a score or an error. The score is 0 to 100, or any number if the plugin normalizes scores."""


@runtime_checkable
class NormalizePlacementScore(Protocol):
    """A PlacementScore plugin whose scores are normalized to 0..100 over all placements."""

    def normalize_placement_score(self, pod_group: PodGroupInfo, scores: tuple[int, ...]) -> tuple[int, ...] | Status:
        """Return scores from 0 to 100 in the same order, or an error."""


@dataclass(frozen=True, slots=True)
class PodGroupPostFilterResult:
    """The result of PodGroupPostFilter.

    Attributes:
        status: SUCCESS if the group can be scheduled once the plan is executed, else a rejection or an error.
        plan: the plan to execute, such as a `preemption.plan.GroupPreemptionPlan`; None if there is none.
        nominated_node_names: the node to nominate for each member, by the member's uid.

    Source: kube-scheduler/framework/interface.go, PodGroupPostFilterResult (1.37).
    """

    status: Status
    plan: Any = None
    nominated_node_names: Mapping[str, str] = field(default_factory=dict)


DryRunGenerator: TypeAlias = Generator[Snapshot, Any, PodGroupPostFilterResult]
"""A generator that yields hypothetical snapshots and returns the result.

It is sent the `cycle.pod_group_members.GroupDecision` on each snapshot.
"""


@runtime_checkable
class PodGroupPostFilter(NamedPlugin, Protocol[AttemptT_contra]):
    """Runs when a pod group cannot be scheduled. *attempt* is a `cycle.pod_group.post_filter.FailedGroupAttempt`.

    Source: pkg/scheduler/framework/interface.go, PodGroupPostFilterPlugin; pkg/scheduler/schedule_one_podgroup.go,
    Scheduler.runWorkloadAwarePreemption (1.36).
    """

    def pod_group_post_filter(self, attempt: AttemptT_contra) -> DryRunGenerator:
        """Try to make the pod group of *attempt* schedulable."""
