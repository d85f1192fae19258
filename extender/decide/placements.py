"""A pod group tried on several sets of nodes, of which the best that can take it is chosen. Source: A152.

For groups that are to stand together: in one zone, in one rack.
"""

from collections.abc import Sequence

from extender.cluster.snapshot import Snapshot
from extender.decide.podgroup import ALL_NODES, GroupAttempt, GroupDecision, Steps, within
from extender.framework.group_points import NormalizePlacementScore, Placement, PlacementScore, Proposal
from extender.framework.normalize import MAX_SCORE
from extender.framework.profiles import WeightedPlacementScore
from extender.framework.runner import PluginError
from extender.framework.verdict import Code, Status, error, unschedulable

NONE_FOUND = "no feasible placements found"


def placed(attempt: GroupAttempt, cluster: Snapshot) -> Steps[GroupDecision]:
    """Where the members go, each placement tried on its own; ties are broken by chance."""
    placements = _placements(attempt, cluster)
    if isinstance(placements, Status):
        return GroupDecision(placements)
    tried: list[GroupDecision] = []
    for placement in placements:
        decision = yield from within(attempt, cluster, placement)
        if decision.status.code is Code.ERROR:
            return decision
        tried.append(decision)
    found = [decision for decision in tried if decision.feasible]
    if not found:
        why = f"first placement status: {tried[0].status.message}"
        said = f"0/{len(placements)} placements are available, {why}"
        return GroupDecision(unschedulable(said), tried[0].members)
    return found[0] if len(found) == 1 else _best(attempt, cluster, found)


def _placements(attempt: GroupAttempt, cluster: Snapshot) -> tuple[Placement, ...] | Status:
    if not attempt.profile.placement_generates:
        return (ALL_NODES,)
    plugin = attempt.profile.placement_generates[0]
    run = attempt.engine.run
    try:
        answer = run.call(plugin, "PlacementGenerate", plugin.placement_generate, attempt.group, cluster)
    except PluginError as wrong:
        return wrong.status
    if isinstance(answer, Status):
        return answer.by(plugin.name)
    return answer or unschedulable(NONE_FOUND).by(plugin.name)


def _best(attempt: GroupAttempt, cluster: Snapshot, found: Sequence[GroupDecision]) -> GroupDecision:
    proposals = [
        Proposal(decision.placement, {member.pod.uid: member.node for member in decision.members if member.node})
        for decision in found
    ]
    totals = [0] * len(found)
    for weighted in attempt.profile.placement_scores:
        scores = _scores(weighted, attempt, cluster, proposals)
        if isinstance(scores, Status):
            return GroupDecision(scores)
        totals = [total + score * weighted.weight for total, score in zip(totals, scores, strict=True)]
    best = [decision for decision, total in zip(found, totals, strict=True) if total == max(totals)]
    return best[0] if len(best) == 1 else best[attempt.chance.randrange(len(best))]


def _scores(
    weighted: WeightedPlacementScore, attempt: GroupAttempt, cluster: Snapshot, proposals: Sequence[Proposal]
) -> tuple[int, ...] | Status:
    plugin = weighted.plugin
    call, raw = attempt.engine.run.call, list[int]()
    try:
        for proposal in proposals:
            score = call(plugin, "PlacementScore", plugin.placement_score, attempt.group, cluster, proposal)
            if isinstance(score, Status):
                return _failed("running PlacementScore plugins", plugin.name, score.message)
            raw.append(score)
    except PluginError as wrong:
        return _failed("running PlacementScore plugins", plugin.name, wrong.detail)
    scores = _normalized(plugin, attempt, tuple(raw))
    if isinstance(scores, Status):
        return _failed("running NormalizePlacementScore on PlacementScore plugins", plugin.name, scores.message)
    wrong_score = next((score for score in scores if not 0 <= score <= MAX_SCORE), None)
    if wrong_score is None:
        return scores
    said = f'plugin "{plugin.name}" returns an invalid score {wrong_score}'
    return error(
        "applying score defaultWeights on PlacementScore plugins: "
        f"{said}, it should in the range of [0, {MAX_SCORE}] after normalizing"
    )


def _normalized(plugin: PlacementScore, attempt: GroupAttempt, raw: tuple[int, ...]) -> tuple[int, ...] | Status:
    if not isinstance(plugin, NormalizePlacementScore):
        return raw
    try:
        return attempt.engine.run.call(
            plugin, "NormalizePlacementScore", plugin.normalize_placement, attempt.group, raw
        )
    except PluginError as wrong:
        return error(wrong.detail)


def _failed(place: str, plugin: str, why: str) -> Status:
    return error(f'{place}: plugin "{plugin}" failed with: {why}')
