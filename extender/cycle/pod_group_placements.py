"""Schedule a pod group on each of several placements and select the best placement.

A placement is a set of nodes, such as those of a zone or a rack. All members must be on nodes of the same placement.
The placements of a child group are parts of the placement of its composite pod group.

Source: pkg/scheduler/schedule_one_podgroup.go, Scheduler.podGroupSchedulingPlacementAlgorithm (1.36),
Scheduler.compositePodGroupSchedulingPlacementAlgorithm (1.37).
"""

from collections.abc import Sequence
from dataclasses import replace

from extender.cache.snapshot import Snapshot
from extender.cycle.pod_group.placement_feasible import schedule_child_groups, schedule_members_while_feasible
from extender.cycle.pod_group_members import (
    ALL_NODES,
    POD_GROUP_UNSCHEDULABLE_TEXT,
    GroupAttempt,
    GroupDecision,
    MemberSteps,
    schedule_members,
)
from extender.framework.normalize import MAX_SCORE
from extender.framework.observer import ObservedEvent
from extender.framework.plugin_runner import PluginError
from extender.framework.pod_group_points import NormalizePlacementScore, Placement, PlacementScore, PodGroupAssignments
from extender.framework.profiles import WeightedPlacementScore
from extender.framework.status import Code, Status, error_status, unschedulable_status

NO_FEASIBLE_PLACEMENTS = "no feasible placements found"


def schedule_by_placement(
    attempt: GroupAttempt, snapshot: Snapshot, parent_placement: Placement = ALL_NODES
) -> MemberSteps[GroupDecision]:
    """Schedule the members on each placement in *parent_placement* and return the best decision.

    Ties are broken at random.
    """
    placements = generate_placements(attempt, snapshot, parent_placement)
    if isinstance(placements, Status):
        return GroupDecision(placements)
    runner, profile_name = attempt.runtime.runner, attempt.profile.scheduler_name
    is_composite = attempt.group.is_composite
    if not is_composite:
        runner.observe_event(ObservedEvent.PLACEMENTS_GENERATED, (profile_name,), len(placements))
    decisions: list[GroupDecision] = []
    for placement in placements:
        start_time = runner.start_timer()
        decision = yield from schedule_in_placement(attempt, snapshot, placement)
        if decision.status.code is Code.ERROR:
            return decision
        labels = ("feasible" if decision.is_feasible else "infeasible", profile_name)
        if not is_composite:
            runner.observe_duration(ObservedEvent.PLACEMENT_EVALUATION, labels, start_time)
        decisions.append(decision)
    feasible_decisions = [decision for decision in decisions if decision.is_feasible]
    if not feasible_decisions:
        status = _make_no_placement_status(attempt, decisions)
        return GroupDecision(status, decisions[0].members, children=decisions[0].children)
    return (
        feasible_decisions[0]
        if len(feasible_decisions) == 1
        else _select_placement(attempt, snapshot, feasible_decisions)
    )


def schedule_in_placement(
    attempt: GroupAttempt, snapshot: Snapshot, placement: Placement = ALL_NODES
) -> MemberSteps[GroupDecision]:
    """Schedule the members on the nodes of *placement*, by the rules of the profile's release."""
    if attempt.group.is_composite:
        return (yield from schedule_child_groups(attempt, snapshot, placement, schedule_by_placement))
    uses_placement_feasible = attempt.profile.release.uses_placement_feasible
    schedule = schedule_members_while_feasible if uses_placement_feasible else schedule_members
    return (yield from schedule(attempt, snapshot, placement))


def _make_no_placement_status(attempt: GroupAttempt, decisions: Sequence[GroupDecision]) -> Status:
    """Return the status of a group that no placement can schedule.

    Since 1.37 the message starts with `POD_GROUP_UNSCHEDULABLE_TEXT`. If the first placement has this text too, the
    other texts of the placement are omitted.
    """
    first_status, prefix = decisions[0].status, f"0/{len(decisions)} placements are available"
    if not attempt.profile.release.uses_placement_feasible:
        return unschedulable_status(f"{prefix}, first placement status: {first_status.message}")
    is_group_text = first_status.reasons[:1] == (POD_GROUP_UNSCHEDULABLE_TEXT,)
    detail = POD_GROUP_UNSCHEDULABLE_TEXT if is_group_text else first_status.message
    return unschedulable_status(POD_GROUP_UNSCHEDULABLE_TEXT, f"{prefix}, first placement status: {detail}")


def generate_placements(
    attempt: GroupAttempt, snapshot: Snapshot, parent_placement: Placement = ALL_NODES
) -> tuple[Placement, ...] | Status:
    """Return the placements of the first PlacementGenerate plugin in *parent_placement*, or a rejection.

    Without a plugin, the only placement has all nodes of *parent_placement*.

    Source: pkg/scheduler/framework/runtime/framework.go, frameworkImpl.RunPlacementGeneratePlugins (1.36).
    """
    runner = attempt.runtime.runner
    start_time = runner.start_timer()
    result = _run_placement_generate_plugin(attempt, snapshot, parent_placement)
    status = result if isinstance(result, Status) else None
    runner.observe_extension_point(attempt.profile.scheduler_name, "PlacementGenerate", status, start_time)
    return result


