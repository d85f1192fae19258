"""The store: resource versions, changes and compaction."""

from typing import Any

import pytest

from extender.fake_apiserver.registry.api_errors import StatusError
from extender.fake_apiserver.registry.store import Store, StoredObject, StoreEvent


def make_object(name: str, namespace: str = "default", **more: str) -> dict[str, object]:
    return {"metadata": {"name": name, "namespace": namespace}, **more}


def names(objects: list[StoredObject]) -> list[str]:
    return [stored.content["metadata"]["name"] for stored in objects]


def test_all_resources_share_one_version_counter() -> None:
    store = Store()
    first = store.put("pods", make_object("a"))
    second = store.put("nodes", make_object("n", ""))
    third = store.put("pods", make_object("a", color="blue"))
    removed = store.remove("pods", "default", "a")
    assert removed is not None
    versions = [content["metadata"]["resourceVersion"] for content in (first, second, third, removed)]
    assert versions == ["2", "3", "4", "5"]
    assert store.resource_version == 5


def test_a_stored_object_is_not_mutated_by_an_update() -> None:
    store = Store()
    first = store.put("pods", make_object("a", color="red"))
    store.put("pods", make_object("a", color="blue"))
    assert first["color"] == "red"
    assert store.get("pods", "default", "a") == {
        "metadata": {"name": "a", "namespace": "default", "resourceVersion": "3"},
        "color": "blue",
    }


def test_objects_are_sorted_by_namespace_and_name() -> None:
    store = Store()
    for namespace, name in (("b", "x"), ("a-b", "z"), ("a", "y"), ("a", "b")):
        store.put("pods", make_object(name, namespace))
    assert names(store.list_objects("pods")) == ["b", "y", "z", "x"]
    assert names(store.list_objects("pods", "a")) == ["b", "y"]


def test_a_past_state_can_be_listed() -> None:
    store = Store()
    store.put("pods", make_object("a", color="red"))
    store.put("pods", make_object("b"))
    past_version = store.resource_version
    store.put("pods", make_object("a", color="blue"))
    store.remove("pods", "default", "b")
    store.put("pods", make_object("c"))
    objects = store.list_objects_at("pods", past_version)
    assert names(objects) == ["a", "b"]
    assert objects[0].content["color"] == "red"


def test_changes_have_the_previous_state() -> None:
    store = Store()
    store.put("pods", make_object("a", color="red"))
    store.put("pods", make_object("a", color="blue"))
    store.remove("pods", "default", "a")
    first, second, third = store.list_changes_since("pods", 1)
    assert [first.event, second.event, third.event] == [
        StoreEvent.ADDED,
        StoreEvent.MODIFIED,
        StoreEvent.DELETED,
    ]
    assert first.previous_object is None
    assert second.previous_object is not None
    assert second.previous_object.content["color"] == "red"
    assert (third.resource_version, third.stored_object.resource_version) == (4, 4)
    assert [change.resource_version for change in store.list_changes_since("pods", 3)] == [4]


def test_a_compaction_discards_the_changes_before_it() -> None:
    store = Store()
    store.put("pods", make_object("a"))
    store.compact()
    store.put("pods", make_object("b"))
    with pytest.raises(StatusError, match=r"too old resource version: 1 \(2\)"):
        store.list_changes_since("pods", 1)
    with pytest.raises(StatusError):
        store.list_objects_at("pods", 1)
    assert [change.resource_version for change in store.list_changes_since("pods", 2)] == [3]
    assert names(store.list_objects("pods")) == ["a", "b"]


def test_the_oldest_change_of_a_resource_is_discarded_at_the_limit() -> None:
    store = Store(history_limit=2)
    for name in "abc":
        store.put("pods", make_object(name))
    store.put("nodes", make_object("n", ""))
    assert [change.resource_version for change in store.list_changes_since("pods", 2)] == [3, 4]
    with pytest.raises(StatusError):
        store.list_changes_since("pods", 1)
    assert [change.resource_version for change in store.list_changes_since("nodes", 1)] == [5]


def test_listeners_are_called_until_they_unsubscribe() -> None:
    store, keys = Store(), list[Any]()
    unsubscribe = store.subscribe(keys.append)
    store.put("pods", make_object("a"))
    unsubscribe()
    store.remove("pods", "default", "a")
    assert keys == ["pods"]
