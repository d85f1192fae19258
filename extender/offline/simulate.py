"""All waiting pods placed one after another, on a copy of a recorded cluster: who gets where, who does not, and why."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from random import Random
from typing import Any

from extender.cluster.snapshot import Snapshot
from extender.cluster.state import ClusterState
from extender.decide.admission import held_back
from extender.decide.committing import reserve
from extender.decide.cycle import decide
from extender.decide.decision import Placed, Unplaced
from extender.decide.engine import Engine
from extender.decide.sampling import Search
from extender.framework.points import Queued
from extender.framework.profiles import Profile
from extender.framework.verdict import Status
from extender.objects.pod import Pod
from extender.offline.permits import Permits
from extender.offline.usage import Usage, usage
from extender.offline.waiting import nominate_waiting, waiting

Progress = Callable[[int, int], None]
"""Told after each pod: how many are done, and of how many."""


@dataclass(frozen=True, slots=True)
class Placement:
    """What became of one pod.

    Attributes:
        pod: `namespace/name`.
        node: where it was placed; empty if nowhere.
        reason: why it was not placed, without numbers, so that pods can be grouped by it; empty if it was.
        message: the same in kube-scheduler's words; empty if it was placed.
    """

    pod: str
    node: str = ""
    reason: str = ""
    message: str = ""


@dataclass(frozen=True, slots=True)
class Simulation:
    """What became of all.

    Attributes:
        placements: every pod that waited, in the order of the queue.
        before, after: how full the cluster was, and is.
    """

    placements: tuple[Placement, ...]
    before: Usage
    after: Usage

    @property
    def placed(self) -> list[Placement]:
        """The pods that got a node."""
        return [each for each in self.placements if each.node]

    def unplaced(self) -> dict[str, list[Placement]]:
        """The other pods by reason, the most frequent reason first."""
        groups: dict[str, list[Placement]] = {}
        for each in self.placements:
            if not each.node:
                groups.setdefault(each.reason, []).append(each)
        return dict(sorted(groups.items(), key=lambda group: (-len(group[1]), group[0])))


def simulate(
    state: ClusterState,
    profiles: Mapping[str, Profile],
    engine: Engine,
    *,
    seed: int = 0,
    progress: Progress | None = None,
) -> Simulation:
    """Places the pods that wait for one of *profiles*.

    Each pod has one turn, in the order of the queue: that of the profile's QueueSort plugin, then file order. What is
    placed counts for those that follow, as do pods that wait on Permit until all had their turns. Nothing is evicted.

    Args:
        state: the cluster; it is changed, so hand in one of your own.
        profiles: by scheduler name.
        engine: calls the plugins.
        seed: of the choice between equally good nodes; the same seed gives the same placements.
        progress: told after each pod.
    """
    before = usage(state.snapshot())
    for profile in profiles.values():
        nominate_waiting(state, profile, engine)
    chance, search = Random(seed), Search()  # noqa: S311  reproducible on purpose
    queue = _queue(state, profiles)
    placements: list[Placement] = []
    permits = Permits(state, engine)
    for pod in queue:
        profile = profiles[pod.spec.scheduler_name]
        placement, notes = _turn(pod, state.snapshot(), profile, engine, chance=chance, search=search)
        if placement.node:
            state.assume(pod, placement.node)
            refused = permits.ask(len(placements), pod, placement.node, profile, notes)
            if refused is not None:
                placement = Placement(pod.key, reason=refused.reason, message=refused.message)
        placements.append(placement)
        if progress is not None:
            progress(len(placements), len(queue))
    for turn, refused in permits.run_out():
        placements[turn] = Placement(placements[turn].pod, reason=refused.reason, message=refused.message)
    return Simulation(tuple(placements), before, usage(state.snapshot()))


def _queue(state: ClusterState, profiles: Mapping[str, Profile]) -> Sequence[Pod]:
    snapshot = state.snapshot()

    def key(pod: Pod) -> tuple[float, ...]:
        return profiles[pod.spec.scheduler_name].queue_sort.sort_key(Queued(snapshot.query(pod), 0.0))

    return sorted(waiting(state, profiles), key=key)


def _turn(
    pod: Pod, cluster: Snapshot, profile: Profile, engine: Engine, *, chance: Random, search: Search
) -> tuple[Placement, dict[str, Any]]:
    """What becomes of *pod*, and PreFilter's notes if it gets a node."""
    query = cluster.query(pod)
    held = held_back(query, cluster, profile, engine)
    if held is not None:
        return Placement(pod.key, reason=_held(held), message=held.message), {}
    decision = decide(query, cluster, profile, engine, chance, search)
    if isinstance(decision, Placed):
        # volumes and devices set aside for this pod are gone for those that follow
        status = reserve(query, decision.node, cluster, profile, engine, decision.notes)
        if status is None:
            return Placement(pod.key, decision.node), decision.notes
        refusal = f"0/1 nodes are available: 1 {status.message}."
        return Placement(pod.key, reason=status.message, message=refusal), {}
    return Placement(pod.key, reason=_reason(decision), message=decision.message), {}


def _held(status: Status) -> str:
    return f"held back by {status.plugin}: {status.message}"


def _reason(decision: Unplaced) -> str:
    """The reasons without their numbers of nodes, sorted."""
    attempt = decision.attempt
    if attempt.error is not None or attempt.size == 0:
        return decision.message
    if attempt.before.status is not None and attempt.before.status.reasons:
        return attempt.before.status.message
    return ", ".join(sorted(attempt.counted())) or decision.message
