"""Schedule a pod group on each of several placements and select the best.

A placement is a set of nodes, such as a zone or a rack, that all members must share.

Source: pkg/scheduler/schedule_one_podgroup.go, Scheduler.podGroupSchedulingPlacementAlgorithm (1.36).
"""

from collections.abc import Sequence

from extender.cache.snapshot import Snapshot
from extender.cycle.pod_group_members import ALL_NODES, GroupAttempt, GroupDecision, MemberSteps, schedule_members
from extender.framework.normalize import MAX_SCORE
from extender.framework.plugin_runner import PluginError
from extender.framework.pod_group_points import NormalizePlacementScore, Placement, PlacementScore, PodGroupAssignments
from extender.framework.profiles import WeightedPlacementScore
from extender.framework.status import Code, Status, error, unschedulable

NO_FEASIBLE_PLACEMENTS = "no feasible placements found"


def schedule_by_placement(attempt: GroupAttempt, snapshot: Snapshot) -> MemberSteps[GroupDecision]:
    """Schedule the members on each placement and return the best decision. Ties are broken at random."""
    placements = _generate_placements(attempt, snapshot)
    if isinstance(placements, Status):
        return GroupDecision(placements)
    decisions: list[GroupDecision] = []
    for placement in placements:
        decision = yield from schedule_members(attempt, snapshot, placement)
        if decision.status.code is Code.ERROR:
            return decision
        decisions.append(decision)
    feasible_decisions = [decision for decision in decisions if decision.is_feasible]
    if not feasible_decisions:
        first_message = decisions[0].status.message
        message = f"0/{len(placements)} placements are available, first placement status: {first_message}"
        return GroupDecision(unschedulable(message), decisions[0].members)
    return (
        feasible_decisions[0]
        if len(feasible_decisions) == 1
        else _select_placement(attempt, snapshot, feasible_decisions)
    )


def _generate_placements(attempt: GroupAttempt, snapshot: Snapshot) -> tuple[Placement, ...] | Status:
    if not attempt.profile.placement_generate_plugins:
        return (ALL_NODES,)
    plugin = attempt.profile.placement_generate_plugins[0]
    runner = attempt.runtime.runner
    try:
        placements = runner.call(plugin, "PlacementGenerate", plugin.generate_placements, attempt.group, snapshot)
    except PluginError as exception:
        return exception.status
    if isinstance(placements, Status):
        return placements.with_plugin(plugin.name)
    return placements or unschedulable(NO_FEASIBLE_PLACEMENTS).with_plugin(plugin.name)


def _select_placement(
    attempt: GroupAttempt, snapshot: Snapshot, feasible_decisions: Sequence[GroupDecision]
) -> GroupDecision:
    assignments_by_placement = [
        PodGroupAssignments(
            decision.placement, {member.pod.uid: member.node_name for member in decision.members if member.node_name}
        )
        for decision in feasible_decisions
    ]
    totals = [0] * len(feasible_decisions)
    for weighted_plugin in attempt.profile.placement_score_plugins:
        scores = _score_placements(weighted_plugin, attempt, snapshot, assignments_by_placement)
        if isinstance(scores, Status):
            return GroupDecision(scores)
        totals = [total + score * weighted_plugin.weight for total, score in zip(totals, scores, strict=True)]
    best_decisions = [
        decision for decision, total in zip(feasible_decisions, totals, strict=True) if total == max(totals)
    ]
    return best_decisions[0] if len(best_decisions) == 1 else best_decisions[attempt.rng.randrange(len(best_decisions))]


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
    return error(
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
        return error(exception.detail)


def _make_plugin_error(action: str, plugin: str, detail: str) -> Status:
    return error(f'{action}: plugin "{plugin}" failed with: {detail}')
