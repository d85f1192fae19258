"""A listener that says how long each event took, for metrics. Source: H020."""

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from extender.feed.handlers import Listener
from extender.framework.changes import Change
from extender.objects.pod import Pod

Told = Callable[[str, float], None]
"""Hears of each event: its label and the seconds it took."""


class Timed:
    """Passes everything on to another listener (it is a `feed.handlers.Listener` itself)."""

    __slots__ = ("_listener", "_told")

    def __init__(self, listener: Listener, told: Told) -> None:
        self._listener, self._told = listener, told

    @contextmanager
    def _timed(self, event: str) -> Iterator[None]:
        began = time.perf_counter()
        yield
        self._told(event, time.perf_counter() - began)

    def pod_waits(self, pod: Pod) -> None:
        """A pod without a node appeared."""
        with self._timed("UnschedulablePodAdd"):
            self._listener.pod_waits(pod)

    def pod_changed(self, old: Pod, new: Pod, changes: list[Change]) -> None:
        """A pod without a node changed."""
        began = time.perf_counter()
        self._listener.pod_changed(old, new, changes)
        for event in {"UnschedulablePodUpdate", *(change.label for change in changes)}:
            self._told(event, time.perf_counter() - began)

    def pod_left(self, pod: Pod) -> None:
        """A pod waits no more."""
        with self._timed("UnschedulablePodDelete"):
            self._listener.pod_left(pod)

    def assumed_pod_left(self, pod: Pod) -> None:
        """A pod that we placed is gone before its binding was seen."""
        with self._timed("AssignedPodDelete"):
            self._listener.assumed_pod_left(pod)

    def happened(self, change: Change, *, priority: int | None = None) -> None:
        """Something that may help waiting pods."""
        with self._timed(change.label):
            self._listener.happened(change, priority=priority)
