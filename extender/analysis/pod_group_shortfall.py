"""What a waiting pod group lacks: the pods missing for minCount, the members that fit, and the nearest nodes.

kube-scheduler stops at the first member after which the group cannot be scheduled any more. The shortfall tries all
pending members, on each placement, so that placements can be compared.
"""

from collections.abc import Generator
from dataclasses import dataclass, replace
from typing import Any, Final

import msgspec

from extender.analysis.explanation.near_misses import NearMiss, find_near_misses
from extender.analysis.text_table import format_count
from extender.answers.explanation import GroupMemberResult, GroupPlacementResult
from extender.api.kinds.pod_group import PodGroup
from extender.cache.snapshot import Snapshot
from extender.cycle.decision import ScheduleResult
from extender.cycle.explain_pod import explain_pod
from extender.cycle.node_sampling import NodeSampler
from extender.cycle.pod_group_members import GroupAttempt, GroupDecision, MemberStep, schedule_members
from extender.cycle.pod_group_placements import generate_placements
from extender.cycle.scheduling_cycle import CycleInputs, schedule_without_extenders
from extender.framework.pod_group_points import Placement
from extender.framework.status import Status

_MAX_MEMBER_CYCLES: Final = 2000
"""The limit of scheduling cycles for one shortfall; further placements are not tried."""

_MAX_SHOWN, _MAX_NEAR_MISSES = 3, 2


@dataclass(frozen=True, slots=True)
class GroupShortfall:
    """What a group lacks.

    Attributes:
        min_count: the number of pods that must have a node at the same time; 1 for the basic policy.
        scheduled_count: the number of them that have a node.
        placements: the placements on which the most members fit, best first.
        rejected_pod: the first member that does not fit on the best placement; empty if there is none.
        nearest_nodes: the nodes that are closest to being feasible for this member, beside the members before it.
    """

    min_count: int
    pod_count: int
    scheduled_count: int
    placements: tuple[GroupPlacementResult, ...] = ()
    rejected_pod: str = ""
    nearest_nodes: tuple[NearMiss, ...] = ()

    @property
    def uncreated_count(self) -> int:
        """The number of pods that must be created before the group can be scheduled."""
        return max(self.min_count - self.pod_count, 0)

    @property
    def missing_count(self) -> int:
        """The number of pods of minCount that have no node and fit on none."""
        return max(self.min_count - self.scheduled_count - self._fitting_count, 0)

    def format_lines(self) -> list[str]:
        """Return the shortfall as text."""
        lines = [
            f"    the group needs {format_count(self.min_count, 'pod')} with a node at the same time: "
            f"{self.scheduled_count} placed, {self._fitting_count} fitting, {self.missing_count} missing"
        ]
        if self.uncreated_count:
            lines.append(f"    {format_count(self.uncreated_count, 'more pod')} must be created")
        if len(self.placements) > 1 or any(placement.name for placement in self.placements):
            lines.append("    nearest placements:")
            lines += [
                f"      {placement.name}: {placement.fitting} of {len(placement.members)} pending pods fit"
                for placement in self.placements
            ]
        for member in self.placements[0].members if self.placements else ():
            lines.append(f"    {member.pod}: {f'fits on {member.node}' if member.node else member.message}")
        if self.nearest_nodes:
            lines.append(f"    nearest nodes for {self.rejected_pod}, beside the members before it:")
            lines += (line for near_miss in self.nearest_nodes for line in near_miss.format_lines("      "))
        return lines

    @property
    def _fitting_count(self) -> int:
        return self.placements[0].fitting if self.placements else 0

    def to_values(self) -> dict[str, Any]:
        """Return the shortfall as plain values, always with the same keys."""
        return {
            "minCount": self.min_count,
            "pods": self.pod_count,
            "placed": self.scheduled_count,
            "fitting": self._fitting_count,
            "missing": self.missing_count,
            "placements": msgspec.to_builtins(list(self.placements)),
            "rejectedPod": self.rejected_pod or None,
            "nearestNodes": [
                {"node": near_miss.node, "details": list(near_miss.lines)} for near_miss in self.nearest_nodes
            ],
        }


def count_members(key: str, snapshot: Snapshot) -> GroupShortfall:
    """Return the counts of the group *key* (`namespace/name`) without trying any placement."""
    group, members = snapshot.get_object(PodGroup, key), snapshot.pod_group(key)
    gang = None if group is None else group.spec.scheduling_policy.gang
    return GroupShortfall(1 if gang is None else gang.min_count, members.count, len(members.assigned))


def find_shortfall(attempt: GroupAttempt, snapshot: Snapshot) -> GroupShortfall:
    """Try all pending members of *attempt* on each placement, and return what the group lacks."""
    attempt = replace(attempt, profile=replace(attempt.profile, post_filter_plugins=()))
    counts = count_members(attempt.group.key, snapshot)
    placements = (
        generate_placements(attempt, snapshot) if "TopologyAwareWorkloadScheduling" in attempt.profile.gates else ()
    )
    if isinstance(placements, Status):
        return counts
    tried = list(placements or (Placement(),))[: max(1, _MAX_MEMBER_CYCLES // max(1, len(attempt.pods)))]
    near_placements = {placement: _try_members(attempt, snapshot, placement)[0] for placement in tried}
    best_first = sorted(tried, key=lambda placement: -near_placements[placement].fitting)
    _, rejected_pod, nearest_nodes = _try_members(attempt, snapshot, best_first[0], explains=True)
    return replace(
        counts,
        placements=tuple(near_placements[placement] for placement in best_first[:_MAX_SHOWN]),
        rejected_pod=rejected_pod,
        nearest_nodes=nearest_nodes,
    )


def _try_members(
    attempt: GroupAttempt, snapshot: Snapshot, placement: Placement, *, explains: bool = False
) -> tuple[GroupPlacementResult, str, tuple[NearMiss, ...]]:
    """Return the members on *placement* and, if *explains* is set, the first that does not fit, with near misses."""
    rejected_pod, nearest_nodes = "", tuple[NearMiss, ...]()
    sampler = NodeSampler()
    steps: Generator[MemberStep, Any, GroupDecision] = schedule_members(attempt, snapshot, placement)
    try:
        step = next(steps)
        while True:
            inputs = CycleInputs(
                step.pod, step.snapshot, step.profile, attempt.runtime, attempt.rng, sampler, placement.node_names
            )
            decision = schedule_without_extenders(inputs)
            if explains and not rejected_pod and not isinstance(decision, ScheduleResult):
                rejected_pod, nearest_nodes = step.pod.key, _find_nearest_nodes(step, attempt)
            step = steps.send(decision)
    except StopIteration as stop:
        return _make_near_placement(placement, stop.value), rejected_pod, nearest_nodes


def _find_nearest_nodes(step: MemberStep, attempt: GroupAttempt) -> tuple[NearMiss, ...]:
    explanation = explain_pod(step.pod, step.snapshot, step.profile, attempt.runtime)
    only_nodes = step.placement.node_names
    nodes = {name: status for name, status in explanation.nodes.items() if only_nodes is None or name in only_nodes}
    return tuple(find_near_misses(replace(explanation, nodes=nodes), step.snapshot, _MAX_NEAR_MISSES))


def _make_near_placement(placement: Placement, decision: GroupDecision) -> GroupPlacementResult:
    members = [
        GroupMemberResult(
            member.pod.key, member.node_name or None, None if member.node_name else member.status.message or None
        )
        for member in decision.members
    ]
    return GroupPlacementResult(placement.name or None, sum(bool(member.node) for member in members), members)
