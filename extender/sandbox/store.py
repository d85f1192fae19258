"""All objects in memory, one counter of versions for all of them, and what happened to them lately.

An object that was stored is never changed: a write stores another. So every state that the kept changes reach back to
can be shown again, and a watch hands out what it has.
"""

from bisect import bisect_right
from collections import defaultdict, deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

import msgspec

from extender.sandbox.refusals import too_old
from extender.sandbox.served import Object

HISTORY: Final = 20_000
"""Changes kept of each kind unless told otherwise."""

_HEAD: Final = ("kind", "apiVersion")


class Happened(StrEnum):
    """What a change did, in the words of a watch."""

    ADDED = "ADDED"
    MODIFIED = "MODIFIED"
    DELETED = "DELETED"


class Kept:
    """One state of one object.

    Attributes:
        object: as parsed JSON; not to be changed.
        number: its resourceVersion.
    """

    __slots__ = ("_bare", "number", "object")

    def __init__(self, content: Object, number: int) -> None:
        """Keeps *content* as it is."""
        self.object = content
        self.number = number
        self._bare: bytes | None = None

    @property
    def bare(self) -> bytes:
        """As JSON without kind and apiVersion, as it stands in a list; made once."""
        if self._bare is None:
            self._bare = msgspec.json.encode({key: self.object[key] for key in self.object if key not in _HEAD})
        return self._bare

    @property
    def json(self) -> bytes:
        """As JSON."""
        head = msgspec.json.encode({key: self.object[key] for key in _HEAD if key in self.object})
        return self.bare if head == b"{}" else head[:-1] + b"," + self.bare[1:]


@dataclass(frozen=True, slots=True)
class Change:
    """A change of one object.

    Attributes:
        number: the version it led to.
        happened: what it did.
        kept: the state after it; of a deleted object the last, with the version of the deletion.
        before: the state before it, if there was one.
    """

    number: int
    happened: Happened
    kept: Kept
    before: Kept | None


Listener = Callable[[str], None]


def key_of(content: Object) -> str:
    """`namespace/name`, or `/name` of what has no namespace: sorts as the server's lists do."""
    meta = content["metadata"]
    return f"{meta.get('namespace', '')}/{meta['name']}"


class Store:
    """Objects by kind. Places are those of `served.Served.place`: `pods`, `leases.coordination.k8s.io`."""

    def __init__(self, history: int = HISTORY) -> None:
        """An empty store that remembers the last *history* changes of each kind."""
        self.version = 1
        self._history = history
        self._objects: defaultdict[str, dict[str, Kept]] = defaultdict(dict)
        self._changes: defaultdict[str, deque[Change]] = defaultdict(deque)
        self._all_forgotten = 0
        self._forgotten: defaultdict[str, int] = defaultdict(lambda: self._all_forgotten)
        self._listeners: list[Listener] = []

    def get(self, place: str, namespace: str, name: str) -> Object | None:
        """The object as it is now, or None."""
        kept = self._objects[place].get(f"{namespace}/{name}")
        return kept.object if kept else None

    def all(self, place: str, namespace: str = "") -> list[Kept]:
        """The objects as they are now, sorted by namespace and name; all namespaces unless one is named."""
        return _sorted(self._objects[place], namespace)

    def count(self, place: str) -> int:
        """How many objects there are."""
        return len(self._objects[place])

    def at(self, place: str, number: int, namespace: str = "") -> list[Kept]:
        """The objects as they were at version *number*, sorted.

        Raises:
            RefusedError: the changes since then are not all kept any more.
        """
        if number < self._forgotten[place]:
            raise too_old(number, self._forgotten[place])
        state = dict(self._objects[place])
        for change in reversed(self._changes[place]):
            if change.number <= number:
                break
            if change.before is None:
                state.pop(key_of(change.kept.object), None)
            else:
                state[key_of(change.before.object)] = change.before
        return _sorted(state, namespace)

    def changes(self, place: str, after: int) -> Iterator[Change]:
        """What happened after version *after*, oldest first.

        Raises:
            RefusedError: that is not all kept any more.
        """
        if after < self._forgotten[place]:
            raise too_old(after, self._forgotten[place])
        kept = self._changes[place]
        if not kept or kept[-1].number <= after:
            return iter(())
        first = bisect_right(kept, after, key=lambda change: change.number)
        return iter([kept[at] for at in range(first, len(kept))])

    def put(self, place: str, content: Object) -> Object:
        """Store an object, new or in place of the one of its name, with the next version; what was stored.

        *content* belongs to the store from now on.
        """
        key = key_of(content)
        before = self._objects[place].get(key)
        kept = self._next(content)
        self._objects[place][key] = kept
        happened = Happened.MODIFIED if before else Happened.ADDED
        self._tell(place, Change(kept.number, happened, kept, before))
        return kept.object

    def remove(self, place: str, namespace: str, name: str, last: Object | None = None) -> Object | None:
        """Remove an object: its last state with the version of the removal, or None if there is none.

        *last* is that state, if it is another than the one stored.
        """
        before = self._objects[place].pop(f"{namespace}/{name}", None)
        if before is None:
            return None
        kept = self._next(last or before.object)
        self._tell(place, Change(kept.number, Happened.DELETED, kept, before))
        return kept.object

    def forget(self) -> None:
        """Forget all that happened so far, as a compaction does; the objects stay."""
        self._all_forgotten = self.version
        self._forgotten.clear()
        self._changes.clear()

    def listen(self, listener: Listener) -> Callable[[], None]:
        """Have *listener* called with the place after each change; the answer ends that."""
        self._listeners.append(listener)
        return lambda: self._listeners.remove(listener)

    def _next(self, content: Object) -> Kept:
        self.version += 1
        meta = {**content["metadata"], "resourceVersion": str(self.version)}
        return Kept({**content, "metadata": meta}, self.version)

    def _tell(self, place: str, change: Change) -> None:
        changes = self._changes[place]
        changes.append(change)
        if len(changes) > self._history:
            self._forgotten[place] = changes.popleft().number
        for listener in tuple(self._listeners):
            listener(place)


def _sorted(objects: dict[str, Kept], namespace: str) -> list[Kept]:
    prefix = f"{namespace}/"
    keys = (key for key in objects if key.startswith(prefix)) if namespace else iter(objects)
    return [objects[key] for key in sorted(keys, key=lambda key: key.split("/", 1))]
