"""The scheduler cache: the only writer of the tables. It is updated from watches or files and read through snapshots.

Pods are identified by uid. A pod is pending, assigned to a node, or assumed on a node, which the API server has not
confirmed yet:

    pending --assume--> assumed --confirm--> assigned
                           |
                           +-----forget----> pending

An assumed pod never expires: it stays assumed until it is confirmed or forgotten.

Source: pkg/scheduler/backend/cache/cache.go, cacheImpl, cacheImpl.AssumePod, cacheImpl.RemoveNode;
pkg/scheduler/backend/queue/nominator.go, nominator; pkg/scheduler/eventhandlers.go,
Scheduler.updatePodInSchedulingQueue, Scheduler.handleAssumedPodDeletion, Scheduler.deletePodFromSchedulingQueue
(1.36).
"""

from collections.abc import Collection, Hashable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import TypeVar

from extender.api.kinds.meta import KubernetesObject
from extender.api.kinds.node import Node
from extender.api.kinds.pod import Pod
from extender.api.kinds.pod_group import CompositePodGroup
from extender.cache.cluster_tables import ClusterTables
from extender.cache.pod_groups import get_pod_group_key
from extender.cache.pod_info import AssignedPodInfo, PodInfo, make_assigned_pod_info
from extender.cache.pod_signature import SignatureCache, make_pod_resources_options
from extender.cache.snapshot import Snapshot
from extender.cache.tables.symbols import Symbols
from extender.config.feature_gates import FeatureGates

PodOrNode = TypeVar("PodOrNode", Pod, Node)
T = TypeVar("T", bound=KubernetesObject)

_TERMINAL_PHASES = ("Succeeded", "Failed")


class AssumeError(Exception):
    """A pod cannot be assumed because it is already assumed or on a node: a bug in the caller."""


