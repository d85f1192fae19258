"""Which nodes hold which container images, and how large those are. Source: A114."""

from dataclasses import dataclass, field

import numpy as np

from extender.basics.cow import CowDict
from extender.cluster.arrays import BoolArray
from extender.objects.node import Node


@dataclass(slots=True)
class ImageState:
    """One image name.

    Attributes:
        size: bytes, as the first node that had the image reported it.
        rows: the node rows that hold it.
    """

    size: int
    rows: set[int] = field(default_factory=set)
    _mask: BoolArray | None = None

    def mask(self, capacity: int) -> BoolArray:
        """Whether each row holds the image: bool, shape (capacity,)."""
        if self._mask is None or len(self._mask) != capacity:
            mask = np.zeros(capacity, dtype=np.bool_)
            mask[list(self.rows)] = True
            self._mask = mask
        return self._mask

    def touched(self) -> None:
        """Forget the derived mask after `rows` changed."""
        self._mask = None


def _copied(state: ImageState) -> ImageState:
    return ImageState(state.size, set(state.rows))


class ImageTable:
    """Image names to their state. The size stays that of the first node, as long as any node has the image."""

    __slots__ = ("_states",)

    def __init__(self) -> None:
        self._states: CowDict[str, ImageState] = CowDict(_copied)

    def fork(self) -> "ImageTable":
        """The same images, to be written without touching these."""
        child = ImageTable()
        child._states = self._states.fork()
        return child

    def get(self, name: str) -> ImageState | None:
        """The state of image *name*, or None if no node has it."""
        return self._states.get(name)

    def add(self, row: int, node: Node) -> None:
        """Node *node* is at *row*: it holds its images."""
        for image in node.status.images:
            for name in image.names:
                size = image.size_bytes
                state = self._states.writable(name, lambda size=size: ImageState(size))  # type: ignore[misc]
                state.rows.add(row)
                state.touched()

    def remove(self, row: int, node: Node) -> None:
        """Node *node* is no longer at *row*."""
        for image in node.status.images:
            for name in image.names:
                if name not in self._states:
                    continue
                state = self._states.writable(name, lambda: ImageState(0))
                state.rows.discard(row)
                state.touched()
                if not state.rows:
                    self._states.drop(name)
