"""Objects of one kind in groups, brought up to date by what was written since."""

from collections.abc import Callable, Hashable, Mapping
from types import MappingProxyType
from typing import Any, Generic, TypeVar

from extender.cluster.snapshot import Snapshot
from extender.cluster.store import Thing

T = TypeVar("T", bound=Thing)
E = TypeVar("E")

_NONE: Mapping[str, Any] = MappingProxyType({})


class ObjectIndex(Generic[T, E]):
    """What is made of each object of a kind, by group, then by key. Not thread-safe; belongs to one plugin.

    It follows one history of a cluster; asked about another, or about an older moment, it begins anew.
    """

    __slots__ = ("_group", "_group_of", "_groups", "_history", "_kind", "_make", "_revision")

    def __init__(self, kind: type[T], group: Callable[[T], Hashable], make: Callable[[T], E]) -> None:
        """Index the objects of one kind.

        Args:
            kind: of the objects.
            group: the group of an object.
            make: what to keep of it, made once a write.
        """
        self._kind, self._group, self._make = kind, group, make
        self._groups: dict[Hashable, dict[str, E]] = {}
        self._group_of: dict[str, Hashable] = {}
        self._history: object = None
        self._revision = 0

    def of(self, cluster: Snapshot, group: Hashable) -> Mapping[str, E]:
        """The entries of *group* in *cluster* by key, in the order of arrival.

        Read them only, and not after the next call.
        """
        self.catch_up(cluster)
        return self._groups.get(group, _NONE)

    def groups(self, cluster: Snapshot) -> Mapping[Hashable, Mapping[str, E]]:
        """All entries by group."""
        self.catch_up(cluster)
        return self._groups

    def catch_up(self, cluster: Snapshot) -> frozenset[Hashable] | None:
        """Read what was written to *cluster* since the last call.

        Returns:
            The groups that were touched; None: everything was read anew.
        """
        revision = cluster.revision(self._kind)
        if self._history is cluster.object_history and self._revision == revision:
            return frozenset()
        keys = None
        if self._history is cluster.object_history and self._revision < revision:
            keys = cluster.written(self._kind, self._revision)
        self._history, self._revision = cluster.object_history, revision
        if keys is None:
            self._groups, self._group_of = {}, {}
            for key, thing in cluster.objects(self._kind).items():
                self._put(key, thing)
            return None
        return frozenset(group for key in keys for group in self._replace(key, cluster.find(self._kind, key)))

    def _replace(self, key: str, thing: T | None) -> set[Hashable]:
        touched: set[Hashable] = set()
        if key in self._group_of:
            before = self._group_of[key]
            touched.add(before)
            if thing is None or self._group(thing) != before:
                del self._group_of[key]
                del self._groups[before][key]
                if not self._groups[before]:
                    del self._groups[before]
        if thing is not None:
            touched.add(self._put(key, thing))
        return touched

    def _put(self, key: str, thing: T) -> Hashable:
        group = self._group_of[key] = self._group(thing)
        self._groups.setdefault(group, {})[key] = self._make(thing)
        return group
