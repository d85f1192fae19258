"""One change of an API object: written to the tables, then told. Source: A120 to A130."""

from collections.abc import Collection
from typing import Protocol

from extender.allocation.tainting import tainted
from extender.cluster.state import ClusterState, Lean
from extender.cluster.store import Thing, key_of
from extender.feed.differences import node_changes, pod_changes
from extender.framework.changes import Action, Change, Resource
from extender.objects.devices import DeviceClass, DeviceTaintRule, ResourceClaim, ResourceSlice
from extender.objects.groups import PodGroup
from extender.objects.node import Node
from extender.objects.pod import Pod
from extender.objects.storage import (
    CSIDriver,
    CSINode,
    CSIStorageCapacity,
    PersistentVolume,
    PersistentVolumeClaim,
    StorageClass,
    VolumeAttachment,
)

RESOURCES: dict[type, Resource] = {
    CSIDriver: Resource.CSI_DRIVER,
    CSINode: Resource.CSI_NODE,
    CSIStorageCapacity: Resource.CSI_STORAGE_CAPACITY,
    DeviceClass: Resource.DEVICE_CLASS,
    PersistentVolume: Resource.PERSISTENT_VOLUME,
    PersistentVolumeClaim: Resource.PERSISTENT_VOLUME_CLAIM,
    PodGroup: Resource.POD_GROUP,
    ResourceClaim: Resource.RESOURCE_CLAIM,
    ResourceSlice: Resource.RESOURCE_SLICE,
    StorageClass: Resource.STORAGE_CLASS,
    VolumeAttachment: Resource.VOLUME_ATTACHMENT,
}
"""Kinds, beside nodes and pods, that events are told of. Others are only written to the tables."""


class Listener(Protocol):
    """Hears what happened after the tables know of it; the standalone scheduler does, an extender need not."""

    def pod_waits(self, pod: Pod) -> None:
        """A pod without a node appeared."""

    def pod_changed(self, old: Pod, new: Pod, changes: list[Change]) -> None:
        """A pod without a node changed."""

    def pod_left(self, pod: Pod) -> None:
        """A pod waits no more: it is gone, or has a node."""

    def assumed_pod_left(self, pod: Pod) -> None:
        """A pod that we placed is being deleted, or gone, before its binding was seen. Source: A124."""

    def happened(self, change: Change, *, priority: int | None = None) -> None:
        """Something that may help waiting pods; with *priority* only those of at most that priority."""


class Deaf:
    """Hears nothing: for an extender, which has no queue."""

    def pod_waits(self, pod: Pod) -> None:
        """Nothing."""

    def pod_changed(self, old: Pod, new: Pod, changes: list[Change]) -> None:
        """Nothing."""

    def pod_left(self, pod: Pod) -> None:
        """Nothing."""

    def assumed_pod_left(self, pod: Pod) -> None:
        """Nothing."""

    def happened(self, change: Change, *, priority: int | None = None) -> None:
        """Nothing."""


