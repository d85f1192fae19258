"""An LRU cache of decoded JSON, keyed by the JSON and bounded by an estimate of its memory."""

from collections import OrderedDict
from collections.abc import Callable
from random import Random
from typing import Final, Generic, TypeVar

T = TypeVar("T")

_EVICTED_RATIO: Final = 64
"""One of so many entries is evicted at once if random entries are evicted, because listing the keys takes time."""


def estimate_decoded_bytes(data: bytes) -> int:
    """Return an estimate of the memory of *data* and of the object decoded from it, in bytes.

    The estimate is high: it counts each JSON object, array and string as a Python object, also those that are not
    decoded.
    """
    return 512 + 2 * len(data) + 70 * data.count(b"{") + 55 * data.count(b"[") + 30 * data.count(b'"')


class ByteLRU(Generic[T]):
    """LRU cache of values computed from byte strings, such as decoded JSON documents.

    Equal keys share one value object, so a value must depend on its key alone and must not be mutated.
    """

    __slots__ = ("_entries", "_estimate_bytes", "_max_bytes", "_rng", "_size")

    def __init__(
        self,
        max_bytes: int,
        estimate_bytes: Callable[[bytes], int] = estimate_decoded_bytes,
        rng: Random | None = None,
    ) -> None:
        """Create an empty cache.

        All entries take at most *max_bytes*: the least recently used are evicted, and an entry larger than the limit is
        not cached. *estimate_bytes* returns the memory of an entry from its key.

        With *rng*, random entries are evicted instead. If all keys are looked up in a cycle and take a little more than
        the limit, the least recently used entry is always the one that is needed next.
        """
        self._entries: OrderedDict[bytes, tuple[T, int]] = OrderedDict()
        self._max_bytes = max_bytes
        self._estimate_bytes = estimate_bytes
        self._rng = rng
        self._size = 0

    def get_or_create(self, data: bytes, create: Callable[[bytes], T]) -> T:
        """Return the cached value of *data*, or create and cache it. If *create* raises, nothing is cached."""
        entry = self._entries.get(data)
        if entry is not None:
            self._entries.move_to_end(data)
            return entry[0]
        value = create(data)
        size = self._estimate_bytes(data)
        if size > self._max_bytes:
            return value
        self._entries[data] = value, size
        self._size += size
        while self._size > self._max_bytes:
            self._evict()
        return value

    def _evict(self) -> None:
        """Evict the least recently used entry, or some random ones."""
        if self._rng is None:
            keys = [next(iter(self._entries))]
        else:
            keys = self._rng.sample(list(self._entries), -(-len(self._entries) // _EVICTED_RATIO))
        for key in keys:
            _, size = self._entries.pop(key)
            self._size -= size

    def __len__(self) -> int:
        return len(self._entries)
