"""One scheduling cycle for one pod: feasible, rank, pick; and what PostFilter says when there is nothing to pick.

`decide` is all of it in one go. Its steps stand on their own too, for a cycle that asks others between them.

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
from extender.decide.rank import Ranking, rank
from extender.decide.rescue import Attempt, Rescue, rescue
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
    found, evaluated = look(pod, cluster, profile, engine, search, within=within)
    if not found.any:
        without_asking = hopeless(found, profile)
        if without_asking is not None:
            return without_asking
        return unplaced(found, rescue(pod, cluster, Attempt(found, profile, engine, chance)))
    if found.count == 1:
        return only_one(cluster, found, evaluated)
    return best_of(cluster, found, rank(pod, cluster, profile, engine, found.feasible, found.before), evaluated, chance)


def look(
    pod: PodQuery,
    cluster: Snapshot,
    profile: Profile,
    engine: Engine,
    search: Search,
    *,
    within: frozenset[str] | None = None,
    reasons: bool = False,
    anywhere: bool = False,
) -> tuple[Feasibility, int]:
    """The nodes to choose from, and how many nodes were looked at for that.

    If the node that *pod* is nominated for takes it, there is no other to choose from. Source: A097.

    Args:
        pod: asks for a node.
        cluster: as it is.
        profile: of the pod's scheduler name.
        engine: calls the plugins.
        search: where a search that stops early goes on.
        within: names of the only nodes that may be chosen; None: all.
        reasons: spell out refusals even if some node is feasible.
        anywhere: pass the nomination over.
    """
    found = feasible(pod, cluster, profile, engine, within=within, reasons=reasons)
    nominated = pod.pod.status.nominated_node_name
    if nominated and found.any and not anywhere:
        row = cluster.row(nominated)
        if row is not None and found.feasible[row]:
            alone = np.zeros(found.size, dtype=np.bool_)
            alone[row] = True
            return found.among(alone), 1
    if profile.percentage_of_nodes_to_score and found.any:
        return _sampled(found, cluster, profile, search)
    return found, found.size - found.outside


def only_one(cluster: Snapshot, found: Feasibility, evaluated: int) -> Placed:
    """The decision for the only feasible node, which is taken unrated. Source: A100."""
    only = int(np.flatnonzero(found.feasible)[0])
    return Placed(cluster.names[only], 1, evaluated, found.before.notes)


def best_of(cluster: Snapshot, found: Feasibility, ranking: Ranking, evaluated: int, chance: Random) -> Decision:
    """The decision for several feasible nodes that were rated."""
    if ranking.error is not None:
        return Unplaced(ranking.error, ranking.error.message, found, nominated="")
    node = cluster.names[pick(ranking, chance)]
    return Placed(node, found.count, evaluated, found.before.notes, ranking)


def _sampled(found: Feasibility, cluster: Snapshot, profile: Profile, search: Search) -> tuple[Feasibility, int]:
    asked = np.ones(found.size, dtype=np.bool_)
    if found.before.nodes is not None:
        asked[:] = False
        asked[[row for name in found.before.nodes if (row := cluster.row(name)) is not None]] = True
    enough = nodes_to_find(int(asked.sum()), profile.percentage_of_nodes_to_score or 100)
    if not profile.scores and not search.compares:
        enough = 1  # nothing to compare nodes by, so the first will do: A087
    chosen, looked_at = search.limited(cluster, asked, found.feasible, enough)
    return replace(found.among(looked_at), feasible=chosen), int(looked_at.sum())


def hopeless(found: Feasibility, profile: Profile) -> Unplaced | None:
    """The decision if no node is feasible and PostFilter is not to be asked; None if it is."""
    if found.error is not None:
        return Unplaced(found.error, found.message(), found, nominated="")
    if found.size == 0:
        return Unplaced(Status(Code.UNRESOLVABLE, (NO_NODES,)), NO_NODES, found, nominated="")
    if not profile.post_filters:
        status = Status(Code.UNSCHEDULABLE, (found.message(),))
        return Unplaced(status, found.message(), found, found.rejectors, nominated="")
    return None


def unplaced(found: Feasibility, rescued: Rescue) -> Unplaced:
    """The decision if no node is feasible and PostFilter came to *rescued*."""
    message = found.message(rescued.status.message)
    return Unplaced(
        Status(Code.UNSCHEDULABLE, (message,)), message, found, found.rejectors, rescued.nominated, rescued.details
    )
