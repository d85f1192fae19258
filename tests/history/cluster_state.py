"""The recorded history of a cluster, and the state of the cluster at one of its revisions."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from tests.scheduling_history import Binding, LeaseRenewal

Object = Mapping[str, Any]
"""An object as parsed JSON."""

KINDS: Final = (
    "Pod",
    "Node",
    "Lease",
    "PodDisruptionBudget",
    "PersistentVolume",
    "PersistentVolumeClaim",
    "StorageClass",
    "ResourceSlice",
    "ResourceClaim",
)
"""The kinds that a history records."""


@dataclass(frozen=True, slots=True)
class Change:
    """The state of an object from a revision on.

    Attributes:
        revision: the revision of etcd, which is the resourceVersion of the object.
        time: the time at which the observer received the event, in Unix seconds.
        kind: one of `KINDS`.
        key: `namespace/name`, or the name.
        object: the object; None if it is deleted.
    """

    revision: int
    time: float
    kind: str
    key: str
    object: Object | None


@dataclass(frozen=True, slots=True)
class History:
    """All changes in the order of their revisions, and the writes in the audit log in the order of time.

    Attributes:
        changes: every change from the first revision on.
        bindings: the requests that bind a pod, with their senders.
        renewals: the accepted writes of the lease, with their senders.
    """

    changes: Sequence[Change]
    bindings: Sequence[Binding] = ()
    renewals: Sequence[LeaseRenewal] = ()


@dataclass(slots=True)
class ClusterState:
    """The objects at one revision: by kind, then by key."""

    objects: dict[str, dict[str, Object]] = field(default_factory=lambda: {kind: {} for kind in KINDS})

    def apply(self, change: Change) -> None:
        """Apply the next change."""
        if change.object is None:
            self.objects[change.kind].pop(change.key, None)
        else:
            self.objects[change.kind][change.key] = change.object

    def find(self, kind: str, key: str) -> Object | None:
        """Return an object, or None if it does not exist."""
        return self.objects[kind].get(key)

    def copy(self) -> "ClusterState":
        """Return a copy that later changes do not affect."""
        return ClusterState({kind: dict(table) for kind, table in self.objects.items()})

    @property
    def nodes(self) -> Mapping[str, Object]:
        """The nodes by name."""
        return self.objects["Node"]

    @property
    def pods(self) -> Mapping[str, Object]:
        """The pods by key."""
        return self.objects["Pod"]

    def pods_on(self, node: str) -> Iterator[tuple[str, Object]]:
        """Yield key and pod of the pods that use resources of a node: bound, and neither succeeded nor failed."""
        for key, pod in self.pods.items():
            if node_name(pod) == node and not is_finished(pod):
                yield key, pod


def final_state(history: History) -> ClusterState:
    """Return the state after the last change."""
    state = ClusterState()
    for change in history.changes:
        state.apply(change)
    return state


def node_name(pod: Object) -> str:
    """Return the name of the node of a pod; empty if it is not bound."""
    return str(pod["spec"].get("nodeName") or "")


def is_finished(pod: Object) -> bool:
    """Return whether a pod succeeded or failed."""
    return pod.get("status", {}).get("phase") in {"Succeeded", "Failed"}


def is_terminating(obj: Object) -> bool:
    """Return whether an object is being deleted."""
    return bool(obj["metadata"].get("deletionTimestamp"))


def uid_of(obj: Object) -> str:
    """Return the uid of an object."""
    return str(obj["metadata"]["uid"])


def claim_keys(pod: Object) -> Iterator[str]:
    """Yield the keys of the PersistentVolumeClaims of a pod."""
    for volume in pod["spec"].get("volumes") or ():
        if source := volume.get("persistentVolumeClaim"):
            yield f"{pod['metadata']['namespace']}/{source['claimName']}"


def device_claim_keys(pod: Object) -> Iterator[str]:
    """Yield the keys of the ResourceClaims of a pod. Claims of templates are not part of the workload."""
    for claim in pod["spec"].get("resourceClaims") or ():
        yield f"{pod['metadata']['namespace']}/{claim['resourceClaimName']}"


def allocated_devices(claim: Object) -> list[tuple[str, str, str]]:
    """Return driver, pool and name of the devices that are allocated to a ResourceClaim."""
    allocation = claim.get("status", {}).get("allocation") or {}
    results = allocation.get("devices", {}).get("results") or ()
    return [(result["driver"], result["pool"], result["device"]) for result in results]
