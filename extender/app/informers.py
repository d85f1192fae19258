"""Informers: a list and watch for each kind that scheduling reads, and the delivery of changes to event handlers."""

import asyncio
import logging
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from typing import Any, Final

from extender.analysis.text_table import join_first
from extender.api.kinds.devices import DeviceClass, DeviceTaintRule, ResourceClaim, ResourceSlice
from extender.api.kinds.disruption import PodDisruptionBudget
from extender.api.kinds.meta import KubernetesObject
from extender.api.kinds.node import Node
from extender.api.kinds.pod import Pod
from extender.api.kinds.pod_group import CompositePodGroup, CoschedulingPodGroup, PodGroup
from extender.api.kinds.storage import CSIDriver, CSINode, PersistentVolume, StorageClass
from extender.api.kinds.workload import Namespace, ReplicaSet, ReplicationController, Service, StatefulSet
from extender.app.node_freshness import RECOVERY_SECONDS
from extender.app.wiring import SchedulerSetup
from extender.basics.clock import Clock
from extender.cache.raw_objects import RawObjectCache
from extender.client.listwatch import UNFINISHED_PODS, ListWatch
from extender.client.node_heartbeats import HeartbeatDetector
from extender.client.reflector import Delta, Reflector
from extender.client.rest_mapping import MISSING_KIND_HINTS, get_endpoint
from extender.client.transport import Transport
from extender.client.watch import IDLE_TIMEOUT
from extender.framework.events import EventResource
from extender.queueing.queueing_hints import build_queueing_hint_map
from extender.scheduler.event_handlers import EVENT_RESOURCE_BY_KIND, ClusterEventDispatcher

log = logging.getLogger("extender")

_KINDS_READ_WITHOUT_EVENTS: dict[str, tuple[type[KubernetesObject], ...]] = {
    "InterPodAffinity": (Namespace,),
    "PodTopologySpread": (Service, ReplicationController, ReplicaSet, StatefulSet),
    "SelectorSpread": (Service, ReplicationController, ReplicaSet, StatefulSet),
    "ServiceAffinity": (Service,),
    "DefaultPreemption": (PodDisruptionBudget,),
    "NodeVolumeLimits": (PersistentVolume, StorageClass, CSIDriver),
    **dict.fromkeys(
        ("AzureDiskLimits", "CinderLimits", "EBSLimits", "GCEPDLimits"), (PersistentVolume, StorageClass, CSINode)
    ),
}
"""Kinds that plugins read without registering for their events, by plugin.

The attribute `read_kinds` of a plugin adds further kinds.
"""

_DEVICE_KINDS: Final = frozenset((DeviceClass, ResourceClaim, ResourceSlice))
"""Kinds of `resource.k8s.io/v1`, which an API server before 1.34 does not serve. It counts as one without such objects.

Objects that are known stay known, because a scheduler without the allocated claims would allocate their devices again.
"""

_STALE_AFTER_SECONDS: Final = 180.0
"""A kind is stale if its watch fails and the API server has not responded for this time."""


def list_kinds_to_watch(setup: SchedulerSetup) -> list[type[KubernetesObject]]:
    """Return the kinds to watch: nodes, pods, and the kinds that an enabled plugin registers for or reads.

    Pod groups are included if a profile schedules them.

    Source: pkg/scheduler/eventhandlers.go, addAllEventHandlers;
    plugin/pkg/auth/authorizer/rbac/bootstrappolicy/policy.go, ClusterRoles (1.36).
    """
    kinds_by_resource = {resource: kind for kind, resource in EVENT_RESOURCE_BY_KIND.items()}
    kinds: dict[type[KubernetesObject], None] = {Node: None, Pod: None}
    for profile in setup.profiles.values():
        for events in build_queueing_hint_map(profile).values():
            for event in events:
                if event.resource is not EventResource.ANY and event.resource in kinds_by_resource:
                    kinds[kinds_by_resource[event.resource]] = None
        for name, plugin in profile.plugins.items():
            for kind in (*_KINDS_READ_WITHOUT_EVENTS.get(name, ()), *getattr(plugin, "read_kinds", ())):
                kinds[kind] = None
        if "GenericWorkload" in profile.gates:
            kinds[PodGroup] = None
        if "CompositePodGroup" in profile.gates:
            kinds[CompositePodGroup] = None
    if setup.gates.coscheduling:
        del kinds[PodGroup]
        kinds[CoschedulingPodGroup] = None
    return list(kinds)


