"""Permit in a simulation: pods that wait for others go when those come, or in the end not at all.

Source: A069 to A071.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from extender.cluster.pods import PodQuery
from extender.cluster.state import ClusterState
from extender.config import durations
from extender.decide.committing import permit, unreserve
from extender.decide.engine import Engine
from extender.framework.profiles import Profile
from extender.objects.pod import Pod


@dataclass(frozen=True, slots=True)
class Refused:
    """A pod that Permit turned away.

    Attributes:
        reason: why, in the plugin's words.
        message: the text of the pod's event.
    """

    reason: str
    message: str


@dataclass(slots=True)
class _Waiting:
    """A pod on a node that waits for some plugins: how long each waits, in seconds."""

    turn: int
    pod: Pod
    node: str
    profile: Profile
    notes: dict[str, Any]
    timeouts: dict[str, float]
    reason: str


class Permits:
    """The pods that wait on Permit, by uid."""

    __slots__ = ("_engine", "_state", "_waiting")

    def __init__(self, state: ClusterState, engine: Engine) -> None:
        self._state, self._engine = state, engine
        self._waiting: dict[str, _Waiting] = {}

    def ask(self, turn: int, pod: Pod, node: str, profile: Profile, notes: dict[str, Any]) -> Refused | None:
        """What Permit says about *pod*, which stands on *node* already; None lets it stay there, for now at least."""
        if not profile.permits:
            return None
        cluster = self._state.snapshot()
        query = cluster.query(pod)
        answer = permit(query, node, cluster, profile, self._engine, notes)
        del cluster  # else what follows would have to copy the tables
        for plugin, uid in answer.allows:
            self._allow(plugin, uid)
        status = answer.status
        if status is None:
            return None
        if answer.timeouts:
            reason = ", ".join(status.reasons[:-1]) or status.message
            waiting = _Waiting(turn, pod, node, profile, notes, dict(answer.timeouts), reason)
            self._waiting[query.uid] = waiting
            return None
        self._give_back(query, pod, node, profile, notes)
        return Refused(status.message, f"0/1 nodes are available: 1 {status.message}.")

    def _allow(self, plugin: str, uid: str) -> None:
        waiting = self._waiting.get(uid)
        if waiting is not None:
            waiting.timeouts.pop(plugin, None)
            if not waiting.timeouts:
                del self._waiting[uid]

    def _give_back(self, query: PodQuery, pod: Pod, node: str, profile: Profile, notes: dict[str, Any]) -> None:
        unreserve(query, node, profile, self._engine, notes)
        self._state.forget(pod)

    def run_out(self) -> Iterator[tuple[int, Refused]]:
        """No more pods come: those that wait still are turned away, by their turns."""
        for waiting in self._waiting.values():
            query = self._state.snapshot().query(waiting.pod)
            self._give_back(query, waiting.pod, waiting.node, waiting.profile, waiting.notes)
            plugin, timeout = min(waiting.timeouts.items(), key=lambda item: item[1])
            late = f"rejected due to timeout after waiting {durations.render(timeout)} at plugin {plugin}"
            yield waiting.turn, Refused(waiting.reason, f"0/1 nodes are available: 1 {late}.")
        self._waiting.clear()