class Feed:
    """Takes changes of all kinds, in the order in which the API server tells them for each kind."""

    __slots__ = ("_listener", "_schedulers", "_state")

    def __init__(self, state: ClusterState, listener: Listener, schedulers: Collection[str]) -> None:
        """Feed *state* and tell *listener*.

        Args:
            state: the tables.
            listener: hears of it.
            schedulers: the scheduler names whose pods wait for us. Source: A007.
        """
        self._state, self._listener, self._schedulers = state, listener, frozenset(schedulers)

    def lean(self, thing: Lean) -> Lean:
        """An equal of a pod or a node that shares with others what it has in common with them; nothing is told."""
        return self._state.lean(thing)

    def serve(self, schedulers: Collection[str]) -> None:
        """From now on the pods of these wait for us, and no others."""
        self._schedulers = frozenset(schedulers)

    def added(self, thing: Thing) -> None:
        """*thing* appeared."""
        if isinstance(thing, Node):
            self._state.put_node(thing)
            self._listener.happened(Change(Resource.NODE, Action.ADD, None, thing))
        elif isinstance(thing, Pod):
            self._pod_added(thing)
        else:
            self._write(type(thing), Action.ADD, None, thing)

    def changed(self, old: Thing, new: Thing) -> None:
        """*old* became *new*."""
        if isinstance(old, Node) and isinstance(new, Node):
            self._state.put_node(new)
            for change in node_changes(old, new):
                self._listener.happened(change)
        elif isinstance(old, Pod) and isinstance(new, Pod):
            self._pod_changed(old, new)
        else:
            self._write(type(new), Action.UPDATE, old, new)

    def removed(self, thing: Thing) -> None:
        """*thing* is gone."""
        if isinstance(thing, Node):
            self._listener.happened(Change(Resource.NODE, Action.DELETE, thing, None))
            self._state.drop_node(thing.metadata.name)
        elif isinstance(thing, Pod):
            self._pod_removed(thing)
        else:
            self._write(type(thing), Action.DELETE, thing, None)

    def _write(self, kind: type[Thing], action: Action, old: Thing | None, new: Thing | None) -> None:
        before = self._tainted() if kind is DeviceTaintRule else []
        if new is not None:
            self._state.put_object(new)
        elif old is not None:
            self._state.drop_object(kind, key_of(old))
        resource = RESOURCES.get(kind)
        if resource is not None:
            self._listener.happened(Change(resource, action, old, new))
        for was, now in zip(before, self._tainted() if before else [], strict=True):
            if was != now:
                self._listener.happened(Change(Resource.RESOURCE_SLICE, Action.UPDATE, was, now))

    def _tainted(self) -> list[ResourceSlice]:
        """The slices with the taints that rules add: a rule that changes is a change of slices. Source: B112, B125."""
        cluster = self._state.snapshot()
        rules = cluster.objects(DeviceTaintRule).values()
        return [tainted(each, rules) for each in cluster.objects(ResourceSlice).values()]

    # -- pods

    def _ours(self, pod: Pod) -> bool:
        return pod.spec.scheduler_name in self._schedulers

    def _pod_added(self, pod: Pod) -> None:
        self._state.put_pod(pod)
        if pod.spec.node_name:
            self._listener.happened(Change(Resource.ASSIGNED_POD, Action.ADD, None, pod))
        elif self._ours(pod):
            self._listener.pod_waits(pod)

    def _pod_changed(self, old: Pod, new: Pod) -> None:
        if old.metadata.uid != new.metadata.uid:  # deleted and made again under one name between two sights of it
            self._pod_removed(old)
            self._pod_added(new)
            return
        if old.spec.node_name:
            self._state.put_pod(new)
            for change in pod_changes(old, new):
                self._listener.happened(change)
        elif new.spec.node_name:
            self._state.put_pod(new)
            self._listener.happened(Change(Resource.ASSIGNED_POD, Action.ADD, None, new))
            if self._ours(old):
                self._listener.pod_left(new)
        else:
            self._waiting_pod_changed(old, new)

    def _waiting_pod_changed(self, old: Pod, new: Pod) -> None:
        if self._state.is_assumed(new.metadata.uid):
            if new.metadata.deletion_timestamp and not old.metadata.deletion_timestamp:
                self._listener.assumed_pod_left(new)
            return
        self._state.put_pod(new)
        if not self._ours(old):
            return
        self._listener.pod_changed(old, new, pod_changes(old, new))
        nominated = old.status.nominated_node_name
        if nominated and nominated != new.status.nominated_node_name:
            self._room_was_kept_by(old)

    def _pod_removed(self, pod: Pod) -> None:
        uid = pod.metadata.uid or pod.key
        if pod.spec.node_name:
            self._state.drop_pod(uid)
            self._listener.happened(Change(Resource.ASSIGNED_POD, Action.DELETE, pod, None))
            return
        assumed = self._state.is_assumed(uid)
        self._state.drop_pod(uid)
        if not self._ours(pod):
            return
        self._listener.pod_left(pod)
        if assumed:
            self._listener.assumed_pod_left(pod)
        elif pod.status.nominated_node_name:
            self._room_was_kept_by(pod)

    def _room_was_kept_by(self, pod: Pod) -> None:
        """*pod* gave up its nomination: pods of no higher priority may have the room. Source: A125, A126."""
        self._listener.happened(
            Change(Resource.ASSIGNED_POD, Action.DELETE, pod, None), priority=pod.spec.priority or 0
        )