class SyncTimeoutError(Exception):
    """Kinds were not listed in time; the message contains the kinds and their last errors."""


def _describe_unsynced_kinds(reflectors: Mapping[type[KubernetesObject], Reflector[Any]]) -> Iterator[str]:
    for kind, reflector in reflectors.items():
        if not reflector.synced.is_set():
            yield f"{kind.__name__} not listed yet" + (f" ({reflector.last_error})" if reflector.last_error else "")


class Informers:
    """The informers of one process."""

    def __init__(
        self,
        setup: SchedulerSetup,
        transport: Transport,
        event_handlers: ClusterEventDispatcher,
        clock: Clock,
        raw_objects: RawObjectCache | None = None,
    ) -> None:
        """Create the informers; no connection is opened yet.

        The profiles of *setup* determine the kinds. *raw_objects* is the cache of raw objects for HTTP extenders.
        """
        self._event_handlers, self._clock = event_handlers, clock
        self._release = setup.gates.release
        self._raw_objects = RawObjectCache() if raw_objects is None else raw_objects
        self._transport, self._tasks = transport, asyncio.TaskGroup()
        self.reflectors: dict[type[KubernetesObject], Reflector[Any]] = {
            kind: self._make_reflector(kind, self._deliver) for kind in list_kinds_to_watch(setup)
        }

    def _make_reflector(
        self, kind: type[KubernetesObject], deliver: Callable[[Sequence[Delta[Any]]], None]
    ) -> Reflector[Any]:
        # An API server of 1.36 does not serve the apiVersion of device taint rules of 1.37.
        is_optional = kind is DeviceTaintRule or kind in _DEVICE_KINDS
        list_watch = self._make_list_watch(kind)
        hint = MISSING_KIND_HINTS.get(kind.__name__, "")
        return Reflector(
            self._transport,
            list_watch,
            deliver,
            self._clock,
            is_optional=is_optional,
            retains_objects=kind in _DEVICE_KINDS,
            missing_kind_hint=hint,
            on_list=partial(self._event_handlers.on_list, kind),
        )

    def _make_list_watch(self, kind: type[Any]) -> ListWatch[Any]:
        on_raw = self._raw_objects.put if self._raw_objects.is_cached_kind(kind) else None
        deduplicate = self._event_handlers.deduplicate if kind in (Pod, Node) else None
        selector = UNFINISHED_PODS if kind is Pod else ""
        heartbeat_detector = HeartbeatDetector() if kind is Node and on_raw is None else None
        return ListWatch(
            kind,
            get_endpoint(kind.__name__, self._release),
            "",
            selector,
            on_raw=on_raw,
            deduplicate=deduplicate,
            heartbeat_detector=heartbeat_detector,
        )

    def _deliver(self, deltas: Sequence[Delta[Any]]) -> None:
        for delta in deltas:
            try:
                if delta.old is not None and delta.new is not None:
                    self._event_handlers.on_update(delta.old, delta.new)
                elif delta.new is not None:
                    self._event_handlers.on_add(delta.new)
                elif delta.old is not None:
                    self._raw_objects.remove(delta.old)
                    self._event_handlers.on_delete(delta.old)
            except ValueError as error:
                fields = {"object": delta.new or delta.old, "err": error}
                log.error("An object has an invalid value; its last valid state is used", extra=fields)  # noqa: TRY400
            except MemoryError:
                raise  # the process ends; otherwise it would place pods with a cache that lacks the change
            except Exception:
                log.exception("cannot process a change", extra={"object": delta.new or delta.old})

    async def run(self) -> None:
        """Run all informers until cancelled."""
        async with self._tasks as group:
            for reflector in self.reflectors.values():
                group.create_task(reflector.run())

    async def extend(self, setup: SchedulerSetup, timeout_seconds: float) -> None:
        """Start informers for the additional kinds that *setup* reads, and wait until the kinds are listed.

        Raises:
            SyncTimeoutError: a kind was not listed in time; all additional informers are stopped.
        """
        pending_deltas: list[Delta[Any]] = []
        new_kinds = [kind for kind in list_kinds_to_watch(setup) if kind not in self.reflectors]
        new_reflectors = {kind: self._make_reflector(kind, pending_deltas.extend) for kind in new_kinds}
        tasks = [self._tasks.create_task(reflector.run()) for reflector in new_reflectors.values()]
        try:
            async with asyncio.timeout(timeout_seconds):
                await asyncio.gather(*(reflector.synced.wait() for reflector in new_reflectors.values()))
        except BaseException as error:
            for task in tasks:
                task.cancel()
            if isinstance(error, TimeoutError):
                raise SyncTimeoutError("; ".join(_describe_unsynced_kinds(new_reflectors))) from error
            raise
        for reflector in new_reflectors.values():
            reflector.deliver = self._deliver
        self._deliver(pending_deltas)
        self.reflectors.update(new_reflectors)

    async def wait_for_sync(self) -> None:
        """Wait until every kind has been listed once."""
        await asyncio.gather(*(reflector.synced.wait() for reflector in self.reflectors.values()))

    @property
    def synced(self) -> bool:
        """Whether every kind has been listed once."""
        return all(reflector.synced.is_set() for reflector in self.reflectors.values())

    def describe_unsynced_kinds(self) -> Iterator[str]:
        """Yield a description of each kind that has not been listed yet, with its last error."""
        return _describe_unsynced_kinds(self.reflectors)

    def describe_staleness(self) -> str:
        """Return one line with the stale kinds and their errors; empty without stale kinds.

        A kind is stale before its first list, and while reading it is forbidden. It is also stale if its watch fails
        and the last contact is more than `_STALE_AFTER_SECONDS` ago.
        """
        errors = list(self.describe_unsynced_kinds())
        for kind, reflector in self.reflectors.items():
            seconds_since_contact, last_error = self.get_seconds_since_contact(kind), reflector.last_error
            if seconds_since_contact == float("inf"):
                continue
            if reflector.forbidden:
                errors.append(f"reading {kind.__name__} is forbidden: {last_error}")
            elif last_error and seconds_since_contact > _STALE_AFTER_SECONDS:
                errors.append(f"{kind.__name__}: no answer for {seconds_since_contact:.0f} s: {last_error}")
        return "; ".join(errors)

    def describe_missing_data(self) -> str:
        """Return one line with a kind about which no decision can be made, and its error; empty if there is none.

        As `describe_staleness`, but a kind that is forbidden is usable for `_STALE_AFTER_SECONDS`: an API server that
        starts rejects requests until it has read its roles. The line becomes an event of each pod. It has no times,
        since events with other texts are not counted together.
        """
        unsynced_kinds = list(self.describe_unsynced_kinds())
        if unsynced_kinds:
            return f"the cache of the extender is not synced yet: {join_first(unsynced_kinds, limit=1)}"
        outdated_kinds = [
            f"{kind.__name__} cannot be watched ({reflector.last_error})"
            for kind, reflector in self.reflectors.items()
            if reflector.last_error and self.get_seconds_since_contact(kind) > _STALE_AFTER_SECONDS
        ]
        if outdated_kinds:
            return f"the cache of the extender is out of date: {join_first(outdated_kinds, limit=1)}"
        return ""

    def may_miss_changes(self, kind: type[KubernetesObject]) -> bool:
        """Return whether changes of *kind* may be missing in the cache.

        That is while the watch fails, until `RECOVERY_SECONDS` after it works again, and after a silence that no
        working watch has: the process was stopped, and its events are not read yet.
        """
        reflector, now = self.reflectors[kind], self._clock.monotonic()
        is_recovering = now - reflector.recovered_at < RECOVERY_SECONDS
        return bool(reflector.last_error) or is_recovering or reflector.compute_staleness(now) > IDLE_TIMEOUT

    def get_seconds_by_kind(self) -> dict[str, float]:
        """Return the result of `get_seconds_since_contact` by the name of each kind."""
        return {kind.__name__: self.get_seconds_since_contact(kind) for kind in self.reflectors}

    def get_seconds_since_contact(self, kind: type[KubernetesObject]) -> float:
        """Return the seconds since the API server's last response for *kind*; infinite before the first response."""
        return self.reflectors[kind].compute_staleness(self._clock.monotonic())
