"""What if: a snapshot with some pods gone and others there.

Copies only what it writes; the snapshot stays as it was.
"""

from extender.cluster.arrays import IntArray
from extender.cluster.batches import PodBatch
from extender.cluster.pods import PlacedPod, PodQuery, placed
from extender.cluster.snapshot import Snapshot
from extender.objects.node import Node


class Hypothesis:
    """A cluster that might be. Holds its snapshot, so that the live tables are not written under it."""

    __slots__ = ("_base", "_tables")

    def __init__(self, base: Snapshot) -> None:
        self._base = base
        self._tables = base.tables.fork()

    def place(self, pod: PodQuery, node_name: str) -> PlacedPod:
        """Assume *pod* on *node_name*."""
        there = placed(pod.pod, pod.shape, node_name, assumed=True)
        self._tables.put_pod(there)
        return there

    def withdraw(self, pod: PodQuery) -> None:
        """Assume that *pod* is nominated for no node."""
        self._tables.nominated = {
            name: left
            for name, queries in self._tables.nominated.items()
            if (left := tuple(query for query in queries if query.uid != pod.uid))
        }

    def put_node(self, node: Node) -> None:
        """Assume *node* instead of the one of its name, or beside the others; the pods on it still count."""
        self._tables.put_node(node)

    def remove(self, pod: PlacedPod) -> None:
        """Assume *pod* gone.

        Raises:
            KeyError: it is not there.
        """
        self._tables.drop_pod(pod)

    def restore(self, pod: PlacedPod) -> None:
        """Assume a removed pod back where it was."""
        self._tables.put_pod(pod)

    def take_away(self, batch: PodBatch, which: IntArray) -> None:
        """Assume those pods of *batch*, which are there, gone, as far as one node's row shows it: see `Tables.move`."""
        self._tables.move(batch, which, -1)

    def bring(self, batch: PodBatch, which: IntArray) -> None:
        """Assume those pods of *batch* on their nodes, as far as one node's row shows it."""
        self._tables.move(batch, which, 1)

    def snapshot(self) -> Snapshot:
        """The cluster as assumed now; use it before the next change."""
        return Snapshot(self._tables)
