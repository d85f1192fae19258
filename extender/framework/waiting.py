"""Pods that Permit told to wait: a machine of its own, with the time passed in. Source: A069 to A071.

    waiting --every plugin allows--> allowed
       |------a plugin rejects-----> rejected   (Unschedulable)
       |------time runs out--------> rejected   (Unschedulable)
       +------preempted------------> broken     (Error)

The first outcome stays.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from extender.cluster.pods import PodQuery
from extender.config import durations
from extender.framework.verdict import SUCCESS, Code, Status

MAX_WAIT = 900.0
"""Seconds that no plugin can exceed. Source: A069."""


@dataclass(slots=True)
class WaitingPod:
    """One pod that waits.

    Attributes:
        pod: who waits.
        node: where it was placed.
        pending: the plugins still to allow it: how long each waits, and when that ends, in seconds of the
            clock that is passed in.
        outcome: None while it waits.
    """

    pod: PodQuery
    node: str
    pending: dict[str, tuple[float, float]]
    outcome: Status | None = field(default=None)

    def allow(self, plugin: str) -> None:
        """*plugin* has nothing against binding any more; the last one to say so lets the pod go."""
        self.pending.pop(plugin, None)
        if not self.pending and self.outcome is None:
            self.outcome = SUCCESS

    def reject(self, plugin: str, message: str) -> bool:
        """*plugin* turns the pod away; False if its fate was sealed already."""
        return self._end(Status(Code.UNSCHEDULABLE, (message,), plugin))

    def preempt(self, plugin: str, message: str) -> bool:
        """The pod must make room for another; False if its fate was sealed already."""
        return self._end(Status(Code.ERROR, (f"waiting on permit for pod: {message}",), plugin))

    def _end(self, outcome: Status) -> bool:
        if self.outcome is not None:
            return False
        self.outcome = outcome
        return True

    def tick(self, now: float) -> None:
        """Time is *now*: reject the pod if a plugin's time has run out."""
        for plugin, (timeout, deadline) in self.pending.items():
            if now >= deadline:
                waited = durations.render(timeout)
                self.reject(plugin, f"rejected due to timeout after waiting {waited} at plugin {plugin}")
                return


class WaitingPods:
    """All pods that wait, by uid."""

    __slots__ = ("_pods",)

    def __init__(self) -> None:
        self._pods: dict[str, WaitingPod] = {}

    def add(self, pod: PodQuery, node: str, timeouts: Mapping[str, float], now: float) -> WaitingPod:
        """*pod*, placed on *node*, waits for these plugins, at most as many seconds each, from *now* on."""
        pending = {plugin: (timeout, now + timeout) for plugin, timeout in timeouts.items()}
        waiting = self._pods[pod.uid] = WaitingPod(pod, node, pending)
        return waiting

    def get(self, uid: str) -> WaitingPod | None:
        """The waiting pod *uid*, or None."""
        return self._pods.get(uid)

    def __iter__(self) -> Iterator[WaitingPod]:
        return iter(list(self._pods.values()))

    def __len__(self) -> int:
        return len(self._pods)

    def settled(self, now: float) -> list[WaitingPod]:
        """The pods whose fate is sealed at *now*; they wait no more."""
        done = []
        for uid, waiting in list(self._pods.items()):
            waiting.tick(now)
            if waiting.outcome is not None:
                done.append(self._pods.pop(uid))
        return done

    def next_deadline(self) -> float | None:
        """When the next pod's time runs out; None if no pod waits."""
        return min((end for pod in self._pods.values() for _, end in pod.pending.values()), default=None)
