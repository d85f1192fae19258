"""A pod group tried on several sets of nodes, of which the best that can take it is chosen. Source: A152.

For groups that are to stand together: in one zone, in one rack.
"""

from collections.abc import Sequence
from random import Random

from extender.cluster.pods import PodQuery
from extender.cluster.snapshot import Snapshot
from extender.decide.engine import Engine
from extender.decide.podgroup import GroupDecision, decide_group
from extender.decide.sampling import Search
from extender.framework.normalize import MAX_SCORE
from extender.framework.points import GroupQuery, NormalizePlacementScore, Placement, PlacementScore, Proposal
from extender.framework.profiles import Profile, WeightedPlacementScore
from extender.framework.runner import PluginError
from extender.framework.verdict import Code, Status, error, unschedulable

NONE_FOUND = "no feasible placements found"


def decide_placed(
    group: GroupQuery,
    pods: Sequence[PodQuery],
    cluster: Snapshot,
    profile: Profile,
    engine: Engine,
    chance: Random,
    search: Search,
) -> GroupDecision:
    """Where the members of *group* go, each placement tried on its own; ties are broken by *chance*.

    Args:
        group: the group.
        pods: its members that wait, in the order of their turns.
        cluster: as it is.
        profile: of their scheduler name.
        engine: calls the plugins.
        chance: breaks ties, of nodes and of placements.
        search: where a search that stops early goes on.
    """
    placements = _placements(group, cluster, profile, engine)
    if isinstance(placements, Status):
        return GroupDecision(placements)
    found: list[GroupDecision] = []
    first: GroupDecision | None = None
    for placement in placements:
        decision = decide_group(pods, cluster, profile, engine, chance, search, placement)
        if decision.status.code is Code.ERROR:
            return decision
        first = first or decision
        if decision.status.ok or decision.waits_for_preemption:
            found.append(decision)
    if not found:
        why = first.status.message if first is not None else ""
        said = f"0/{len(placements)} placements are available, first placement status: {why}"
        return GroupDecision(unschedulable(said), first.members if first is not None else ())
    return found[0] if len(found) == 1 else _best(group, cluster, profile, engine, chance, found)


def _placements(
    group: GroupQuery, cluster: Snapshot, profile: Profile, engine: Engine
) -> tuple[Placement, ...] | Status:
    if not profile.placement_generates:
        return (Placement(),)
    plugin = profile.placement_generates[0]
    try:
        answer = engine.run.call(plugin, "PlacementGenerate", plugin.placement_generate, group, cluster)
    except PluginError as wrong:
        return wrong.status
    if isinstance(answer, Status):
        return answer.by(plugin.name)
    return answer or unschedulable(NONE_FOUND).by(plugin.name)


def _best(
    group: GroupQuery,
    cluster: Snapshot,
    profile: Profile,
    engine: Engine,
    chance: Random,
    found: Sequence[GroupDecision],
) -> GroupDecision:
    proposals = [
        Proposal(decision.placement, {member.pod.uid: member.node for member in decision.members if member.node})
        for decision in found
    ]
    totals = [0] * len(found)
    for weighted in profile.placement_scores:
        scores = _scores(weighted, group, cluster, engine, proposals)
        if isinstance(scores, Status):
            return GroupDecision(scores)
        totals = [total + score * weighted.weight for total, score in zip(totals, scores, strict=True)]
    best = [decision for decision, total in zip(found, totals, strict=True) if total == max(totals)]
    return best[0] if len(best) == 1 else best[chance.randrange(len(best))]


def _scores(
    weighted: WeightedPlacementScore,
    group: GroupQuery,
    cluster: Snapshot,
    engine: Engine,
    proposals: Sequence[Proposal],
) -> tuple[int, ...] | Status:
    plugin = weighted.plugin
    raw: list[int] = []
    try:
        for proposal in proposals:
            score = engine.run.call(plugin, "PlacementScore", plugin.placement_score, group, cluster, proposal)
            if isinstance(score, Status):
                return _failed("running PlacementScore plugins", plugin.name, score.message)
            raw.append(score)
    except PluginError as wrong:
        return _failed("running PlacementScore plugins", plugin.name, wrong.detail)
    scores = _normalized(plugin, group, engine, tuple(raw))
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


def _normalized(
    plugin: PlacementScore, group: GroupQuery, engine: Engine, raw: tuple[int, ...]
) -> tuple[int, ...] | Status:
    if not isinstance(plugin, NormalizePlacementScore):
        return raw
    try:
        return engine.run.call(plugin, "NormalizePlacementScore", plugin.normalize_placement, group, raw)
    except PluginError as wrong:
        return error(wrong.detail)


def _failed(place: str, plugin: str, why: str) -> Status:
    return error(f'{place}: plugin "{plugin}" failed with: {why}')
