"""The container images on the nodes, and their sizes.

Source: pkg/scheduler/backend/cache/cache.go, cacheImpl.addNodeImageStates (1.36).
"""

from collections.abc import Iterable
from dataclasses import dataclass, field

from extender.api.kinds.node import Node
from extender.basics.copy_on_write import CopyOnWriteDict
from extender.cache.tables.arrays import BoolArray, make_mask


@dataclass(slots=True)
class ImageState:
    """The size of an image, and the nodes that have it.

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
            self._mask = make_mask(list(self.rows), capacity)
        return self._mask

    def invalidate_mask(self) -> None:
        """Drop the cached mask after `rows` changed."""
        self._mask = None


def _copy_state(state: ImageState) -> ImageState:
    return ImageState(state.size, set(state.rows))


class ImageTable:
    """Image states by name. An image keeps the size that the first node reported as long as any node has it."""

    def __init__(self) -> None:
        self._states: CopyOnWriteDict[str, ImageState] = CopyOnWriteDict(_copy_state)
        self._indexed_names: set[str] | None = None  # None: all
        self._changes: list[tuple[int, Node, bool]] = []  # since index_only: row, node, whether it was added

    def fork(self) -> "ImageTable":
        """Return a copy-on-write copy of the table."""
        child = ImageTable()
        child._states = self._states.fork()
        child._indexed_names = None if self._indexed_names is None else self._indexed_names.copy()
        child._changes = self._changes.copy()
        return child

    def index_only(self, names: Iterable[str]) -> None:
        """From now on, update only the images *names*. Each other image is updated when it is read, which is slower.

        A full index would have an entry for each image of thousands of nodes. A pod uses only a few images.
        """
        self._indexed_names = set(names)

    def get(self, name: str) -> ImageState | None:
        """Return the state of image *name*, or None if no node has it."""
        if self._indexed_names is not None and name not in self._indexed_names:
            self._indexed_names.add(name)
            for row, node, is_added in self._changes:
                self._update(row, node, {name}, is_added=is_added)
        return self._states.get(name)

    def add(self, row: int, node: Node) -> None:
        """Add the images of *node* at *row*."""
        self._update_indexed(row, node, is_added=True)

    def remove(self, row: int, node: Node) -> None:
        """Remove the images of *node* from *row*."""
        self._update_indexed(row, node, is_added=False)

    def _update_indexed(self, row: int, node: Node, *, is_added: bool) -> None:
        if self._indexed_names is not None:
            self._changes.append((row, node, is_added))
        self._update(row, node, self._indexed_names, is_added=is_added)

    def _update(self, row: int, node: Node, only_names: set[str] | None, *, is_added: bool) -> None:
        """Add or remove the images of *node* that are in *only_names*; None: all."""
        for image in node.status.images:
            names = image.names if only_names is None else only_names.intersection(image.names)
            for name in names:
                if is_added:
                    self._add(row, name, image.size_bytes)
                elif name in self._states:
                    self._remove(row, name)

    def _add(self, row: int, name: str, size: int) -> None:
        state = self._states.get_writable(name, lambda: ImageState(size))
        state.rows.add(row)
        state.invalidate_mask()

    def _remove(self, row: int, name: str) -> None:
        state = self._states.get_writable(name, lambda: ImageState(0))
        state.rows.discard(row)
        state.invalidate_mask()
        if not state.rows:
            self._states.remove(name)
