"""Keep all tables of a cluster consistent when nodes, pods and other objects are added, updated or removed."""

from collections.abc import Mapping
from typing import Any

import numpy as np

from extender.api.kinds.meta import KubernetesObject
from extender.api.kinds.node import Node
from extender.api.kinds.pod_group import CompositePodGroup, PodGroup
from extender.api.kinds.workload import Namespace
from extender.basics.copy_on_write import CopyOnWriteDict
from extender.cache.group_hierarchy import get_parent_key, make_group_key
from extender.cache.node_lists import NodeLists
from extender.cache.pod_batch import PodBatch
from extender.cache.pod_groups import PodGroupTable
from extender.cache.pod_info import AssignedPodInfo, PodInfo
from extender.cache.pod_signature import SignatureCache
from extender.cache.pods_on_node import PodsByUid, remove_pod_from_node, replace_pod_on_node
from extender.cache.tables.affinity_terms import AffinityTermTable
from extender.cache.tables.arrays import IntArray
from extender.cache.tables.history import ChangeLog, HistoryId, HistoryPosition
from extender.cache.tables.host_ports import HostPortTable
from extender.cache.tables.node_table import NodeTable, is_heartbeat
from extender.cache.tables.object_store import ObjectStore
from extender.cache.tables.selector_counts import SelectorCountTable
from extender.cache.tables.symbols import CPU, MEMORY, Symbols
from extender.cache.tables.volume_uses import NO_USES, ResourceClaimUseTable, VolumeUseTable

_MAX_PRIORITY = 2**31 - 1

_INT64_LIMIT = 1 << 63
"""The smallest integer that does not fit in int64."""