class Cache:
    """Nodes, pods and other objects of one cluster.

    The cache is not thread-safe: one thread writes it, opens read scopes and takes snapshots. Any thread may read the
    snapshots.

    A write changes the tables in place if no read scope is open and no snapshot was taken since the last copy.
    Otherwise the write goes to a copy of the tables, and the snapshots stay as they are.

    Attributes:
        write_count: the number of writes to what snapshots show. Snapshots with the same number of writes are equal.
    """

    def __init__(self, gates: FeatureGates | None = None, group_schedulers: Collection[str] | None = None) -> None:
        """Create an empty cache.

        The feature gates decide how the requests of a pod are counted, and whether composite pod groups are stored;
        None means the default gates. Pending pods of *group_schedulers* count as members of pod groups; None means the
        pods of all schedulers.
        """
        gates = gates or FeatureGates()
        self._tables = ClusterTables(SignatureCache(Symbols(), make_pod_resources_options(gates)))
        self._has_composite_groups = "CompositePodGroup" in gates
        self._snapshot: Snapshot | None = None
        self._assumed: dict[str, Pod | None] = {}  # by uid, the pods as last updated; None: never added
        self._assigned: dict[str, AssignedPodInfo] = {}
        self._pending: dict[str, Pod] = {}
        self._nominated_nodes: dict[str, str] = {}  # by uid of the nominated pod
        self.write_count = 0
        self._group_schedulers = group_schedulers

    # -- reading

    @contextmanager
    def read(self) -> Iterator[Snapshot]:
        """Open a read scope: in the `with` block, the snapshot shows the current state and does not change.

        Use the snapshot, and hypotheses of it, only in the block. A write in the block copies what it changes; write
        after the block where speed matters. After such a write, a use of the snapshot raises `ClosedSnapshotError`.
        """
        tables, snapshot = self._tables, self._get_snapshot()
        tables.reader_count += 1
        try:
            yield snapshot
        finally:
            tables.reader_count -= 1

    def snapshot(self) -> Snapshot:
        """Return an immutable view of the current state for use without a time limit. The next write makes a copy."""
        self._tables.reader_count += 1
        return self._get_snapshot()

    def _get_snapshot(self) -> Snapshot:
        if self._snapshot is None:
            self._snapshot = Snapshot(self._tables)
        return self._snapshot

    @property
    def names(self) -> Sequence[str]:
        """The names of the nodes by row."""
        return self._get_snapshot().names

    @property
    def nodes(self) -> Sequence[Node]:
        """The node objects by row."""
        return self._get_snapshot().nodes

    def row(self, name: str) -> int | None:
        """Return the row of node *name*, or None if it is unknown."""
        return self._get_snapshot().row(name)

    def get_node(self, name: str) -> Node | None:
        """Return the node *name*, or None if it is unknown."""
        row = self.row(name)
        return None if row is None else self.nodes[row]

    def get_object(self, kind: type[T], key: str) -> T | None:
        """Return an object that is neither a node nor a pod, or None if it is unknown."""
        return self._get_snapshot().get_object(kind, key)

    def pods_on(self, name: str) -> Mapping[str, AssignedPodInfo]:
        """Return the pods on node *name* by uid. The next write may change the mapping."""
        return self._get_snapshot().pods_on(name)

    def make_pod_info(self, pod: Pod) -> PodInfo:
        """Return the `PodInfo` of *pod* with its signature in this cluster."""
        return self._get_snapshot().make_pod_info(pod)

    def fork(self) -> "Cache":
        """Return a copy for a dry run: it may be changed, and this cache may be changed too.

        Both share what neither of them writes. Pods that are assumed here are assigned in the copy.
        """
        child = object.__new__(Cache)
        child._tables = self.snapshot().tables.fork()
        child._snapshot, child._assumed = None, {}
        child._has_composite_groups, child.write_count = self._has_composite_groups, self.write_count
        child._assigned, child._pending = dict(self._assigned), dict(self._pending)
        child._nominated_nodes, child._group_schedulers = dict(self._nominated_nodes), self._group_schedulers
        return child

    @property
    def pending_pods(self) -> Mapping[str, Pod]:
        """Pods without a node that are neither finished nor assumed, by uid."""
        return self._pending

    @property
    def assigned_pods(self) -> Mapping[str, AssignedPodInfo]:
        """Pods on nodes, assumed ones included, by uid."""
        return self._assigned

    def is_assumed(self, uid: str) -> bool:
        """Return whether the pod *uid* is assumed and not yet confirmed by the API server."""
        return uid in self._assumed

    def find_bound_node(self, uid: str) -> str:
        """Return the node to which a scheduler has bound the pod; empty if it is pending, assumed or unknown."""
        return "" if uid in self._assumed or uid not in self._assigned else self._assigned[uid].node_name

    def find_nominated_node(self, uid: str) -> str:
        """Return the node that the pod *uid* is nominated for; empty if there is none."""
        return self._nominated_nodes.get(uid, "")

    def deduplicate(self, obj: PodOrNode) -> tuple[PodOrNode, Hashable]:
        """Return a pod or node equal to *obj* that shares equal parts with earlier objects, and the owner of the parts.

        Later pods share the same parts only while their owner is in memory: an assigned pod or the caller holds it.
        """
        if isinstance(obj, Pod):
            return self._tables.signatures.deduplicate(obj)
        return self._tables.nodes.deduplicate(obj), None

    def forget_plugin_values(self) -> None:
        """Drop the values that plugins cached in the pods of this cache. They would keep plugins that were replaced."""
        self._tables.signatures.forget_values()
        self._tables.nodes.symbols.forget_values()  # new ones replace those of the signatures, which stay in memory

    # -- writing

    def _get_writable_tables(self) -> ClusterTables:
        self.write_count += 1
        if self._tables.reader_count:
            self._tables = self._tables.fork(new_history=False)
        elif self._snapshot is not None:
            self._snapshot.close()
        self._snapshot = None
        return self._tables

    def add_or_update_node(self, node: Node) -> None:
        """Add or replace a node."""
        self._get_writable_tables().add_or_update_node(node)

    def remove_node(self, name: str) -> None:
        """Remove a node; an unknown name is ignored."""
        if name in self._tables.nodes.row_by_name:
            self._get_writable_tables().remove_node(name)

    def add_or_update_object(self, obj: KubernetesObject) -> None:
        """Add or replace an object that is neither a node nor a pod.

        Composite pod groups are ignored without the feature gate CompositePodGroup.
        """
        if self._has_composite_groups or not isinstance(obj, CompositePodGroup):
            self._get_writable_tables().add_or_update_object(obj)

    def remove_object(self, kind: type[KubernetesObject], key: str) -> None:
        """Remove an object that is neither a node nor a pod; an unknown key is ignored."""
        self._get_writable_tables().remove_object(kind, key)

    def set_list_version(self, kind: type[KubernetesObject], resource_version: str) -> None:
        """Record that the cache has the whole list of *kind* at *resource_version*."""
        self._get_writable_tables().objects.list_versions[kind] = resource_version

    def add_or_update_pod(self, pod: Pod) -> None:
        """Add or update a pod from the API server. A pod that was assumed is confirmed if it has a node."""
        uid = pod.uid_or_key
        if pod.status.phase in _TERMINAL_PHASES:
            self.remove_pod(uid)
            return
        if not pod.spec.node_name:
            if uid in self._assumed:
                self._assumed[uid] = pod
            elif uid not in self._assigned:
                self._pending[uid] = pod
                self._add_pending_group_member(pod)
            return
        if self._pending.pop(uid, None) is not None:
            self.nominate(pod, "")
        self._assumed.pop(uid, None)
        assigned_pod = make_assigned_pod_info(pod, self._tables.signatures.get_signature(pod), pod.spec.node_name)
        old_pod, self._assigned[uid] = self._assigned.get(uid), assigned_pod
        if old_pod is None:
            self._get_writable_tables().add_pod(assigned_pod)
        else:
            self._get_writable_tables().replace_pod(old_pod, assigned_pod)

    def _add_pending_group_member(self, pod: Pod) -> None:
        """Add a member, unless another scheduler schedules it.

        Source: pkg/scheduler/eventhandlers.go, Scheduler.addPod (1.37).
        """
        counts = self._group_schedulers is None or pod.spec.scheduler_name in self._group_schedulers
        if counts and get_pod_group_key(pod) is not None:
            self._get_writable_tables().pod_groups.add_pending(pod)

    def remove_pod(self, uid: str) -> None:
        """Remove a deleted or finished pod; an unknown uid is ignored."""
        self._assumed.pop(uid, None)
        pending_pod = self._pending.pop(uid, None)
        if pending_pod is not None:
            self.nominate(pending_pod, "")
            if get_pod_group_key(pending_pod) is not None:
                self._get_writable_tables().pod_groups.remove(pending_pod)
        assigned_pod = self._assigned.pop(uid, None)
        if assigned_pod is not None:
            self._get_writable_tables().remove_pod(assigned_pod)

    def assume(self, pod: Pod, node_name: str) -> AssignedPodInfo:
        """Assume *pod* on *node_name*: count it there until it is confirmed or forgotten.

        Raises:
            AssumeError: the pod is already on a node.

        Source: pkg/scheduler/schedule_one.go, Scheduler.assume (1.36).
        """
        uid = pod.uid_or_key
        if uid in self._assigned:
            raise AssumeError(f"pod {pod.key} (uid {uid}) is on {self._assigned[uid].node_name} already")
        assigned_pod = make_assigned_pod_info(pod, self._tables.signatures.get_signature(pod), node_name, assumed=True)
        self._assumed[uid], self._assigned[uid] = self._pending.pop(uid, None), assigned_pod
        if self._assumed[uid] is not None:
            self.nominate(pod, "")
        self._get_writable_tables().add_pod(assigned_pod)
        return assigned_pod

    def forget(self, pod: Pod) -> None:
        """Remove the assumed *pod* from its node and make it pending again, as it was last updated.

        A pod that was never added or updated is removed: no event would ever do that if it was deleted before it was
        assumed. A pod that is not assumed is ignored.

        Source: pkg/scheduler/backend/cache/cache.go, cacheImpl.ForgetPod (1.36).
        """
        uid = pod.uid_or_key
        if uid not in self._assumed:
            return
        pending_pod = self._assumed.pop(uid)
        self._get_writable_tables().remove_pod(self._assigned.pop(uid))
        if pending_pod is not None:
            self._pending[uid] = pending_pod
            self._add_pending_group_member(pending_pod)

    def nominate(self, pod: Pod, node_name: str) -> None:
        """Nominate *pod* for *node_name*; an empty name removes the nomination.

        Source: pkg/scheduler/framework/runtime/framework.go, frameworkImpl.RunFilterPluginsWithNominatedPods;
        pkg/scheduler/backend/queue/nominator.go, nominator.addNominatedPodUnlocked (1.36).
        """
        uid = pod.uid_or_key
        old_node_name = self._nominated_nodes.pop(uid, "")
        if not node_name and not old_node_name:
            return
        nominations = dict(self._tables.nominated_pods)
        if old_node_name:
            others = tuple(pod_info for pod_info in nominations[old_node_name] if pod_info.uid != uid)
            if others:
                nominations[old_node_name] = others
            else:
                del nominations[old_node_name]
        if node_name:
            self._nominated_nodes[uid] = node_name
            pod_info = PodInfo(pod, self._tables.signatures.get_signature(pod))
            nominations[node_name] = (*nominations.get(node_name, ()), pod_info)
        self._get_writable_tables().nominated_pods = nominations
