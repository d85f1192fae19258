"""Many placed pods at once, laid out in arrays, so that thousands can be imagined gone or back in a few steps."""

from collections.abc import Callable, Sequence

import numpy as np

from extender.basics.memo import Memo
from extender.cluster.arrays import IntArray
from extender.cluster.pods import PlacedPod
from extender.cluster.shape import Shape
from extender.cluster.volume_uses import NO_USES


class PodBatch(Memo):
    """Pods, each on a row of its own or of several of them.

    Attributes:
        pods: the pods.
        rows: the row of each, int64, shape (len(pods),).
        shapes: the distinct shapes among them, perhaps with others.
        shape_of: the index into `shapes` of each pod, int64, shape (len(pods),).
        lines: the ids of the resources that any of the shapes takes.
        taken: what a pod of each shape takes, int64, shape (len(lines), len(shapes)): milli-CPU, bytes, counts.
        nonzero: as in the node table, int64, shape (2, len(shapes)).
        special: indices of the pods that use host ports or volumes, or take node resources through claims.
    """

    __slots__ = ("_is_special", "lines", "nonzero", "pods", "rows", "shape_of", "shapes", "special", "taken")

    def __init__(self, pods: Sequence[PlacedPod], rows: IntArray) -> None:
        shapes = [pod.shape for pod in pods]
        self.shapes = tuple(dict.fromkeys(shapes))
        number_of = {shape: number for number, shape in enumerate(self.shapes)}
        shape_of: IntArray = np.fromiter(map(number_of.__getitem__, shapes), dtype=np.int64, count=len(shapes))
        self.lines = tuple({resource: None for shape in self.shapes for resource, _ in shape.taken})
        line_of = {resource: line for line, resource in enumerate(self.lines)}
        self.taken = np.zeros((len(self.lines), len(self.shapes)), dtype=np.int64)
        self.nonzero = np.zeros((2, len(self.shapes)), dtype=np.int64)
        self._is_special = np.zeros(len(self.shapes), dtype=np.bool_)
        for index, shape in enumerate(self.shapes):
            for resource, amount in shape.taken:
                self.taken[line_of[resource], index] = amount
            self.nonzero[:, index] = shape.nonzero
            self._is_special[index] = bool(shape.host_ports) or shape.volumes is not NO_USES or shape.takes_by_claims
        self._hold(pods, rows, shape_of)

    def _hold(self, pods: Sequence[PlacedPod], rows: IntArray, shape_of: IntArray) -> None:
        super().__init__()  # nothing is remembered yet, of other pods either
        self.pods, self.rows, self.shape_of = pods, rows, shape_of
        self.special = frozenset(np.flatnonzero(self._is_special[shape_of]).tolist())

    def only(self, which: IntArray) -> "PodBatch":
        """The pods with these indices (int64), in this order."""
        batch = object.__new__(PodBatch)
        batch.shapes, batch.lines, batch.taken, batch.nonzero = self.shapes, self.lines, self.taken, self.nonzero
        batch._is_special = self._is_special
        batch._hold(list(map(self.pods.__getitem__, which.tolist())), self.rows[which], self.shape_of[which])
        return batch

    def __len__(self) -> int:
        return len(self.pods)

    def by_shape(self, worth: Callable[[Shape], int]) -> IntArray:
        """What *worth* says about the shape of each pod: int64, shape (len(pods),)."""
        numbers = np.fromiter(map(worth, self.shapes), dtype=np.int64, count=len(self.shapes))
        return numbers[self.shape_of]

    def sums(self, worth: IntArray, size: int) -> IntArray:
        """*worth*, one number a pod, added up by row: int64, shape (*size*,)."""
        return np.bincount(self.rows, weights=worth, minlength=size)[:size].astype(np.int64)