class ClusterTables:
    """The tables of a cluster at one time. Only their owner, a `Cache` or a `Hypothesis`, writes them.

    Attributes:
        nodes, selector_counts, affinity_terms, host_ports, volume_uses, claim_uses, pod_groups, objects: the tables.
        signatures: the pod signatures; shared by all forks.
        nominated_pods: nominated pods by node name.
        node_lists: lists that do not change with the tables; None if there are none.
        history_id: identifies the sequence of writes to the tables.
        node_change_log: the rows with a changed node.
        pod_change_log: the rows with changed pods.
        pod_group_cycle: identifies the pod group cycle whose members are assumed in these tables; None outside of one.
        reader_count: the number of open read scopes and of snapshots without a time limit; see `cache.Cache`. The
            tables must not change while it is positive.

    Source: pkg/scheduler/framework/runtime/framework.go, frameworkImpl.RunFilterPluginsWithNominatedPods (1.36).
    """

    def __init__(self, signatures: SignatureCache | None = None) -> None:
        """Create empty tables.

        *signatures* are shared with other tables, with their symbols; None creates new ones.
        """
        self.signatures = signatures or SignatureCache(Symbols())
        symbols = self.signatures.symbols
        self.nodes = NodeTable(symbols)
        self.selector_counts = SelectorCountTable()
        self.affinity_terms = AffinityTermTable()
        self.host_ports = HostPortTable()
        self.volume_uses = VolumeUseTable()
        self.claim_uses = ResourceClaimUseTable()
        self.pod_groups = PodGroupTable()
        self.objects = ObjectStore()
        self._pods_by_node: CopyOnWriteDict[str, PodsByUid] = CopyOnWriteDict(dict)
        self._unapplied_pod_changes: list[tuple[PodBatch, IntArray, int]] = []  # not yet applied to `_pods_by_node`
        self._pod_counts_by_priority: dict[int, int] = {}
        self._owns_priorities = True
        self.nominated_pods: Mapping[str, tuple[PodInfo, ...]] = {}
        self.node_lists: NodeLists | None = None
        self.node_change_log = ChangeLog()
        self.pod_change_log = ChangeLog()
        self.history_id = HistoryId()
        self.pod_group_cycle: object | None = None
        self.reader_count = 0

    def fork(self, *, new_history: bool = True, branch_point: HistoryPosition | None = None) -> "ClusterTables":
        """Return a copy-on-write copy. These tables must not change while the fork is in use.

        Args:
            new_history: whether the fork has a new history id and empty change logs. If not, it continues the history
                of these tables and shares their change logs.
            branch_point: the current position of these tables if the new history branches off from theirs; see
                `HistoryId.branch_point`.
        """
        child = object.__new__(ClusterTables)
        child.signatures = self.signatures
        child.nodes = self.nodes.fork()
        child.selector_counts = self.selector_counts.fork()
        child.affinity_terms = self.affinity_terms.fork()
        child.host_ports = self.host_ports.fork()
        child.volume_uses = self.volume_uses.fork()
        child.claim_uses = self.claim_uses.fork()
        child.pod_groups = self.pod_groups.fork()
        child.objects = self.objects.fork(new_history=new_history)
        child._pods_by_node = self.pods_by_node.fork()
        child._unapplied_pod_changes = []
        child._pod_counts_by_priority, child._owns_priorities = self._pod_counts_by_priority, False
        child.nominated_pods = self.nominated_pods
        child.node_lists = self.node_lists
        child.history_id = HistoryId(branch_point) if new_history else self.history_id
        child.node_change_log = ChangeLog() if new_history else self.node_change_log
        child.pod_change_log = ChangeLog() if new_history else self.pod_change_log
        child.pod_group_cycle = self.pod_group_cycle
        child.reader_count = 0
        return child

    # -- nodes

    def add_or_update_node(self, node: Node) -> None:
        """Add or replace a node. When a node is added, the pods that are already assigned to it are counted."""
        name = node.metadata.name
        old_row = self.nodes.row_by_name.get(name)
        if old_row is not None and is_heartbeat(self.nodes.objects[old_row], node):
            self.nodes.replace_object(old_row, node)
            return
        old_labels = None if old_row is None else self.nodes.objects[old_row].metadata.labels
        row = self.nodes.add_or_update(node)
        self._count_new_resources(except_row=row if old_row is None else None)
        if old_labels is None or old_labels != node.metadata.labels:
            self._invalidate_domains_of_changed_labels(old_labels or {}, node.metadata.labels)
        self.node_change_log.append(row)
        if old_row is None:
            self.pod_change_log.append(row)
            for pod in (self.pods_by_node.get(name) or {}).values():
                self._add_or_remove_pod_at_row(pod, row, 1)
        if self.nodes.has_many_unused_values(row):
            self._drop_unused_values()

    def _count_new_resources(self, except_row: int | None = None) -> None:
        """Count the requests of resources that have an id since the last call, except for the node in *except_row*.

        Pods may request a resource before the first node has it.
        """
        nodes = self.nodes
        first_id, nodes.counted_resources = nodes.counted_resources, len(nodes.symbols.resources)
        if first_id == nodes.counted_resources:
            return
        nodes.grow_resource_columns()
        requested = nodes.columns.get_writable("requested")
        for row, name in enumerate(nodes.names):
            pods = () if row == except_row else (self.pods_by_node.get(name) or {}).values()
            requests = [each for pod in pods for each in pod.signature.assigned_requests if each[0] >= first_id]
            for resource_id, amount in requests:
                _add_with_wraparound(requested, resource_id, row, amount)
            if requests:
                self.pod_change_log.append(row)

    def _drop_unused_values(self) -> None:
        """Free the taints, features and label values of removed nodes, and all results that have their ids."""
        self.nodes.drop_unused_values()
        self.selector_counts.invalidate_all_domains()
        self.affinity_terms.invalidate_all_domains()
        self.node_change_log.invalidate()
        self.pod_change_log.invalidate()

    def remove_node(self, name: str) -> None:
        """Remove a node. Its pods stay in `pods_by_node` and are counted again if the node is added again.

        Source: pkg/scheduler/backend/cache/cache.go, cacheImpl.RemoveNode (1.36).
        """
        self._count_new_resources()
        row = self.nodes.row_by_name[name]
        last_row = len(self.nodes) - 1
        last_node = self.nodes.names[last_row]
        removed_labels = self.nodes.objects[row].metadata.labels
        for pod in (self.pods_by_node.get(name) or {}).values():
            self._add_or_remove_pod_at_row(pod, row, -1)
        if last_node != name:
            for pod in (self.pods_by_node.get(last_node) or {}).values():
                self._add_or_remove_pod_at_row(pod, last_row, -1)
        self.nodes.remove(name)
        self._invalidate_domains_of_changed_labels(removed_labels, {})
        if last_node != name:
            for pod in (self.pods_by_node.get(last_node) or {}).values():
                self._add_or_remove_pod_at_row(pod, row, 1)
        self.node_change_log.invalidate()
        self.pod_change_log.invalidate()

    def _invalidate_domains_of_changed_labels(
        self, old_labels: Mapping[str, str], new_labels: Mapping[str, str]
    ) -> None:
        label_keys = old_labels.keys() | new_labels.keys()
        keys = {key for key in label_keys if old_labels.get(key) != new_labels.get(key)}
        self.selector_counts.invalidate_domains(keys)
        self.affinity_terms.invalidate_domains(keys)

    # -- pods

    def add_pod(self, pod: AssignedPodInfo) -> None:
        """Add *pod* to its node. The pod must not be on the node already."""
        self._count_new_resources()
        self.pods_by_node.get_writable(pod.node_name, dict)[pod.uid] = pod
        self._count_priority(pod, 1)
        self.pod_groups.add_assigned(pod)
        row = self.nodes.row_by_name.get(pod.node_name)
        if row is not None:
            self._add_or_remove_pod_at_row(pod, row, 1)

    def remove_pod(self, pod: AssignedPodInfo, *, keep_in_group: bool = False) -> None:
        """Remove *pod* from its node, and from its group unless *keep_in_group* is set.

        Raises:
            KeyError: the pod is not on its node.
        """
        self._count_new_resources()
        pods = self.pods_by_node.get_writable(pod.node_name, dict)
        remove_pod_from_node(pods, pod.uid)
        if not pods:
            self.pods_by_node.remove(pod.node_name)
        self._count_priority(pod, -1)
        if not keep_in_group:
            self.pod_groups.remove(pod.pod)
        row = self.nodes.row_by_name.get(pod.node_name)
        if row is not None:
            self._add_or_remove_pod_at_row(pod, row, -1)

    def _count_priority(self, pod: AssignedPodInfo, sign: int) -> None:
        if not self._owns_priorities:
            self._pod_counts_by_priority, self._owns_priorities = dict(self._pod_counts_by_priority), True
        priority = pod.signature.priority
        count = self._pod_counts_by_priority.pop(priority, 0) + sign
        if count:
            self._pod_counts_by_priority[priority] = count

    @property
    def lowest_priority(self) -> int:
        """The lowest priority of a pod on a node; the highest possible one without pods.

        It may be lower in a hypothesis that removed pods with `add_or_remove_pods`.
        """
        return min(self._pod_counts_by_priority, default=_MAX_PRIORITY)

    def replace_pod(self, old_pod: AssignedPodInfo, new_pod: AssignedPodInfo) -> None:
        """Replace a pod by its new state.

        Most replacements change only the labels, because the binding of a pod copies labels of the node to the pod, or
        nothing that is counted, such as the status.

        Raises:
            KeyError: *old_pod* is not on its node.

        Source: plugin/pkg/admission/podtopologylabels/admission.go, Plugin.Admit (1.36).
        """
        row = self.nodes.row_by_name.get(new_pod.node_name)
        counts_change = old_pod.signature is not new_pod.signature or old_pod.terminating != new_pod.terminating
        if old_pod.node_name != new_pod.node_name or (
            counts_change and (row is None or not _differ_only_in_labels(old_pod, new_pod))
        ):
            self.remove_pod(old_pod)
            self.add_pod(new_pod)
            return
        replace_pod_on_node(self.pods_by_node.get_writable(new_pod.node_name, dict), new_pod)
        self.pod_groups.remove(old_pod.pod)
        self.pod_groups.add_assigned(new_pod)
        if row is None or not counts_change:
            return
        for pod, sign in ((old_pod, -1), (new_pod, 1)):
            self.selector_counts.add_or_remove(
                pod.signature.pod_labels, row, self.nodes, terminating=pod.terminating, sign=sign
            )
        self.pod_change_log.append(row)

    def _add_or_remove_pod_at_row(self, pod: AssignedPodInfo, row: int, sign: int) -> None:
        signature, nodes = pod.signature, self.nodes
        columns = nodes.columns
        requested = columns.get_writable("requested")
        nonzero_requested = columns.get_writable("nonzero_requested")
        for resource_id, amount in signature.assigned_requests:
            _add_with_wraparound(requested, resource_id, row, sign * amount)
        for resource_id, amount in enumerate(signature.assigned_nonzero_requests):
            _add_with_wraparound(nonzero_requested, resource_id, row, sign * amount)
        columns.get_writable("pod_count")[row] += sign
        if signature.host_ports:
            (self.host_ports.add if sign > 0 else self.host_ports.remove)(row, signature.host_ports)
        if signature.volume_uses is not NO_USES:
            self.volume_uses.add_or_remove(pod.pod, signature.volume_uses, row, sign)
        if signature.uses_node_allocatable_claims:
            self.claim_uses.add_or_remove(pod.pod, pod.uid, row, sign)
        self.selector_counts.add_or_remove(signature.pod_labels, row, nodes, terminating=pod.terminating, sign=sign)
        terms = signature.pod_affinity_terms.all_terms
        if terms:
            self.affinity_terms.add_or_remove(terms, row, nodes, sign=sign)
        self.pod_change_log.append(row)

    @property
    def pods_by_node(self) -> CopyOnWriteDict[str, PodsByUid]:
        """The pods on each node by node name, also on nodes that are not in the node table."""
        if self._unapplied_pod_changes:
            self._apply_pod_changes()
        return self._pods_by_node

    def _apply_pod_changes(self) -> None:
        for batch, indices, sign in self._unapplied_pod_changes:
            for index in indices.tolist():
                pod = batch.pods[index]
                pods = self._pods_by_node.get_writable(pod.node_name, dict)
                if sign > 0:
                    pods[pod.uid] = pod
                else:
                    del pods[pod.uid]
        self._unapplied_pod_changes.clear()

    def add_or_remove_pods(self, batch: PodBatch, indices: IntArray, sign: int) -> None:
        """Add pods of *batch* to their nodes (*sign* 1) or remove them (-1), in the tables that Filter plugins read.

        `lowest_priority`, `selector_counts` and `affinity_terms`, which PreFilter plugins read, are not updated.
        `pods_by_node` is updated when it is next read, since most plugins read only columns. *indices* are distinct
        indices of *batch*, int64. The nodes of the pods are in the node table, and pods to remove are on them.
        """
        if not len(indices):
            return
        self._count_new_resources()
        rows, signature_index = batch.rows[indices], batch.signature_index[indices]
        columns = self.nodes.columns
        requested = columns.get_writable("requested")
        for index, resource_id in enumerate(batch.resource_ids):
            np.add.at(requested[resource_id], rows, sign * batch.requests[index, signature_index])
        nonzero_requested = columns.get_writable("nonzero_requested")
        for resource_id in (CPU, MEMORY):
            np.add.at(nonzero_requested[resource_id], rows, sign * batch.nonzero_requests[resource_id, signature_index])
        np.add.at(columns.get_writable("pod_count"), rows, sign)
        self._unapplied_pod_changes.append((batch, indices.copy(), sign))
        for index in (
            batch.indices_with_ports_volumes_or_claims.intersection(indices.tolist())
            if batch.indices_with_ports_volumes_or_claims
            else ()
        ):
            pod, row = batch.pods[index], int(batch.rows[index])
            (self.host_ports.add if sign > 0 else self.host_ports.remove)(row, pod.signature.host_ports)
            self.volume_uses.add_or_remove(pod.pod, pod.signature.volume_uses, row, sign)
            if pod.signature.uses_node_allocatable_claims:
                self.claim_uses.add_or_remove(pod.pod, pod.uid, row, sign)
        self.pod_change_log.extend(rows)

    # -- other objects

    def add_or_update_object(self, obj: KubernetesObject) -> None:
        """Add or replace an object that is neither a node nor a pod."""
        if isinstance(obj, PodGroup | CompositePodGroup):
            self._set_group_parent(type(obj), obj.metadata.key, obj)
        self.objects.add_or_update(obj)
        if isinstance(obj, Namespace):
            self._set_namespace_labels(obj.metadata.name, obj.metadata.labels)

    def remove_object(self, kind: type[KubernetesObject], key: str) -> None:
        """Remove an object that is neither a node nor a pod; an unknown key is ignored."""
        if kind is PodGroup or kind is CompositePodGroup:
            self._set_group_parent(kind, key, None)
        self.objects.remove(kind, key)
        if kind is Namespace:
            self._set_namespace_labels(key, None)

    def _set_group_parent(self, kind: type[Any], key: str, group: PodGroup | CompositePodGroup | None) -> None:
        """Update the children of composite pod groups before the group *key* is replaced by *group*, or removed."""
        old_group: PodGroup | CompositePodGroup | None = self.objects.get(kind, key)
        self.pod_groups.set_parent(
            make_group_key(key)._replace(is_composite=kind is CompositePodGroup),
            None if old_group is None else get_parent_key(old_group),
            None if group is None else get_parent_key(group),
        )

    def _set_namespace_labels(self, name: str, labels: dict[str, str] | None) -> None:
        if self.selector_counts.namespace_labels.get(name) == labels:
            return
        labels_by_namespace = dict(self.selector_counts.namespace_labels)
        if labels is None:
            del labels_by_namespace[name]
        else:
            labels_by_namespace[name] = labels
        self.selector_counts.set_namespace_labels(labels_by_namespace)
        self.affinity_terms.set_namespace_labels(labels_by_namespace)


def _differ_only_in_labels(pod: AssignedPodInfo, other: AssignedPodInfo) -> bool:
    """Return whether two pods of one node count equally in all tables but those of labels."""
    signature, other_signature = pod.signature, other.signature
    return (
        signature.priority == other_signature.priority
        and signature.assigned_requests == other_signature.assigned_requests
        and signature.assigned_nonzero_requests == other_signature.assigned_nonzero_requests
        and signature.host_ports == other_signature.host_ports
        and not any(
            item.volume_uses is not NO_USES or item.uses_node_allocatable_claims or item.pod_affinity_terms.all_terms
            for item in (signature, other_signature)
        )
    )


def _add_with_wraparound(column: IntArray, resource_id: int, row: int, amount: int) -> None:
    """Add *amount* to one entry. Sums beyond int64 wrap around, as upstream's do."""
    total = column.item(resource_id, row) + amount
    if not -_INT64_LIMIT <= total < _INT64_LIMIT:
        total = (total + _INT64_LIMIT) % (2 * _INT64_LIMIT) - _INT64_LIMIT
    column[resource_id, row] = total
