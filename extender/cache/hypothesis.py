"""A modified copy of a snapshot, for dry runs such as preemption.

A hypothesis copies only the arrays that it writes. The snapshot does not change.
"""

from collections.abc import Iterable

from extender.api.kinds.node import Node
from extender.cache.node_lists import make_node_lists
from extender.cache.pod_batch import PodBatch
from extender.cache.pod_info import AssignedPodInfo, PodInfo, make_assigned_pod_info
from extender.cache.snapshot import Snapshot
from extender.cache.tables.arrays import IntArray
from extender.cache.tables.images import ImageTable


class Hypothesis:
    """A writable copy of a snapshot. Both share arrays, so it is used only in the read scope of the snapshot."""

    def __init__(self, snapshot: Snapshot, *, shares_results: bool = False) -> None:
        """Create a copy of *snapshot*.

        Args:
            snapshot: the snapshot to copy.
            shares_results: whether cached results of *snapshot* are used in the hypothesis, and the other way round.
                Only `assume_pod`, `remove_pod`, `restore_pod`, `add_or_update_node` and `remove_nomination` may then
                be called, because the change logs have no other changes.
        """
        self._base_snapshot = snapshot
        self._tables = snapshot.tables.fork(branch_point=snapshot.position if shares_results else None)

    def assume_pod(self, pod: PodInfo, node_name: str) -> AssignedPodInfo:
        """Assume *pod* on *node_name*."""
        assumed_pod = make_assigned_pod_info(pod.pod, pod.signature, node_name, assumed=True)
        self._tables.add_pod(assumed_pod)
        return assumed_pod

    def begin_pod_group_cycle(self) -> None:
        """Begin the cycle of a pod group, unless the snapshot belongs to one already. Later copies belong to it too."""
        if self._tables.pod_group_cycle is None:
            self._tables.pod_group_cycle = object()

    def remove_nomination(self, pod: PodInfo) -> None:
        """Remove the nominations of *pod*."""
        self._tables.nominated_pods = {
            name: remaining_pods
            for name, pods in self._tables.nominated_pods.items()
            if (remaining_pods := tuple(pod_info for pod_info in pods if pod_info.uid != pod.uid))
        }

    def replace_nominated_pod(self, pod: PodInfo) -> None:
        """Replace the nominated pod that has the uid of *pod*, on the same node."""
        self._tables.nominated_pods = {
            name: tuple(pod if pod_info.uid == pod.uid else pod_info for pod_info in pods)
            for name, pods in self._tables.nominated_pods.items()
        }

    def index_only_images(self, names: Iterable[str]) -> None:
        """Index only the images named *names* from now on; see `ImageTable.index_only`."""
        self._tables.nodes.images.index_only(names)

    def forget_images(self) -> None:
        """Forget the images of all nodes."""
        self._tables.nodes.images = ImageTable()

    def fork_node_sets(self) -> None:
        """Forget the sets of taints and of features of added nodes with the hypothesis; see `Symbols`."""
        nodes = self._tables.nodes
        nodes.symbols = nodes.symbols.fork_node_sets()

    def freeze_node_lists(self) -> None:
        """Keep the lists of nodes with affinity terms, and of used claims, as they are now; see `NodeLists`."""
        tables = self._base_snapshot.tables
        self._tables.node_lists = make_node_lists(tables.affinity_terms, tables.volume_uses, tables.nodes)

    def add_or_update_node(self, node: Node) -> None:
        """Add *node*, or replace the node of the same name. The pods on the node are kept."""
        self._tables.add_or_update_node(node)

    def remove_pod(self, pod: AssignedPodInfo, *, keep_in_group: bool = False) -> None:
        """Remove *pod* from its node, and from its group unless *keep_in_group* is set.

        Raises:
            KeyError: the pod is not on its node.
        """
        self._tables.remove_pod(pod, keep_in_group=keep_in_group)

    def evict_pod(self, pod: AssignedPodInfo, *, keep_in_group: bool = False) -> None:
        """Remove a potential victim, as `remove_pod`. Its ports are free then: see `HostPortTable.free_ports`.

        Raises:
            KeyError: the pod is not on its node.
        """
        self.remove_pod(pod, keep_in_group=keep_in_group)
        row = self._tables.nodes.row_by_name.get(pod.node_name)
        if row is not None:
            self._tables.host_ports.free_ports(row, pod.signature.host_ports)

    def restore_pod(self, pod: AssignedPodInfo) -> None:
        """Add a removed pod to its node again."""
        self._tables.add_pod(pod)

    def remove_pods(self, batch: PodBatch, indices: IntArray) -> None:
        """Remove pods of *batch* from their nodes. Only the tables of `ClusterTables.add_or_remove_pods` change."""
        self._tables.add_or_remove_pods(batch, indices, -1)

    def evict_pods(self, batch: PodBatch, indices: IntArray) -> None:
        """Remove potential victims, as `remove_pods`. Their ports are free then: see `HostPortTable.free_ports`."""
        self.remove_pods(batch, indices)
        if batch.indices_with_ports_volumes_or_claims:
            for index in batch.indices_with_ports_volumes_or_claims.intersection(indices.tolist()):
                self._tables.host_ports.free_ports(int(batch.rows[index]), batch.pods[index].signature.host_ports)

    def restore_pods(self, batch: PodBatch, indices: IntArray) -> None:
        """Add removed pods of *batch* again. Only the tables of `ClusterTables.add_or_remove_pods` change."""
        self._tables.add_or_remove_pods(batch, indices, 1)

    def snapshot(self) -> Snapshot:
        """Return a snapshot of the current state. The snapshot is invalid after the next change."""
        return Snapshot(self._tables)