def _run_placement_generate_plugin(
    attempt: GroupAttempt, snapshot: Snapshot, parent_placement: Placement
) -> tuple[Placement, ...] | Status:
    if not attempt.profile.placement_generate_plugins:
        return (replace(parent_placement, name=""),)
    plugin, call = attempt.profile.placement_generate_plugins[0], attempt.runtime.runner.call
    try:
        placements = call(plugin, "PlacementGenerate", plugin.generate_placements, attempt.group, snapshot)
    except PluginError as exception:
        return exception.status
    if isinstance(placements, Status):
        return placements.with_plugin(plugin.name)
    if parent_placement.node_names is not None:
        placements = _restrict_placements(placements, parent_placement.node_names, snapshot)
    return placements or unschedulable_status(NO_FEASIBLE_PLACEMENTS).with_plugin(plugin.name)


def _restrict_placements(
    placements: Sequence[Placement], names: frozenset[str], snapshot: Snapshot
) -> tuple[Placement, ...]:
    """Return the parts of *placements* with the nodes *names*, without empty ones, ordered by their first nodes."""
    rows_and_parts = [
        (int(snapshot.rows(list(node_names)).min()), replace(placement, node_names=node_names))
        for placement in placements
        if (node_names := names if placement.node_names is None else placement.node_names & names)
    ]
    return tuple(part for _, part in sorted(rows_and_parts, key=lambda row_and_part: row_and_part[0]))


def _select_placement(
    attempt: GroupAttempt, snapshot: Snapshot, feasible_decisions: Sequence[GroupDecision]
) -> GroupDecision:
    assignments_by_placement = [
        PodGroupAssignments(
            decision.placement,
            {member.pod.uid: member.node_name for member in members if member.node_name},
            tuple(member.pod for member in members if member.node_name),
        )
        for decision in feasible_decisions
        for members in (decision.scheduled_members if attempt.group.is_composite else decision.members,)
    ]
    totals = _run_placement_score_plugins(attempt, snapshot, assignments_by_placement)
    if isinstance(totals, Status):
        return GroupDecision(totals)
    best_decisions = [
        decision for decision, total in zip(feasible_decisions, totals, strict=True) if total == max(totals)
    ]
    return best_decisions[0] if len(best_decisions) == 1 else best_decisions[attempt.rng.randrange(len(best_decisions))]


def _run_placement_score_plugins(
    attempt: GroupAttempt, snapshot: Snapshot, assignments_by_placement: Sequence[PodGroupAssignments]
) -> list[int] | Status:
    """Return the weighted sum of the scores of each placement, or the error of a plugin.

    Source: pkg/scheduler/framework/runtime/framework.go, frameworkImpl.RunPlacementScorePlugins (1.36).
    """
    runner, profile = attempt.runtime.runner, attempt.profile
    start_time = runner.start_timer()
    totals, error = [0] * len(assignments_by_placement), None
    for weighted_plugin in profile.placement_score_plugins:
        scores = _score_placements(weighted_plugin, attempt, snapshot, assignments_by_placement)
        if isinstance(scores, Status):
            error = scores
            break
        totals = [total + score * weighted_plugin.weight for total, score in zip(totals, scores, strict=True)]
    runner.observe_extension_point(profile.scheduler_name, "PlacementScore", error, start_time)
    return totals if error is None else error


def _score_placements(
    weighted_plugin: WeightedPlacementScore,
    attempt: GroupAttempt,
    snapshot: Snapshot,
    assignments_by_placement: Sequence[PodGroupAssignments],
) -> tuple[int, ...] | Status:
    plugin = weighted_plugin.plugin
    call, raw_scores = attempt.runtime.runner.call, list[int]()
    try:
        for assignments in assignments_by_placement:
            score = call(plugin, "PlacementScore", plugin.score_placement, attempt.group, snapshot, assignments)
            if isinstance(score, Status):
                return _make_plugin_error("running PlacementScore plugins", plugin.name, score.message)
            raw_scores.append(score)
    except PluginError as exception:
        return _make_plugin_error("running PlacementScore plugins", plugin.name, exception.detail)
    scores = _normalize_scores(plugin, attempt, tuple(raw_scores))
    if isinstance(scores, Status):
        return _make_plugin_error(
            "running NormalizePlacementScore on PlacementScore plugins", plugin.name, scores.message
        )
    invalid_score = next((score for score in scores if not 0 <= score <= MAX_SCORE), None)
    if invalid_score is None:
        return scores
    message = f'plugin "{plugin.name}" returns an invalid score {invalid_score}'
    return error_status(
        "applying score defaultWeights on PlacementScore plugins: "
        f"{message}, it should in the range of [0, {MAX_SCORE}] after normalizing"
    )


def _normalize_scores(
    plugin: PlacementScore, attempt: GroupAttempt, raw_scores: tuple[int, ...]
) -> tuple[int, ...] | Status:
    if not isinstance(plugin, NormalizePlacementScore):
        return raw_scores
    try:
        return attempt.runtime.runner.call(
            plugin, "NormalizePlacementScore", plugin.normalize_placement_score, attempt.group, raw_scores
        )
    except PluginError as exception:
        return error_status(exception.detail)


def _make_plugin_error(action: str, plugin: str, detail: str) -> Status:
    return error_status(f'{action}: plugin "{plugin}" failed with: {detail}')
