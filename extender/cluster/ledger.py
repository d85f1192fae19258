"""Pods that we placed and the API server has not confirmed yet.

    waiting --assume--> assumed --confirm--> placed
                           |
                           +-----forget----> waiting

An assumption never expires by itself (A109): whoever assumed either sees the pod bound, or forgets it.
"""

from extender.cluster.pods import PlacedPod


class LedgerError(Exception):
    """An assumption that contradicts what is known; the caller's fault."""


class Ledger:
    """Assumed pods by uid."""

    __slots__ = ("_assumed",)

    def __init__(self) -> None:
        self._assumed: dict[str, PlacedPod] = {}

    def __len__(self) -> int:
        return len(self._assumed)

    def __contains__(self, uid: object) -> bool:
        return uid in self._assumed

    def assume(self, pod: PlacedPod) -> None:
        """Write down that *pod* was placed.

        Raises:
            LedgerError: it is assumed already.
        """
        if pod.uid in self._assumed:
            raise LedgerError(f"pod {pod.key} (uid {pod.uid}) is assumed on {self._assumed[pod.uid].node_name} already")
        self._assumed[pod.uid] = pod

    def settle(self, uid: str) -> PlacedPod | None:
        """Take the assumption off the ledger, because it was confirmed or given up; None if there was none."""
        return self._assumed.pop(uid, None)
