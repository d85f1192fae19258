"""An index of the objects of one kind by group, updated incrementally from the object store's write log."""

from collections.abc import Callable, Hashable, Mapping
from types import MappingProxyType
from typing import Any, Generic, TypeVar

from extender.api.kinds.meta import KubernetesObject
from extender.cache.snapshot import Snapshot
from extender.cache.tables.object_store import KindVersion

T = TypeVar("T", bound=KubernetesObject)
E = TypeVar("E")

_NO_ENTRIES: Mapping[str, Any] = MappingProxyType({})


class ObjectIndex(Generic[T, E]):
    """An index with one entry for each object of one kind, by group, then by object key.

    An index is not thread-safe, so each plugin has its own. A snapshot that is older or has a different history of
    objects causes a rebuild of the index.
    """

    def __init__(self, kind: type[T], group_by: Callable[[T], Hashable], make_entry: Callable[[T], E]) -> None:
        """Index the objects of one kind.

        *group_by* returns the group of an object. *make_entry* makes the entry of an object, once after each write of
        it.
        """
        self._kind, self._group_by, self._make_entry = kind, group_by, make_entry
        self._groups: dict[Hashable, dict[str, E]] = {}
        self._group_by_key: dict[str, Hashable] = {}
        self._version: KindVersion | None = None

    def get_entries(self, snapshot: Snapshot, group: Hashable) -> Mapping[str, E]:
        """Return the entries of *group* by key, in the order in which they were added.

        Do not modify the result. Do not use it after the next update of the index.
        """
        self.update(snapshot)
        return self._groups.get(group, _NO_ENTRIES)

    def get_entries_by_group(self, snapshot: Snapshot) -> Mapping[Hashable, Mapping[str, E]]:
        """Return all entries by group."""
        self.update(snapshot)
        return self._groups

    def update(self, snapshot: Snapshot) -> frozenset[Hashable] | None:
        """Update the index with the objects written since the last call.

        Returns:
            The groups that changed; None if the index was rebuilt.
        """
        keys = snapshot.keys_written_since(self._kind, self._version)
        if keys is not None and not keys:
            return frozenset()
        self._version = snapshot.kind_version(self._kind)
        if keys is None:
            self._groups, self._group_by_key = {}, {}
            for key, obj in snapshot.objects(self._kind).items():
                self._add(key, obj)
            return None
        return frozenset(group for key in keys for group in self._update_key(key, snapshot.get_object(self._kind, key)))

    def _update_key(self, key: str, obj: T | None) -> set[Hashable]:
        changed_groups: set[Hashable] = set()
        if key in self._group_by_key:
            old_group = self._group_by_key[key]
            changed_groups.add(old_group)
            if obj is None or self._group_by(obj) != old_group:
                del self._group_by_key[key]
                del self._groups[old_group][key]
                if not self._groups[old_group]:
                    del self._groups[old_group]
        if obj is not None:
            changed_groups.add(self._add(key, obj))
        return changed_groups

    def _add(self, key: str, obj: T) -> Hashable:
        group = self._group_by_key[key] = self._group_by(obj)
        self._groups.setdefault(group, {})[key] = self._make_entry(obj)
        return group
