"""A bounded log of pod events, for debugging."""

from collections import deque

_MAX_EVENTS = 20_000


class PodHistory:
    """The most recent pod events of the cluster, numbered."""

    __slots__ = ("_event_count", "_events")

    def __init__(self) -> None:
        self._events: deque[tuple[int, str, str, str]] = deque(maxlen=_MAX_EVENTS)
        self._event_count = 0

    def record(self, uid: str, event: str, node_name: str = "") -> None:
        """Record *event* of the pod *uid*. *node_name* is empty if the event has no node."""
        self._event_count += 1
        self._events.append((self._event_count, uid, event, node_name))

    def list_events(self, uid: str) -> list[str]:
        """Return the events of the pod *uid*, oldest first, such as `17: assumed on node-3`."""
        return [
            f"{number}: {event}{f' on {node_name}' if node_name else ''}"
            for number, event_uid, event, node_name in self._events
            if event_uid == uid
        ]
