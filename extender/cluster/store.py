"""Objects that are neither nodes nor pods, by kind and key: namespaces, services, owners, volumes, claims, budgets."""

from collections.abc import Iterator, Mapping
from types import MappingProxyType
from typing import Any, Protocol, TypeVar

from extender.basics.cow import CowDict
from extender.objects.meta import ObjectMeta

_NONE: Mapping[str, Any] = MappingProxyType({})


class Thing(Protocol):
    """Any Kubernetes object."""

    @property
    def metadata(self) -> ObjectMeta:
        """Its name, namespace, labels and so on."""


T = TypeVar("T", bound=Thing)


def key_of(thing: Thing) -> str:
    """`namespace/name`, or `name` for what has no namespace."""
    meta = thing.metadata
    return f"{meta.namespace}/{meta.name}" if meta.namespace else meta.name


_KEEP = 1 << 16


class _Writes:
    """The keys written, in order; the oldest are forgotten."""

    __slots__ = ("base", "keys")

    def __init__(self, base: int) -> None:
        self.base = base
        self.keys: list[str] = []

    def wrote(self, key: str) -> None:
        self.keys.append(key)
        if len(self.keys) > 2 * _KEEP:
            del self.keys[:_KEEP]
            self.base += _KEEP


class ObjectStore:
    """Objects by type, then by key. Revisions count the writes of each type, so that answers about them can be kept.

    Attributes:
        history: revisions of stores with one history can be compared.
    """

    __slots__ = ("_branch", "_kinds", "_revisions", "_writes", "history")

    def __init__(self) -> None:
        self._kinds: CowDict[type, dict[str, Any]] = CowDict(dict)
        self._revisions: dict[type[Any], int] = {}
        self._writes: dict[type[Any], _Writes] = {}
        self._branch = False
        self.history = object()

    def fork(self, *, branch: bool = True) -> "ObjectStore":
        """The same objects, to be written without touching these.

        Args:
            branch: these may be written too; then the first write to the fork begins a history of its own.
        """
        child = ObjectStore()
        child._kinds = self._kinds.fork()
        child._revisions = dict(self._revisions)
        child._writes, child.history, child._branch = self._writes, self.history, branch
        return child

    def put(self, thing: Thing) -> None:
        """Add *thing* or replace the one of its type and key."""
        kind = type(thing)
        key = key_of(thing)
        self._kinds.writable(kind, dict)[key] = thing
        self._wrote(kind, key)

    def _wrote(self, kind: type[Any], key: str) -> None:
        if self._branch:
            self._writes, self.history, self._branch = {}, object(), False
        revision = self._revisions.get(kind, 0)
        writes = self._writes.get(kind)
        if writes is None:
            writes = self._writes[kind] = _Writes(revision)
        writes.wrote(key)
        self._revisions[kind] = revision + 1

    def drop(self, kind: type[T], key: str) -> None:
        """Forget an object; nothing happens if it is unknown."""
        if key in self.all(kind):
            del self._kinds.writable(kind, dict)[key]
            self._wrote(kind, key)

    def all(self, kind: type[T]) -> Mapping[str, T]:
        """The objects of *kind* by key, in the order of their arrival. Read them only."""
        return self._kinds.get(kind) or _NONE

    def get(self, kind: type[T], key: str) -> T | None:
        """One object, or None."""
        return self.all(kind).get(key)

    def revision(self, kind: type[Any]) -> int:
        """How often objects of *kind* were written or dropped."""
        return self._revisions.get(kind, 0)

    def written(self, kind: type[Any], since: int) -> frozenset[str] | None:
        """The keys written or dropped after revision *since*; None if that is too long ago, or yet to come."""
        now = self.revision(kind)
        if since == now:
            return frozenset()
        writes = self._writes.get(kind)
        if writes is None or not writes.base <= since <= now:
            return None
        return frozenset(writes.keys[since - writes.base : now - writes.base])

    def __iter__(self) -> Iterator[Thing]:
        for things in self._kinds.values():
            yield from things.values()
