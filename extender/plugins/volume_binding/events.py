"""What may let a pod through that VolumeBinding refused. Source: B101."""

from collections.abc import Sequence

from extender.cluster.pods import PodQuery
from extender.framework.changes import Action, Change, Hint, Registration, Resource
from extender.objects.storage import (
    CSIDriver,
    CSINode,
    CSIStorageCapacity,
    PersistentVolumeClaim,
    StorageClass,
)
from extender.volumes.claims import names_claim
from extender.volumes.migration import migrated_plugins_changed
from extender.volumes.stock import volume_limit

_CHANGED = Action.ADD | Action.UPDATE


def _hint(wake: bool) -> Hint:
    return Hint.QUEUE if wake else Hint.SKIP


def _after_class(pod: PodQuery, change: Change) -> Hint:  # noqa: ARG001  hints have this signature
    old: StorageClass | None = change.old
    new: StorageClass = change.new
    return _hint(old is None or old.allowed_topologies != new.allowed_topologies)


def _after_claim(pod: PodQuery, change: Change) -> Hint:
    claim: PersistentVolumeClaim = change.new
    return _hint(names_claim(pod.pod, pod.shape.volumes.claims, claim))


def _after_csi_node(pod: PodQuery, change: Change) -> Hint:  # noqa: ARG001
    old: CSINode | None = change.old
    new: CSINode = change.new
    return _hint(old is None or migrated_plugins_changed(old, new))


def _after_driver(pod: PodQuery, change: Change) -> Hint:
    """Storage that is not tracked any more is never too little. As upstream, only volumes inline in the pod count."""
    old: CSIDriver = change.old
    new: CSIDriver = change.new
    inline = any(v.csi is not None and v.csi.driver == new.metadata.name for v in pod.spec.volumes)
    return _hint(inline and bool(old.spec.storage_capacity) and not new.spec.storage_capacity)


def _after_capacity(pod: PodQuery, change: Change) -> Hint:  # noqa: ARG001
    old: CSIStorageCapacity | None = change.old
    new: CSIStorageCapacity = change.new
    if old is None:
        return Hint.QUEUE
    before, now = volume_limit(old), volume_limit(new)
    return _hint(now is not None and (before is None or now > before))


EVENTS: Sequence[Registration] = (
    Registration(Resource.STORAGE_CLASS, _CHANGED, _after_class),
    Registration(Resource.PERSISTENT_VOLUME_CLAIM, _CHANGED, _after_claim),
    Registration(Resource.PERSISTENT_VOLUME, _CHANGED),
    Registration(Resource.NODE, Action.ADD | Action.UPDATE_NODE_LABEL),
    Registration(Resource.CSI_NODE, _CHANGED, _after_csi_node),
    Registration(Resource.CSI_DRIVER, Action.UPDATE, _after_driver),
    Registration(Resource.CSI_STORAGE_CAPACITY, _CHANGED, _after_capacity),
)
