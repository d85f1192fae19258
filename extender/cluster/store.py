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


class ObjectStore:
    """Objects by type, then by key. Revisions count the writes of each type, so that answers about them can be kept."""

    __slots__ = ("_kinds", "_revisions")

    def __init__(self) -> None:
        self._kinds: CowDict[type, dict[str, Any]] = CowDict(dict)
        self._revisions: dict[type[Any], int] = {}

    def fork(self) -> "ObjectStore":
        """The same objects, to be written without touching these."""
        child = ObjectStore()
        child._kinds = self._kinds.fork()
        child._revisions = dict(self._revisions)
        return child

    def put(self, thing: Thing) -> None:
        """Add *thing* or replace the one of its type and key."""
        kind = type(thing)
        self._kinds.writable(kind, dict)[key_of(thing)] = thing
        self._revisions[kind] = self._revisions.get(kind, 0) + 1

    def drop(self, kind: type[T], key: str) -> None:
        """Forget an object; nothing happens if it is unknown."""
        if key in self.all(kind):
            del self._kinds.writable(kind, dict)[key]
            self._revisions[kind] = self._revisions.get(kind, 0) + 1

    def all(self, kind: type[T]) -> Mapping[str, T]:
        """The objects of *kind* by key, in the order of their arrival. Read them only."""
        return self._kinds.get(kind) or _NONE

    def get(self, kind: type[T], key: str) -> T | None:
        """One object, or None."""
        return self.all(kind).get(key)

    def revision(self, kind: type[Any]) -> int:
        """How often objects of *kind* were written or dropped."""
        return self._revisions.get(kind, 0)

    def __iter__(self) -> Iterator[Thing]:
        for _, things in self._kinds.items():
            yield from things.values()
