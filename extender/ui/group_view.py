"""The contents of the page of a pod group: its members, and what its gang lacks."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from extender.analysis.pod_group_outcome import PodGroupOutcome
from extender.analysis.text_table import format_count
from extender.api.kinds.pod_group import PodGroup
from extender.cache.pod_groups import PodGroupMembers
from extender.ui.page_source import PageSource

MAX_MEMBERS: Final = 500
"""The limits of the placed members and of the pending members on the page."""


@dataclass(frozen=True, slots=True)
class GroupMember:
    """A member of the group.

    Attributes:
        key: `namespace/name`.
        node: the node of a placed member, or the node on which the group would place it; empty if there is none.
        is_placed: whether the member has its node already.
        message: why a pending member is not placed; empty otherwise.
    """

    key: str
    node: str
    is_placed: bool
    message: str = ""


@dataclass(frozen=True, slots=True)
class GroupView:
    """The contents of the page.

    Attributes:
        key: `namespace/name`.
        policy: one sentence about the scheduling policy.
        state: `placed`, `fits` or `waits`.
        headline: one sentence about the state: what the gang lacks.
        message: the message of the group; empty if it can be scheduled.
        topology_keys: the label keys of its topology constraints.
        members: the shown members: those that are placed, then those that are pending, by name.
        omitted_count: the number of members that are not shown.
        shortfall_lines: what a waiting group lacks, and the nearest placements and nodes.
        warnings: a line for each kind that the answer depends on and that was not read.
    """

    key: str
    policy: str
    state: str
    headline: str
    message: str
    topology_keys: tuple[str, ...]
    members: tuple[GroupMember, ...]
    omitted_count: int
    shortfall_lines: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()


def make_group_view(source: PageSource, key: str) -> GroupView | None:
    """Return the contents of the page of a group; None if there is neither the object nor a member.

    Raises:
        InputError: no profile schedules the pending members.
    """
    snapshot = source.get_snapshot()
    group, members = snapshot.get_object(PodGroup, key), snapshot.pod_group(key)
    if group is None and not members.count:
        return None
    first_member = next(iter(members.pending.values()), None)
    report = None if first_member is None else source.explain(first_member.key)[1]
    is_held = report is None or report.explanation.pre_enqueue_status is not None
    outcome = None if report is None or is_held else report.pod_group_outcome
    gang = group.spec.scheduling_policy.gang if group is not None else None
    constraints = group.spec.scheduling_constraints if group is not None else None
    shown_members = _list_members(members, outcome)
    state, headline = _describe_state(members, None if gang is None else gang.min_count, outcome)
    return GroupView(
        key,
        _describe_policy(group),
        state,
        headline,
        "" if outcome is None else outcome.decision.status.message,
        () if constraints is None else tuple(constraint.key for constraint in constraints.topology),
        shown_members,
        members.count - len(shown_members),
        tuple(line.removeprefix("    ") for line in outcome.format_shortfall_lines()) if outcome is not None else (),
        () if report is None else tuple(report.warnings),
    )


def _describe_policy(group: PodGroup | None) -> str:
    if group is None:
        return "There is no PodGroup object of this name."
    gang = group.spec.scheduling_policy.gang
    if gang is None:
        return "The pods are scheduled together, but each may be placed without the others."
    return f"The gang needs {format_count(gang.min_count, 'pod')} at the same time."


def _describe_state(
    members: PodGroupMembers, min_count: int | None, outcome: PodGroupOutcome | None
) -> tuple[str, str]:
    """Return the state and the sentence about it."""
    placed_count = len(members.assigned)
    counts = f"{placed_count} of {format_count(members.count, 'pod')} placed"
    if min_count is not None and members.count < min_count:
        missing = format_count(min_count - members.count, "more pod")
        return "waits", f"{counts}; the gang lacks {missing}, which must be created"
    if not members.pending:
        return "placed", counts
    if outcome is None:
        return "waits", f"{counts}; a PreEnqueue plugin does not allow a pending member"
    if outcome.decision.status.is_success:
        return "fits", f"{counts}; the group can be scheduled now"
    if outcome.decision.waits_for_preemption:
        return "waits", f"{counts}; the group can be scheduled after preemption"
    missing_node_count = outcome.shortfall.missing_count if outcome.shortfall is not None else 0
    return "waits", counts + (
        f"; the gang lacks nodes for {format_count(missing_node_count, 'pod')}" if missing_node_count else ""
    )


def _list_members(members: PodGroupMembers, outcome: PodGroupOutcome | None) -> tuple[GroupMember, ...]:
    placed = sorted((pod.key, pod.node_name) for pod in members.assigned.values())
    results = _get_results(outcome)
    pending = sorted((pod.key, *results.get(uid, ("", ""))) for uid, pod in members.pending.items())
    return (
        *(GroupMember(key, node, is_placed=True) for key, node in placed[:MAX_MEMBERS]),
        *(GroupMember(key, node, is_placed=False, message=message) for key, node, message in pending[:MAX_MEMBERS]),
    )


def _get_results(outcome: PodGroupOutcome | None) -> Mapping[str, tuple[str, str]]:
    """Return the node and the message of each scheduled member, by uid."""
    if outcome is None:
        return {}
    results = {}
    for index, member in enumerate(outcome.decision.members):
        failure = outcome.decision.get_member_failure(index)
        node = member.node_name if failure is None or outcome.decision.is_feasible else ""
        results[member.pod.uid] = (node, "" if failure is None else failure.status.message)
    return results
