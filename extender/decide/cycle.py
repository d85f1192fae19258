"""One scheduling cycle for one pod: feasible, rank, pick; and what PostFilter says when there is nothing to pick.

Source: A016 to A021.
"""

from dataclasses import replace
from random import Random

import numpy as np

from extender.cluster.pods import PodQuery
from extender.cluster.snapshot import Snapshot
from extender.decide.decision import Decision, Placed, Unplaced
from extender.decide.engine import Engine
from extender.decide.feasible import NO_NODES, Feasibility, feasible
from extender.decide.pick import pick
from extender.decide.rank import rank
from extender.decide.rescue import Attempt, rescue
from extender.decide.sampling import Search, nodes_to_find
from extender.framework.profiles import Profile
from extender.framework.verdict import Code, Status


def decide(
    pod: PodQuery,
    cluster: Snapshot,
    profile: Profile,
    engine: Engine,
    chance: Random,
    search: Search,
    *,
    within: frozenset[str] | None = None,
) -> Decision:
    """Where *pod* goes, or why it goes nowhere.

    Args:
        pod: asks for a node.
        cluster: as it is.
        profile: of the pod's scheduler name.
        engine: calls the plugins.
        chance: breaks ties.
        search: where a search that stops early goes on; used only if the profile sets percentageOfNodesToScore.
        within: names of the only nodes that may be chosen; None: all.
    """
    found = feasible(pod, cluster, profile, engine, within=within)
    if not found.any:
        return _unplaced(pod, cluster, Attempt(found, profile, engine, chance))
    evaluated = found.size - found.outside
    if profile.percentage_of_nodes_to_score:
        found, evaluated = _sampled(found, cluster, profile, search)
    count = int(found.feasible.sum())
    if count == 1:
        only = int(np.flatnonzero(found.feasible)[0])
        return Placed(cluster.names[only], 1, evaluated, found.before.notes)
    ranking = rank(pod, cluster, profile, engine, found.feasible)
    if ranking.error is not None:
        return Unplaced(ranking.error, ranking.error.message, found, nominated="")
    node = cluster.names[pick(ranking.best(), chance)]
    return Placed(node, count, evaluated, found.before.notes, ranking)


def _sampled(found: Feasibility, cluster: Snapshot, profile: Profile, search: Search) -> tuple[Feasibility, int]:
    asked = np.ones(found.size, dtype=np.bool_)
    if found.before.nodes is not None:
        asked[:] = False
        asked[[row for name in found.before.nodes if (row := cluster.row(name)) is not None]] = True
    enough = nodes_to_find(int(asked.sum()), profile.percentage_of_nodes_to_score or 100)
    if not profile.scores:
        enough = 1  # nothing to compare nodes by, so the first will do: A087
    chosen, looked_at = search.limited(cluster, asked, found.feasible, enough)
    return replace(found, feasible=chosen), int(looked_at.sum())


def _unplaced(pod: PodQuery, cluster: Snapshot, attempt: Attempt) -> Unplaced:
    found = attempt.feasibility
    if found.error is not None:
        return Unplaced(found.error, found.message(), found, nominated="")
    if found.size == 0:
        return Unplaced(Status(Code.UNRESOLVABLE, (NO_NODES,)), NO_NODES, found, nominated="")
    status = Status(Code.UNSCHEDULABLE, (found.message(),))
    if not attempt.profile.post_filters:
        return Unplaced(status, found.message(), found, found.rejectors, nominated="")
    rescued = rescue(pod, cluster, attempt)
    message = found.message(rescued.status.message)
    return Unplaced(
        Status(Code.UNSCHEDULABLE, (message,)), message, found, found.rejectors, rescued.nominated, rescued.details
    )
