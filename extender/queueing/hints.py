"""Whether something that happened is worth trying a pod again for. Source: D029 to D036, B006."""

import time
from collections.abc import Callable, Iterable, Mapping
from enum import IntEnum

from extender.framework.changes import Action, Change, Hint, Registration, Resource
from extender.framework.points import EnqueueExtensions, Filter, Permit, PreEnqueue, PreFilter, Reserve
from extender.framework.profiles import Profile
from extender.queueing.queued import QueuedPod

ANYTHING = Registration(Resource.ANY, Action.ALL)
"""What a plugin without events of its own is woken by, and a profile's outcome after an outbound extender refused.

Source: D034, A098.
"""

EXTENDER = "Extender"
"""The name under which outbound extenders reject. Source: A098."""

HintObserver = Callable[[str, str, str, float], None]
"""Hears plugin, event and outcome (Queue, QueueSkip, Error) of every hint asked for, and the seconds it took."""


class Worth(IntEnum):
    """What to do with the pod; the greatest of several answers holds."""

    SKIP = 0
    AFTER_BACKOFF = 1
    AT_ONCE = 2


def is_wildcard(change: Change) -> bool:
    """Whether *change* means every pod, whoever rejected it (or one pod: see `Change.new`)."""
    return change.resource is Resource.ANY and change.action == Action.ALL


def registrations(profile: Profile) -> dict[str, tuple[Registration, ...]]:
    """By plugin, the events it wants to hear of. Source: A074, D034."""
    asked = (profile.pre_enqueues, profile.pre_filters, profile.filters, profile.reserves, profile.permits)
    plugins: dict[str, PreEnqueue | PreFilter | Filter | Reserve | Permit] = {
        plugin.name: plugin for group in asked for plugin in group
    }
    found = {
        name: tuple(plugin.events()) if isinstance(plugin, EnqueueExtensions) else (ANYTHING,)
        for name, plugin in plugins.items()
    }
    return {**found, EXTENDER: (ANYTHING,)}


class Hints:
    """The events of all plugins, by scheduler name."""

    __slots__ = ("_by_profile", "_concerning", "_observe", "_wanted")

    def __init__(self, profiles: Mapping[str, Profile], observe: HintObserver | None = None) -> None:
        self._by_profile = {name: registrations(profile) for name, profile in profiles.items()}
        self._observe = observe
        self._concerning: tuple[Change | None, dict[tuple[str, str], tuple[Registration, ...]]] = (None, {})
        self._wanted: dict[tuple[Resource, Action], bool] = {}

    def of(self, scheduler: str, plugin: str) -> tuple[Registration, ...]:
        """The events of one plugin."""
        return self._by_profile.get(scheduler, {}).get(plugin, ())

    def interested(self, change: Change) -> bool:
        """Whether any plugin wants to hear of *change*. Source: D029."""
        sort = change.resource, change.action
        wanted = self._wanted.get(sort)
        if wanted is None:  # asked about every pod that is placed, so not anew each time
            wanted = self._wanted[sort] = is_wildcard(change) or any(
                each.concerns(change)
                for plugins in self._by_profile.values()
                for events in plugins.values()
                for each in events
            )
        return wanted

    def worth(self, pod: QueuedPod, change: Change) -> Worth:
        """Whether *change* may make *pod* schedulable, going by the plugins that rejected it. Source: D030, D031."""
        rejectors = pod.all_rejectors
        if not rejectors:
            return Worth.AFTER_BACKOFF
        if is_wildcard(change):
            return Worth.SKIP if change.new is not None and not _is_about(change, pod) else Worth.AFTER_BACKOFF
        scheduler = pod.query.spec.scheduler_name
        if scheduler not in self._by_profile:
            return Worth.AFTER_BACKOFF
        best = Worth.SKIP
        for name in rejectors:
            for event in self._that_concern(change, scheduler, name):
                if self._ask(name, event, pod, change) is Hint.SKIP:
                    continue
                if name in pod.pending:
                    return Worth.AT_ONCE
                if not pod.pending:
                    return Worth.AFTER_BACKOFF
                best = Worth.AFTER_BACKOFF
        return best

    def _that_concern(self, change: Change, scheduler: str, plugin: str) -> tuple[Registration, ...]:
        """The events of one plugin that *change* is: one change is mostly asked about for many pods in a row."""
        last, known = self._concerning
        if last is not change:
            known = {}
            self._concerning = change, known
        found = known.get((scheduler, plugin))
        if found is None:
            found = tuple(event for event in self.of(scheduler, plugin) if event.concerns(change))
            known[scheduler, plugin] = found
        return found

    def worth_of_all(self, pod: QueuedPod, changes: Iterable[Change]) -> Worth:
        """The greatest worth of several changes. Source: D019."""
        best = Worth.SKIP
        for change in changes:
            best = max(best, self.worth(pod, change))
            if best is Worth.AT_ONCE or (best is Worth.AFTER_BACKOFF and not pod.pending):
                return best
        return best

    def _ask(self, plugin: str, event: Registration, pod: QueuedPod, change: Change) -> Hint:
        if event.hint is None:
            return Hint.QUEUE
        began = time.perf_counter() if self._observe else 0.0
        try:
            hint = event.hint(pod.query, change)
            told = hint.value
        except Exception:  # noqa: BLE001  a hint that fails must not leave a pod waiting for ever: B006
            hint, told = Hint.QUEUE, "Error"
        if self._observe:
            self._observe(plugin, change.label, told, time.perf_counter() - began)
        return hint


def _is_about(change: Change, pod: QueuedPod) -> bool:
    metadata = getattr(change.new, "metadata", None)
    return metadata is not None and metadata.uid == pod.query.pod.metadata.uid
