"""All tables of a cluster as one: what happens to them together when a node or a pod comes or goes."""

from collections.abc import Mapping

import numpy as np

from extender.basics.cow import CowDict
from extender.cluster.arrays import IntArray
from extender.cluster.batches import PodBatch
from extender.cluster.claim_uses import ClaimTable
from extender.cluster.counts import CountTable
from extender.cluster.groups import GroupTable
from extender.cluster.journal import Journal
from extender.cluster.nodes import NodeTable, is_heartbeat
from extender.cluster.pods import PlacedPod, PodQuery
from extender.cluster.ports import PortTable
from extender.cluster.shape import Shapes
from extender.cluster.store import ObjectStore, Thing
from extender.cluster.terms import TermTable
from extender.cluster.vocabulary import Vocabulary
from extender.cluster.volume_uses import NO_USES, VolumeTable
from extender.objects.node import Node
from extender.objects.workload import Namespace

Pods = dict[str, PlacedPod]
"""Pods by uid."""

_BEYOND = 1 << 63
"""The first whole number that is too great for int64."""


class Tables:
    """The tables of one view of a cluster. Only their owner writes: a `ClusterState`, or one `Hypothesis`.

    Attributes:
        nodes, counts, terms, ports, volumes, claims, groups, objects: the tables.
        shapes: pods to shapes; shared by all forks.
        nominated: pods that wait and are nominated, by node name. Source: A095.
        node_journal, pod_journal: rows whose node facts, or whose pods, were written.
    """

    __slots__ = (
        "_moves",
        "_on_node",
        "claims",
        "counts",
        "groups",
        "lineage",
        "node_journal",
        "nodes",
        "nominated",
        "objects",
        "pod_journal",
        "ports",
        "shapes",
        "terms",
        "volumes",
    )

    def __init__(self, shapes: Shapes | None = None) -> None:
        """Empty tables.

        Args:
            shapes: to share them, and their vocabulary, with other tables; None begins with nothing known.
        """
        self.shapes = shapes or Shapes(Vocabulary())
        vocabulary = self.shapes.vocabulary
        self.nodes = NodeTable(vocabulary)
        self.counts = CountTable(vocabulary.pod_classes)
        self.terms = TermTable(vocabulary.pod_classes)
        self.ports = PortTable()
        self.volumes = VolumeTable()
        self.claims = ClaimTable()
        self.groups = GroupTable()
        self.objects = ObjectStore()
        self._on_node: CowDict[str, Pods] = CowDict(dict)
        self._moves: list[tuple[PodBatch, IntArray, int]] = []  # what `_on_node` does not show yet
        self.nominated: Mapping[str, tuple[PodQuery, ...]] = {}
        self.node_journal = Journal()
        self.pod_journal = Journal()
        self.lineage = object()

    def fork(self, *, lineage: object | None = None) -> "Tables":
        """The same cluster, to be written without touching this one, which must stay as it is while the fork lives.

        Args:
            lineage: given when the fork carries on this history (the journals go on); otherwise a new history begins.
        """
        child = object.__new__(Tables)
        child.shapes = self.shapes
        child.nodes = self.nodes.fork()
        child.counts = self.counts.fork()
        child.terms = self.terms.fork()
        child.ports = self.ports.fork()
        child.volumes = self.volumes.fork()
        child.claims = self.claims.fork()
        child.groups = self.groups.fork()
        child.objects = self.objects.fork(branch=lineage is None)
        child._on_node = self.on_node.fork()
        child._moves = []
        child.nominated = self.nominated
        child.lineage = lineage or object()
        child.node_journal = self.node_journal if lineage else Journal()
        child.pod_journal = self.pod_journal if lineage else Journal()
        return child

    # -- nodes

    def put_node(self, node: Node) -> None:
        """Add or replace a node; pods that waited for it count from now on."""
        name = node.metadata.name
        known = self.nodes.row_of.get(name)
        if known is not None and is_heartbeat(self.nodes.objects[known], node):
            self.nodes.refresh(known, node)
            return
        before = None if known is None else self.nodes.objects[known].metadata.labels
        row = self.nodes.put(node)
        if before is None or before != node.metadata.labels:
            self._labels_changed(before or {}, node.metadata.labels)
        self.node_journal.wrote(row)
        if known is None:
            self.pod_journal.wrote(row)
            for pod in (self.on_node.get(name) or {}).values():
                self._count(pod, row, 1)

    def drop_node(self, name: str) -> None:
        """Forget a node; its pods stay known and count again when it comes back. Source: A116."""
        row = self.nodes.row_of[name]
        last = len(self.nodes) - 1
        mover = self.nodes.names[last]
        gone = self.nodes.objects[row].metadata.labels
        for pod in (self.on_node.get(name) or {}).values():
            self._count(pod, row, -1)
        if mover != name:
            for pod in (self.on_node.get(mover) or {}).values():
                self._count(pod, last, -1)
        self.nodes.drop(name)
        self._labels_changed(gone, {})
        if mover != name:
            for pod in (self.on_node.get(mover) or {}).values():
                self._count(pod, row, 1)
        self.node_journal.forget()
        self.pod_journal.forget()

    def _labels_changed(self, before: Mapping[str, str], after: Mapping[str, str]) -> None:
        keys = {key for key in before.keys() | after.keys() if before.get(key) != after.get(key)}
        self.counts.labels_changed(keys)
        self.terms.labels_changed(keys)

    # -- pods

    def put_pod(self, pod: PlacedPod) -> None:
        """*pod* is on its node now; it must not be there already."""
        self.on_node.writable(pod.node_name, dict)[pod.uid] = pod
        self.groups.place(pod)
        row = self.nodes.row_of.get(pod.node_name)
        if row is not None:
            self._count(pod, row, 1)

    def drop_pod(self, pod: PlacedPod) -> None:
        """*pod* is no longer on its node."""
        there = self.on_node.writable(pod.node_name, dict)
        there.pop(pod.uid)
        if not there:
            self.on_node.drop(pod.node_name)
        self.groups.drop(pod.pod)
        row = self.nodes.row_of.get(pod.node_name)
        if row is not None:
            self._count(pod, row, -1)

    def _count(self, pod: PlacedPod, row: int, sign: int) -> None:
        shape, nodes = pod.shape, self.nodes
        columns = nodes.columns
        taken = shape.taken
        nodes.deepen()
        requested, nonzero = columns.write("requested"), columns.write("nonzero")
        for resource, amount in taken:
            _add(requested, resource, row, sign * amount)
        for line, amount in enumerate(shape.nonzero):
            _add(nonzero, line, row, sign * amount)
        columns.write("pod_count")[row] += sign
        if shape.host_ports:
            (self.ports.add if sign > 0 else self.ports.remove)(row, shape.host_ports)
        if shape.volumes is not NO_USES:
            self.volumes.count(pod.pod, shape.volumes, row, sign)
        if shape.takes_by_claims:
            self.claims.count(pod.pod, pod.uid, row, sign)
        self.counts.add(shape.number, row, nodes, terminating=pod.terminating, sign=sign)
        carried = shape.affinity.all
        if carried:
            self.terms.add(carried, row, nodes, sign=sign)
        self.pod_journal.wrote(row)

    @property
    def on_node(self) -> CowDict[str, Pods]:
        """The pods on each node, by node name (also of nodes that are not known, A116)."""
        if self._moves:
            self._settle()
        return self._on_node

    def _settle(self) -> None:
        for batch, which, sign in self._moves:
            for index in which.tolist():
                pod = batch.pods[index]
                there = self._on_node.writable(pod.node_name, dict)
                if sign > 0:
                    there[pod.uid] = pod
                else:
                    del there[pod.uid]
        self._moves.clear()

    def move(self, batch: PodBatch, which: IntArray, sign: int) -> None:
        """Pods of *batch* come to their nodes (*sign* 1) or leave them (-1), in what one node's row shows only.

        The sums over the whole cluster, `counts` and `terms`, stay: they are for questions asked before any node.
        Who is on a node is worked out when somebody asks for it, since most plugins read columns only.
        A host port that a pod leaves is free, even if another pod on that node has it too: see `PortTable.release`.

        Args:
            batch: the pods; their nodes are known.
            which: indices into it, each once, int64; pods that leave must be there.
            sign: 1 or -1.
        """
        if not len(which):
            return
        self.nodes.deepen()
        rows, shapes = batch.rows[which], batch.shape_of[which]
        columns = self.nodes.columns
        requested = columns.write("requested")
        for line, resource in enumerate(batch.lines):
            np.add.at(requested[resource], rows, sign * batch.taken[line, shapes])
        nonzero = columns.write("nonzero")
        for line in range(2):
            np.add.at(nonzero[line], rows, sign * batch.nonzero[line, shapes])
        np.add.at(columns.write("pod_count"), rows, sign)
        self._moves.append((batch, which.copy(), sign))
        for index in batch.special.intersection(which.tolist()) if batch.special else ():
            pod, row = batch.pods[index], int(batch.rows[index])
            (self.ports.add if sign > 0 else self.ports.release)(row, pod.shape.host_ports)
            self.volumes.count(pod.pod, pod.shape.volumes, row, sign)
            if pod.shape.takes_by_claims:
                self.claims.count(pod.pod, pod.uid, row, sign)
        self.pod_journal.wrote_all(rows)

    # -- everything else

    def put_object(self, thing: Thing) -> None:
        """Add or replace an object that is neither a node nor a pod."""
        self.objects.put(thing)
        if isinstance(thing, Namespace):
            self._namespace_labels(thing.metadata.name, thing.metadata.labels)

    def drop_object(self, kind: type[Thing], key: str) -> None:
        """Forget an object that is neither a node nor a pod."""
        self.objects.drop(kind, key)
        if kind is Namespace:
            self._namespace_labels(key, None)

    def _namespace_labels(self, name: str, labels: dict[str, str] | None) -> None:
        if self.counts.namespace_labels.get(name) == labels:
            return
        known = dict(self.counts.namespace_labels)
        if labels is None:
            del known[name]
        else:
            known[name] = labels
        self.counts.namespaces_changed(known)
        self.terms.namespaces_changed(known)


def _add(lines: IntArray, line: int, row: int, amount: int) -> None:
    """Add *amount* to one number; absurd sums wrap around, as upstream's do."""
    total = lines.item(line, row) + amount
    lines[line, row] = total if -_BEYOND <= total < _BEYOND else (total + _BEYOND) % (2 * _BEYOND) - _BEYOND
