"""The live cluster: the one writer of the tables, fed by watches or files, read through snapshots.

Each pod is known by uid and is either waiting, placed, or assumed (placed by us, unconfirmed: see `ledger`).
Source: A108, A116, A118, A123 to A128.
"""

import weakref
from collections.abc import Mapping
from typing import TypeVar

from extender.cluster.accounting import counting_of
from extender.cluster.groups import group_key
from extender.cluster.ledger import Ledger, LedgerError
from extender.cluster.pods import PlacedPod, PodQuery, placed
from extender.cluster.shape import Shapes
from extender.cluster.snapshot import Snapshot
from extender.cluster.store import Thing
from extender.cluster.story import Story
from extender.cluster.tables import Tables
from extender.cluster.vocabulary import Vocabulary
from extender.config.gates import FeatureGates
from extender.objects.node import Node
from extender.objects.pod import Pod

Lean = TypeVar("Lean", Pod, Node)

_FINISHED = ("Succeeded", "Failed")


class ClusterState:
    """What is known of one cluster.

    Not thread-safe: one thread writes and takes snapshots; snapshots may be read anywhere.
    """

    __slots__ = ("_lease", "_ledger", "_placed", "_story", "_tables", "_waiting")

    def __init__(self, gates: FeatureGates | None = None) -> None:
        """An empty cluster.

        Args:
            gates: those in force, which say what counts of a pod on a node; None: the default ones.
        """
        self._tables = Tables(Shapes(Vocabulary(), counting_of(gates or FeatureGates())))
        self._lease: weakref.ref[Snapshot] | None = None
        self._ledger = Ledger()
        self._placed: dict[str, PlacedPod] = {}
        self._waiting: dict[str, Pod] = {}
        self._story = Story()

    # -- reading

    def snapshot(self) -> Snapshot:
        """The cluster as it is now, frozen.

        Let go of it before the next write, or the writer must copy what it changes.
        """
        held = self._lease() if self._lease else None
        if held is None:
            held = Snapshot(self._tables)
            self._lease = weakref.ref(held)
        return held

    @property
    def waiting(self) -> Mapping[str, Pod]:
        """Pods without a node that are neither finished nor assumed, by uid."""
        return self._waiting

    @property
    def placed(self) -> Mapping[str, PlacedPod]:
        """Pods on nodes, assumed ones included, by uid."""
        return self._placed

    def is_assumed(self, uid: str) -> bool:
        """Whether the pod *uid* was placed by us and is not confirmed."""
        return uid in self._ledger

    def story(self, uid: str) -> list[str]:
        """What happened to the pod *uid*, oldest first."""
        return self._story.of(uid)

    def lean(self, thing: Lean) -> Lean:
        """An equal of a pod or a node that takes less memory: what it has in common with others is kept once."""
        if isinstance(thing, Pod):
            return self._tables.shapes.lean(thing)
        return self._tables.nodes.lean(thing)

    # -- writing

    def _writable(self) -> Tables:
        if self._lease is not None:
            if self._lease() is not None:
                self._tables = self._tables.fork(lineage=self._tables.lineage)
            self._lease = None
        return self._tables

    def put_node(self, node: Node) -> None:
        """A node appeared or changed."""
        self._writable().put_node(node)

    def drop_node(self, name: str) -> None:
        """A node is gone; nothing happens if it was unknown."""
        if name in self._tables.nodes.row_of:
            self._writable().drop_node(name)

    def put_object(self, thing: Thing) -> None:
        """An object that is neither a node nor a pod appeared or changed."""
        self._writable().put_object(thing)

    def drop_object(self, kind: type[Thing], key: str) -> None:
        """Such an object is gone; nothing happens if it was unknown."""
        self._writable().drop_object(kind, key)

    def put_pod(self, pod: Pod) -> None:
        """A pod appeared or changed, as the API server tells it."""
        uid = pod.metadata.uid or pod.key
        if pod.status.phase in _FINISHED:
            self.drop_pod(uid)
            return
        if not pod.spec.node_name:
            if uid not in self._placed:
                self._waiting[uid] = pod
                self._waits(pod)
                self._story.tell(uid, "waiting")
            return
        if self._waiting.pop(uid, None) is not None:
            self.nominate(pod, "")
        assumption = self._ledger.settle(uid)
        record = placed(pod, self._tables.shapes.of(pod), pod.spec.node_name)
        self._replace(self._placed.get(uid), record)
        self._story.tell(uid, "confirmed" if assumption else "placed", record.node_name)

    def _replace(self, known: PlacedPod | None, record: PlacedPod) -> None:
        tables = self._writable()
        self._placed[record.uid] = record
        if known is not None:
            same = (
                known.shape is record.shape,
                known.node_name == record.node_name,
                known.terminating == record.terminating,
            )
            if all(same):
                tables.on_node.writable(record.node_name, dict)[record.uid] = record
                tables.groups.place(record)
                return
            tables.drop_pod(known)
        tables.put_pod(record)

    def _waits(self, pod: Pod) -> None:
        """Tell the members of its group, if it has one, that *pod* waits."""
        if group_key(pod) is not None:
            self._writable().groups.wait(pod)

    def drop_pod(self, uid: str) -> None:
        """A pod is gone or finished; nothing happens if it was unknown."""
        self._ledger.settle(uid)
        waited = self._waiting.pop(uid, None)
        if waited is not None:
            self.nominate(waited, "")
            if group_key(waited) is not None:
                self._writable().groups.drop(waited)
        known = self._placed.pop(uid, None)
        if known is not None:
            self._writable().drop_pod(known)
        if known is not None or waited is not None:
            self._story.tell(uid, "gone", known.node_name if known else "")

    def assume(self, pod: Pod, node_name: str) -> PlacedPod:
        """*pod* was placed on *node_name* by us; it counts there from now on. Source: A022.

        Raises:
            LedgerError: the pod is on a node already.
        """
        uid = pod.metadata.uid or pod.key
        if uid in self._placed:
            raise LedgerError(f"pod {pod.key} (uid {uid}) is on {self._placed[uid].node_name} already")
        record = placed(pod, self._tables.shapes.of(pod), node_name, assumed=True)
        self._ledger.assume(record)
        self._placed[uid] = record
        if self._waiting.pop(uid, None) is not None:
            self.nominate(pod, "")
        self._writable().put_pod(record)
        self._story.tell(uid, "assumed", node_name)
        return record

    def forget(self, pod: Pod) -> None:
        """The assumption about *pod* is given up; it waits again. Nothing happens if there is none. Source: A108."""
        uid = pod.metadata.uid or pod.key
        record = self._ledger.settle(uid)
        if record is None:
            return
        del self._placed[uid]
        self._writable().drop_pod(record)
        self._waiting[uid] = pod
        self._waits(pod)
        self._story.tell(uid, "forgotten", record.node_name)

    def nominate(self, pod: Pod, node_name: str) -> None:
        """*pod* waits for room on *node_name*; the empty name takes the nomination back. Source: A095, D045."""
        uid = pod.metadata.uid or pod.key
        before = self._tables.nominated
        if not node_name and not any(q.uid == uid for queries in before.values() for q in queries):
            return
        kept = {name: tuple(q for q in queries if q.uid != uid) for name, queries in before.items()}
        if node_name:
            query = PodQuery(pod, self._tables.shapes.of(pod))
            kept[node_name] = (*kept.get(node_name, ()), query)
        self._writable().nominated = {name: queries for name, queries in kept.items() if queries}
        self._story.tell(uid, "nominated" if node_name else "no longer nominated", node_name)
