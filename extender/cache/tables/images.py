"""The container images on the nodes, and their sizes.

Source: pkg/scheduler/backend/cache/cache.go, cacheImpl.addNodeImageStates (1.36).
"""

from dataclasses import dataclass, field

import numpy as np

from extender.api.kinds.node import Node
from extender.basics.cow import CowDict
from extender.cache.tables.arrays import BoolArray


@dataclass(slots=True)
class ImageState:
    """The state of one image name.

    Attributes:
        size: the size in bytes, as reported by the first node that had the image.
        rows: the rows of the nodes that have the image.
    """

    size: int
    rows: set[int] = field(default_factory=set)
    _mask: BoolArray | None = None

    def get_mask(self, capacity: int) -> BoolArray:
        """Return a mask of the rows with the image: bool, shape (capacity,)."""
        if self._mask is None or len(self._mask) != capacity:
            mask = np.zeros(capacity, dtype=np.bool_)
            mask[list(self.rows)] = True
            self._mask = mask
        return self._mask

    def invalidate_mask(self) -> None:
        """Drop the cached mask after `rows` changed."""
        self._mask = None


def _copy_state(state: ImageState) -> ImageState:
    return ImageState(state.size, set(state.rows))


class ImageTable:
    """Image states by name. An image keeps the size that the first node reported as long as any node has it."""

    __slots__ = ("_states",)

    def __init__(self) -> None:
        self._states: CowDict[str, ImageState] = CowDict(_copy_state)

    def fork(self) -> "ImageTable":
        """Return a copy-on-write copy of the table."""
        child = ImageTable()
        child._states = self._states.fork()
        return child

    def get(self, name: str) -> ImageState | None:
        """Return the state of image *name*, or None if no node has it."""
        return self._states.get(name)

    def add(self, row: int, node: Node) -> None:
        """Add the images of *node* at *row*."""
        for image in node.status.images:
            for name in image.names:
                size = image.size_bytes
                state = self._states.get_writable(name, lambda size=size: ImageState(size))  # type: ignore[misc]
                state.rows.add(row)
                state.invalidate_mask()

    def remove(self, row: int, node: Node) -> None:
        """Remove the images of *node* from *row*."""
        for image in node.status.images:
            for name in image.names:
                if name not in self._states:
                    continue
                state = self._states.get_writable(name, lambda: ImageState(0))
                state.rows.discard(row)
                state.invalidate_mask()
                if not state.rows:
                    self._states.remove(name)
