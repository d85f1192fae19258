"""Pods that were popped and have no outcome yet, and what happened to the cluster meanwhile.

Source: D002, D042, D043.
"""

from collections import Counter, deque
from collections.abc import Iterator

from extender.framework.changes import Change
from extender.queueing.queued import QueuedPod


class InFlight:
    """Popped pods and changes in the order of their arrival.

    A change is kept while a pod that was popped before it is in flight.
    """

    __slots__ = ("_events", "_first", "_started")

    def __init__(self) -> None:
        self._events: deque[Change] = deque()
        self._first = 0  # the number of the change at the head of the deque
        self._started: dict[str, int] = {}

    def __len__(self) -> int:
        return len(self._started)

    def __contains__(self, uid: object) -> bool:
        return uid in self._started

    @property
    def events(self) -> int:
        """How many changes are kept."""
        return len(self._events)

    def by_label(self) -> Counter[str]:
        """How many changes are kept, by label."""
        return Counter(change.label for change in self._events)

    def begin(self, pod: QueuedPod) -> bool:
        """*pod* was popped; False if its uid is in flight already. Source: D009."""
        if pod.uid in self._started:
            return False
        self._started[pod.uid] = self._first + len(self._events)
        return True

    def note(self, change: Change) -> None:
        """Keep *change* if anything is in flight."""
        if self._started:
            self._events.append(change)

    def since(self, uid: str) -> Iterator[Change] | None:
        """What happened since the pod *uid* was popped, oldest first; None if it is not in flight."""
        started = self._started.get(uid)
        if started is None:
            return None
        skipped = started - self._first
        return (change for number, change in enumerate(list(self._events)) if number >= skipped)

    def done(self, uid: str) -> None:
        """The pod *uid* has its outcome; changes that nobody may still ask about are forgotten."""
        if self._started.pop(uid, None) is None:
            return
        oldest = min(self._started.values(), default=self._first + len(self._events))
        while self._first < oldest:
            self._events.popleft()
            self._first += 1
