"""What happened to a pod, in order; bounded, for the question "how did it get there?"."""

from collections import deque

_MOST = 20_000


class Story:
    """The last events of the cluster, by pod."""

    __slots__ = ("_events", "_told")

    def __init__(self) -> None:
        self._events: deque[tuple[int, str, str, str]] = deque(maxlen=_MOST)
        self._told = 0

    def tell(self, uid: str, event: str, node: str = "") -> None:
        """Write down that *event* happened to the pod *uid*, at *node* if that says something."""
        self._told += 1
        self._events.append((self._told, uid, event, node))

    def of(self, uid: str) -> list[str]:
        """What happened to pod *uid*, oldest first: `17: assumed on node-3`."""
        return [f"{n}: {event}{f' on {node}' if node else ''}" for n, who, event, node in self._events if who == uid]
