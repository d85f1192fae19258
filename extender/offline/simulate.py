"""All waiting pods placed one after another, on a copy of a recorded cluster: who gets where, who does not, and why."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from random import Random

from extender.cluster.groups import group_key
from extender.cluster.state import ClusterState
from extender.decide.admission import held_back
from extender.decide.committing import assumed, reserve
from extender.decide.cycle import decide
from extender.decide.decision import Placed, Unplaced
from extender.decide.engine import Engine
from extender.decide.groupcycle import decide_group, turn_key
from extender.decide.podgroup import GroupDecision
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

    Each pod has one turn, in the order of the queue: that of the profile's QueueSort plugin, then file order. Where the
    gates have pod groups scheduled as such, all members have theirs with the first. What is placed counts for those
    that follow, as do pods that wait on Permit until all had their turns. Nothing is evicted.

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
    run = _Run(state, profiles, engine, Random(seed))  # noqa: S311  reproducible on purpose
    for turn in range(len(run.queue)):
        run.turn(turn)
        if progress is not None:
            progress(turn + 1, len(run.queue))
    return Simulation(run.end(), before, usage(state.snapshot()))


class _Run:
    """A simulation in progress.

    Attributes:
        queue: the pods in the order of the queue; that of a pod is its turn.
    """

    def __init__(self, state: ClusterState, profiles: Mapping[str, Profile], engine: Engine, chance: Random) -> None:
        self._state, self._profiles, self._engine, self._chance = state, profiles, engine, chance
        self._search = Search()
        self._permits = Permits(state, engine)
        self._placements: dict[int, Placement] = {}
        self.queue = self._in_order()

    def _in_order(self) -> Sequence[Pod]:
        snapshot, profiles = self._state.snapshot(), self._profiles

        def key(pod: Pod) -> tuple[float, ...]:
            return profiles[pod.spec.scheduler_name].queue_sort.sort_key(Queued(snapshot.query(pod), 0.0))

        return sorted(waiting(self._state, profiles), key=key)

    def turn(self, turn: int) -> None:
        """What becomes of that pod, and of its group; nothing is done if it had its turn with its group."""
        pod = self.queue[turn]
        if turn in self._placements or self._is_held(turn):
            return
        profile = self._profiles[pod.spec.scheduler_name]
        if profile.groups is not None and group_key(pod) is not None:
            self._group(turn, profile)
            return
        cluster = self._state.snapshot()
        decision = decide(cluster.query(pod), cluster, profile, self._engine, self._chance, self._search)
        del cluster  # else what follows would have to copy the tables
        if isinstance(decision, Placed):
            self._place(turn, profile, decision)
        else:
            self._unplaced(turn, _reason(decision), decision.message)

    def _is_held(self, turn: int) -> bool:
        pod, cluster = self.queue[turn], self._state.snapshot()
        held = held_back(cluster.query(pod), cluster, self._profiles[pod.spec.scheduler_name], self._engine)
        if held is not None:
            self._unplaced(turn, _held(held), held.message)
        return held is not None

    def _unplaced(self, turn: int, reason: str, message: str) -> None:
        self._placements[turn] = Placement(self.queue[turn].key, reason=reason, message=message)

    def _place(self, turn: int, profile: Profile, decision: Placed) -> None:
        """The pod goes to its node, if all it needs can be set aside there and Permit lets it."""
        pod, node, cluster = self.queue[turn], decision.node, self._state.snapshot()
        # volumes and devices set aside for this pod are gone for those that follow
        status = reserve(cluster.query(pod), node, cluster, profile, self._engine, decision.notes)
        if status is not None:
            self._unplaced(turn, status.message, f"0/1 nodes are available: 1 {status.message}.")
            return
        del cluster  # else what follows would have to copy the tables
        self._state.assume(assumed(pod, node, profile, decision.notes), node)
        refused = self._permits.ask(turn, pod, node, profile, decision.notes)
        if refused is not None:
            self._unplaced(turn, refused.reason, refused.message)
        else:
            self._placements[turn] = Placement(pod.key, node)

    def _group(self, first: int, profile: Profile) -> None:
        """All members that have had no turn and are not held back, together. Source: A145 to A150."""
        key = group_key(self.queue[first])
        others = (at for at in range(first + 1, len(self.queue)) if group_key(self.queue[at]) == key)
        turns = [first, *(at for at in others if at not in self._placements and not self._is_held(at))]
        turns.sort(key=lambda at: turn_key(self.queue[at], 0.0))
        cluster = self._state.snapshot()
        pods = [cluster.query(self.queue[at]) for at in turns]
        decision = decide_group(pods, cluster, profile, self._engine, self._chance, self._search)
        del cluster  # else what follows would have to copy the tables
        for number, turn in enumerate(turns):
            self._fate(turn, profile, decision, number)

    def _fate(self, turn: int, profile: Profile, whole: GroupDecision, number: int) -> None:
        fate, own = whole.fate(number), whole.members[number].decision if number < len(whole.members) else None
        if fate is None:
            if isinstance(own, Placed):
                self._place(turn, profile, own)
        elif isinstance(own, Unplaced) and own.status == fate.status:
            self._unplaced(turn, _reason(own), own.message)
        else:
            self._unplaced(turn, fate.status.message, fate.status.message)

    def end(self) -> tuple[Placement, ...]:
        """What became of all; those that wait on Permit wait in vain."""
        for turn, refused in self._permits.run_out():
            self._unplaced(turn, refused.reason, refused.message)
        return tuple(self._placements[turn] for turn in range(len(self.queue)))


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
