"""Many placed pods at once, laid out in arrays, so that thousands can be imagined gone or back in a few steps."""

from collections.abc import Callable, Hashable, Sequence
from typing import Any, TypeVar, cast

import numpy as np

from extender.cluster.arrays import IntArray
from extender.cluster.pods import PlacedPod
from extender.cluster.shape import Shape
from extender.cluster.volume_uses import NO_USES

T = TypeVar("T")


class PodBatch:
    """Pods, each on a row of its own or of several of them.

    Attributes:
        pods: the pods.
        rows: the row of each, int64, shape (len(pods),).
        shapes: the distinct shapes among them.
        shape_of: the index into `shapes` of each pod, int64, shape (len(pods),).
        lines: the ids of the resources that any of them takes.
        taken: what a pod of each shape takes, int64, shape (len(lines), len(shapes)): milli-CPU, bytes, counts.
        nonzero: as in the node table, int64, shape (2, len(shapes)).
        special: indices of the pods that use host ports or volumes, or take node resources through claims.
    """

    __slots__ = ("_memo", "lines", "nonzero", "pods", "rows", "shape_of", "shapes", "special", "taken")

    def __init__(self, pods: Sequence[PlacedPod], rows: IntArray) -> None:
        self.pods = pods
        self.rows = rows
        numbers: dict[Shape, int] = {}
        found = [numbers.setdefault(pod.shape, len(numbers)) for pod in pods]
        self.shape_of: IntArray = np.array(found, dtype=np.int64)
        self.shapes = tuple(numbers)
        self.lines = tuple({resource: None for shape in self.shapes for resource, _ in shape.taken})
        line_of = {resource: line for line, resource in enumerate(self.lines)}
        self.taken = np.zeros((len(self.lines), len(self.shapes)), dtype=np.int64)
        self.nonzero = np.zeros((2, len(self.shapes)), dtype=np.int64)
        special = np.zeros(len(self.shapes) + 1, dtype=np.bool_)
        for index, shape in enumerate(self.shapes):
            for resource, amount in shape.taken:
                self.taken[line_of[resource], index] = amount
            self.nonzero[:, index] = shape.nonzero
            special[index] = bool(shape.host_ports) or shape.volumes is not NO_USES or shape.takes_by_claims
        self.special = frozenset(np.flatnonzero(special[self.shape_of]).tolist()) if special.any() else frozenset()
        self._memo: dict[Hashable, Any] = {}

    def __len__(self) -> int:
        return len(self.pods)

    def remember(self, key: Hashable, make: Callable[[], T]) -> T:
        """What *make* returned the first time it was asked for under *key*."""
        try:
            return cast("T", self._memo[key])
        except KeyError:
            made = self._memo[key] = make()
            return made

    def by_shape(self, worth: Callable[[Shape], int]) -> IntArray:
        """What *worth* says about the shape of each pod: int64, shape (len(pods),)."""
        numbers = np.fromiter(map(worth, self.shapes), dtype=np.int64, count=len(self.shapes))
        return numbers[self.shape_of]

    def sums(self, worth: IntArray, size: int) -> IntArray:
        """*worth*, one number a pod, added up by row: int64, shape (*size*,)."""
        return np.bincount(self.rows, weights=worth, minlength=size)[:size].astype(np.int64)
