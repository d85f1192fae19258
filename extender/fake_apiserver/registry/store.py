"""Store objects and their recent changes in memory, with one counter of resource versions.

A stored object is never mutated, because a write stores a new object. Watches therefore share the stored objects. The
objects at an old resource version can be listed as long as all changes since that version are stored.
"""

from bisect import bisect_right
from collections import defaultdict, deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

import msgspec

from extender.fake_apiserver.registry.api_errors import new_too_old_resource_version
from extender.fake_apiserver.registry.resources import Object

HISTORY_LIMIT: Final = 20_000
"""Default number of recent changes that are stored per resource."""

_TYPE_FIELDS: Final = ("kind", "apiVersion")


class StoreEvent(StrEnum):
    """The type of a change, as in watch events."""

    ADDED = "ADDED"
    MODIFIED = "MODIFIED"
    DELETED = "DELETED"


class StoredObject:
    """One state of one object.

    Attributes:
        content: the object as parsed JSON; never mutated.
        resource_version: the resource version of this state.
    """

    __slots__ = ("_item_json", "content", "resource_version")

    def __init__(self, content: Object, resource_version: int) -> None:
        """Store *content* without copying it."""
        self.content = content
        self.resource_version = resource_version
        self._item_json: bytes | None = None

    @property
    def item_json(self) -> bytes:
        """The JSON of the object as a list item, without kind and apiVersion. It is encoded once."""
        if self._item_json is None:
            self._item_json = msgspec.json.encode(
                {key: self.content[key] for key in self.content if key not in _TYPE_FIELDS}
            )
        return self._item_json

    @property
    def json(self) -> bytes:
        """The JSON of the object with kind and apiVersion."""
        head = msgspec.json.encode({key: self.content[key] for key in _TYPE_FIELDS if key in self.content})
        return self.item_json if head == b"{}" else head[:-1] + b"," + self.item_json[1:]


@dataclass(frozen=True, slots=True)
class StoreChange:
    """A change of one object.

    Attributes:
        event: the type of the change.
        stored_object: the object after the change. A deleted object has its last state, with the resource version of
            the deletion.
        previous_object: the object before the change; None for a new object.
    """

    resource_version: int
    event: StoreEvent
    stored_object: StoredObject
    previous_object: StoredObject | None


StoreListener = Callable[[str], None]
"""Called after each change with the storage key of the resource."""


def make_namespaced_key(content: Object) -> str:
    """Return `namespace/name`, or `/name` for a cluster-scoped object."""
    meta = content["metadata"]
    return f"{meta.get('namespace', '')}/{meta['name']}"


