"""Objects other than nodes and pods, by kind and key: namespaces, services, controllers, volumes, claims, PDBs."""

from collections.abc import Iterator, Mapping
from types import MappingProxyType
from typing import Any, NamedTuple, TypeVar

from extender.api.kinds.meta import KubernetesObject
from extender.basics.copy_on_write import CopyOnWriteDict
from extender.cache.tables.history import HistoryId

_NO_OBJECTS: Mapping[str, Any] = MappingProxyType({})


T = TypeVar("T", bound=KubernetesObject)


_MIN_RETAINED_KEYS = 1 << 12
"""The last keys that a log has if there are fewer objects. It costs less to read all objects than a longer log."""


class KindVersion(NamedTuple):
    """The number of writes and removals of objects of one kind in a history. Equal versions have equal objects."""

    history_id: HistoryId
    revision: int


class _WriteLog:
    """The keys of written and removed objects, in order. The oldest keys are dropped."""

    def __init__(self, first_revision: int) -> None:
        self.first_revision = first_revision
        self.keys: list[str] = []

    def append(self, key: str, object_count: int) -> None:
        self.keys.append(key)
        retained_count = max(_MIN_RETAINED_KEYS, object_count)
        if len(self.keys) > 2 * retained_count:
            self.first_revision += len(self.keys) - retained_count
            del self.keys[:-retained_count]


class ObjectStore:
    """Objects by type and key.

    Attributes:
        list_versions: the resource version of the last complete list that the store has, by kind.
    """

    def __init__(self) -> None:
        self._objects: CopyOnWriteDict[type, dict[str, Any]] = CopyOnWriteDict(dict)
        self._versions: dict[type[Any], KindVersion] = {}
        self._write_logs: dict[type[Any], _WriteLog] = {}
        self._start_new_history_on_write = False
        self._history_id = HistoryId()
        self.list_versions: dict[type[Any], str] = {}

    def fork(self, *, new_history: bool = True) -> "ObjectStore":
        """Return a copy-on-write copy of the store.

        Args:
            new_history: whether the first write to the fork starts a new history. This is necessary if the original
                store is written too.
        """
        child = ObjectStore()
        child._objects = self._objects.fork()
        child._versions, child.list_versions = dict(self._versions), dict(self.list_versions)
        child._write_logs, child._history_id = self._write_logs, self._history_id
        child._start_new_history_on_write = new_history
        return child

    def add_or_update(self, obj: KubernetesObject) -> None:
        """Add *obj*, or replace the object of the same type and key."""
        kind = type(obj)
        key = obj.metadata.key
        self._objects.get_writable(kind, dict)[key] = obj
        self._record_write(kind, key)

    def _record_write(self, kind: type[Any], key: str) -> None:
        if self._start_new_history_on_write:
            self._versions, self._write_logs = {}, {}
            self._history_id, self._start_new_history_on_write = HistoryId(), False
        revision = self.get_version(kind).revision
        write_log = self._write_logs.get(kind)
        if write_log is None:
            write_log = self._write_logs[kind] = _WriteLog(revision)
        write_log.append(key, len(self.get_by_kind(kind)))
        self._versions[kind] = KindVersion(self._history_id, revision + 1)

    def remove(self, kind: type[T], key: str) -> None:
        """Remove an object; an unknown key is ignored."""
        if key in self.get_by_kind(kind):
            del self._objects.get_writable(kind, dict)[key]
            self._record_write(kind, key)

    def get_by_kind(self, kind: type[T]) -> Mapping[str, T]:
        """Return the objects of *kind* by key, in the order in which they were added. Do not modify the result."""
        return self._objects.get(kind) or _NO_OBJECTS

    def get(self, kind: type[T], key: str) -> T | None:
        """Return an object, or None."""
        return self.get_by_kind(kind).get(key)

    def get_version(self, kind: type[Any]) -> KindVersion:
        """Return the version of the objects of *kind*."""
        version = self._versions.get(kind)
        if version is None:
            version = self._versions[kind] = KindVersion(self._history_id, 0)
        return version

    def get_keys_written_since(self, kind: type[Any], version: KindVersion | None) -> frozenset[str] | None:
        """Return the keys written or removed after *version*.

        Return None if any object may have been written: *version* is None, later, of another history or too old.
        """
        current = self.get_version(kind)
        if version == current:
            return frozenset()
        write_log = self._write_logs.get(kind)
        if version is None or write_log is None or version.history_id is not current.history_id:
            return None
        first = write_log.first_revision
        if not first <= version.revision <= current.revision:
            return None
        return frozenset(write_log.keys[version.revision - first : current.revision - first])

    def __iter__(self) -> Iterator[KubernetesObject]:
        for objects in self._objects.values():
            yield from objects.values()
