"""What becomes of a pod as a member of its pod group, which is decided as a whole. Source: A144 to A153."""

from collections.abc import Mapping
from dataclasses import dataclass
from random import Random
from typing import Any

from extender.cluster.groups import group_key
from extender.cluster.pods import PodQuery
from extender.cluster.state import ClusterState
from extender.decide.admission import held_back
from extender.decide.engine import Engine
from extender.decide.groupcycle import decide_group, turn_key
from extender.decide.podgroup import GroupDecision
from extender.decide.sampling import Search
from extender.framework.profiles import Profile
from extender.objects.pod import Pod
from extender.offline.layout import counted
from extender.offline.waiting import waiting
from extender.preemption.plan import GroupPreemptionPlan


@dataclass(frozen=True, slots=True)
class Membership:
    """One pod of a group that was decided.

    Attributes:
        group: `namespace/name`.
        members: how many were decided together.
        decision: about all of them.
        turn: that of the pod.
    """

    group: str
    members: int
    decision: GroupDecision
    turn: int

    @property
    def node(self) -> str:
        """Where the pod goes, now or once others are evicted; empty for nowhere."""
        member = self.decision.members[self.turn] if self.turn < len(self.decision.members) else None
        return member.node if member is not None and self.decision.feasible else ""

    @property
    def told(self) -> str:
        """What the pod is told if it is not bound at once; else empty."""
        fate = self.decision.fate(self.turn)
        return fate.status.message if fate is not None else ""

    @property
    def evicted(self) -> list[str]:
        """The pods that are evicted for the group as a whole, the most important first."""
        detail = self.decision.detail
        return [pod.key for pod in detail.victims] if isinstance(detail, GroupPreemptionPlan) else []

    def lines(self) -> list[str]:
        """For people."""
        others = counted(self.members - 1, "other pod")
        lines = ["", f"  As a member of pod group {self.group}, decided together with {others}"]
        if not self.told:
            return [*lines, f"    it goes to {self.node}"]
        if self.node:
            lines.append(f"    it goes to {self.node} once others are evicted")
        elif self.decision.waits_for_preemption:
            lines.append("    it is tried again once others are evicted")
        else:
            lines.append("    it goes nowhere")
        if self.evicted:
            lines.append(f"    evicted for the group: {', '.join(self.evicted)}")
        if self.decision.status.message != self.told:
            lines.append(f"    the group: {self.decision.status.message or 'is scheduled without it'}")
        return [*lines, f"    the pod is told: {self.told}"]

    def values(self) -> dict[str, Any]:
        """The same as plain values, always with the same keys."""
        decision = self.decision
        return {
            "name": self.group,
            "members": self.members,
            "scheduled": decision.status.ok,
            "waitsForPreemption": decision.waits_for_preemption,
            "placement": decision.placement.name or None,
            "message": decision.status.message,
            "node": self.node or None,
            "podMessage": self.told or None,
            "victims": self.evicted,
        }


class Memberships:
    """Decides groups, each once."""

    def __init__(self, state: ClusterState, profiles: Mapping[str, Profile], engine: Engine) -> None:
        """Decide on *state* as it is when asked, by one of *profiles* (by scheduler name)."""
        self._state, self._profiles, self._engine = state, profiles, engine
        self._decided: dict[str, tuple[list[str], GroupDecision]] = {}

    def of(self, pod: Pod) -> Membership | None:
        """What becomes of *pod*, which waits and is not held back.

        None if it is in no group, or being deleted, or groups are not decided as such.
        """
        key, profile = group_key(pod), self._profiles.get(pod.spec.scheduler_name)
        if key is None or profile is None or profile.groups is None:
            return None
        if key not in self._decided:
            self._decided[key] = self._decide(key, profile)
        order, decision = self._decided[key]
        uid = pod.metadata.uid or pod.key
        return Membership(key, len(order), decision, order.index(uid)) if uid in order else None

    def _decide(self, key: str, profile: Profile) -> tuple[list[str], GroupDecision]:
        """The members that are not held back, by uid in the order of their turns, and what becomes of them."""
        cluster = self._state.snapshot()
        pods = sorted(waiting(self._state, self._profiles), key=lambda pod: turn_key(pod, 0.0))
        members = [cluster.query(pod) for pod in pods if group_key(pod) == key]
        members = [query for query in members if not self._is_held(query)]
        chance = Random(0)  # noqa: S311  reproducible on purpose
        return [query.uid for query in members], decide_group(members, cluster, profile, self._engine, chance, Search())

    def _is_held(self, query: PodQuery) -> bool:
        profile = self._profiles[query.spec.scheduler_name]
        return held_back(query, self._state.snapshot(), profile, self._engine) is not None