class Store:
    """The objects of all resources.

    The storage key of a resource is `ApiResource.storage_key`, such as `pods` or `leases.coordination.k8s.io`.
    """

    def __init__(self, history_limit: int = HISTORY_LIMIT) -> None:
        """Create an empty store, which keeps the last *history_limit* changes of each resource."""
        self.resource_version = 1
        self._history_limit = history_limit
        self._objects: defaultdict[str, dict[str, StoredObject]] = defaultdict(dict)
        self._changes: defaultdict[str, deque[StoreChange]] = defaultdict(deque)
        self._compacted_version = 0
        self._oldest_versions: defaultdict[str, int] = defaultdict(lambda: self._compacted_version)
        self._listeners: list[StoreListener] = []

    def get(self, storage_key: str, namespace: str, name: str) -> Object | None:
        """Return the current object, or None."""
        stored_object = self._objects[storage_key].get(f"{namespace}/{name}")
        return stored_object.content if stored_object else None

    def list_objects(self, storage_key: str, namespace: str = "") -> list[StoredObject]:
        """Return the current objects, sorted by namespace and name; an empty namespace means all."""
        return _sort_objects(self._objects[storage_key], namespace)

    def count(self, storage_key: str) -> int:
        """Return the number of objects."""
        return len(self._objects[storage_key])

    def list_objects_at(self, storage_key: str, resource_version: int, namespace: str = "") -> list[StoredObject]:
        """Return the objects at *resource_version*, sorted by namespace and name; an empty namespace means all.

        Raises:
            StatusError: 410 if the changes since *resource_version* are no longer stored.
        """
        if resource_version < self._oldest_versions[storage_key]:
            raise new_too_old_resource_version(resource_version, self._oldest_versions[storage_key])
        objects = dict(self._objects[storage_key])
        for change in reversed(self._changes[storage_key]):
            if change.resource_version <= resource_version:
                break
            if change.previous_object is None:
                objects.pop(make_namespaced_key(change.stored_object.content), None)
            else:
                objects[make_namespaced_key(change.previous_object.content)] = change.previous_object
        return _sort_objects(objects, namespace)

    def list_changes_since(self, storage_key: str, resource_version: int) -> Iterator[StoreChange]:
        """Return the changes after *resource_version*, oldest first.

        Raises:
            StatusError: 410 if the changes since *resource_version* are no longer stored.
        """
        if resource_version < self._oldest_versions[storage_key]:
            raise new_too_old_resource_version(resource_version, self._oldest_versions[storage_key])
        changes = self._changes[storage_key]
        if not changes or changes[-1].resource_version <= resource_version:
            return iter(())
        first_index = bisect_right(changes, resource_version, key=lambda change: change.resource_version)
        return iter([changes[index] for index in range(first_index, len(changes))])

    def put(self, storage_key: str, content: Object) -> Object:
        """Store a new or updated object with the next resource version; return the stored object.

        The store takes ownership of *content*.
        """
        key = make_namespaced_key(content)
        previous_object = self._objects[storage_key].get(key)
        stored_object = self._assign_next_version(content)
        self._objects[storage_key][key] = stored_object
        event = StoreEvent.MODIFIED if previous_object else StoreEvent.ADDED
        self._publish(storage_key, StoreChange(stored_object.resource_version, event, stored_object, previous_object))
        return stored_object.content

    def remove(self, storage_key: str, namespace: str, name: str, last_content: Object | None = None) -> Object | None:
        """Remove an object; return its last state with the resource version of the deletion, or None if it is missing.

        The last state is *last_content*, or else the stored object.
        """
        previous_object = self._objects[storage_key].pop(f"{namespace}/{name}", None)
        if previous_object is None:
            return None
        stored_object = self._assign_next_version(last_content or previous_object.content)
        self._publish(
            storage_key, StoreChange(stored_object.resource_version, StoreEvent.DELETED, stored_object, previous_object)
        )
        return stored_object.content

    def compact(self) -> None:
        """Discard all stored changes, as a compaction of etcd does. The objects remain."""
        self._compacted_version = self.resource_version
        self._oldest_versions.clear()
        self._changes.clear()

    def subscribe(self, listener: StoreListener) -> Callable[[], None]:
        """Call *listener* with the storage key after each change; return the function that unsubscribes."""
        self._listeners.append(listener)
        return lambda: self._listeners.remove(listener)

    def _assign_next_version(self, content: Object) -> StoredObject:
        self.resource_version += 1
        meta = {**content["metadata"], "resourceVersion": str(self.resource_version)}
        return StoredObject({**content, "metadata": meta}, self.resource_version)

    def _publish(self, storage_key: str, change: StoreChange) -> None:
        changes = self._changes[storage_key]
        changes.append(change)
        if len(changes) > self._history_limit:
            self._oldest_versions[storage_key] = changes.popleft().resource_version
        for listener in tuple(self._listeners):
            listener(storage_key)


def _sort_objects(objects: dict[str, StoredObject], namespace: str) -> list[StoredObject]:
    prefix = f"{namespace}/"
    keys = (key for key in objects if key.startswith(prefix)) if namespace else iter(objects)
    return [objects[key] for key in sorted(keys, key=lambda key: key.split("/", 1))]
