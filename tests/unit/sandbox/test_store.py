"""Tests of the store: versions, what it remembers, what it forgets."""

import pytest

from extender.sandbox.refusals import RefusedError
from extender.sandbox.store import Happened, Kept, Store


def thing(name: str, namespace: str = "default", **more: str) -> dict[str, object]:
    return {"metadata": {"name": name, "namespace": namespace}, **more}


def names(found: list[Kept]) -> list[str]:
    return [kept.object["metadata"]["name"] for kept in found]


def test_one_counter_gives_versions_to_all_kinds() -> None:
    store = Store()
    first = store.put("pods", thing("a"))
    second = store.put("nodes", thing("n", ""))
    third = store.put("pods", thing("a", color="blue"))
    gone = store.remove("pods", "default", "a")
    assert gone is not None
    versions = [each["metadata"]["resourceVersion"] for each in (first, second, third, gone)]
    assert versions == ["2", "3", "4", "5"]
    assert store.version == 5


def test_what_was_stored_does_not_change_when_it_is_written_again() -> None:
    store = Store()
    first = store.put("pods", thing("a", color="red"))
    store.put("pods", thing("a", color="blue"))
    assert first["color"] == "red"
    assert store.get("pods", "default", "a") == {
        "metadata": {"name": "a", "namespace": "default", "resourceVersion": "3"},
        "color": "blue",
    }


def test_objects_are_sorted_by_namespace_and_name() -> None:
    store = Store()
    for namespace, name in (("b", "x"), ("a-b", "z"), ("a", "y"), ("a", "b")):
        store.put("pods", thing(name, namespace))
    assert names(store.all("pods")) == ["b", "y", "z", "x"]
    assert names(store.all("pods", "a")) == ["b", "y"]


def test_an_earlier_state_can_be_shown() -> None:
    store = Store()
    store.put("pods", thing("a", color="red"))
    store.put("pods", thing("b"))
    then = store.version
    store.put("pods", thing("a", color="blue"))
    store.remove("pods", "default", "b")
    store.put("pods", thing("c"))
    found = store.at("pods", then)
    assert names(found) == ["a", "b"]
    assert found[0].object["color"] == "red"


def test_changes_tell_what_was_before() -> None:
    store = Store()
    store.put("pods", thing("a", color="red"))
    store.put("pods", thing("a", color="blue"))
    store.remove("pods", "default", "a")
    first, second, third = store.changes("pods", 1)
    assert [first.happened, second.happened, third.happened] == [Happened.ADDED, Happened.MODIFIED, Happened.DELETED]
    assert first.before is None
    assert second.before is not None
    assert second.before.object["color"] == "red"
    assert (third.number, third.kept.number) == (4, 4)
    assert [change.number for change in store.changes("pods", 3)] == [4]


def test_after_a_compaction_only_what_comes_later_is_told() -> None:
    store = Store()
    store.put("pods", thing("a"))
    store.forget()
    store.put("pods", thing("b"))
    with pytest.raises(RefusedError, match=r"too old resource version: 1 \(2\)"):
        store.changes("pods", 1)
    with pytest.raises(RefusedError):
        store.at("pods", 1)
    assert [change.number for change in store.changes("pods", 2)] == [3]
    assert names(store.all("pods")) == ["a", "b"]


def test_the_oldest_change_of_a_kind_is_forgotten_when_there_are_too_many() -> None:
    store = Store(history=2)
    for name in "abc":
        store.put("pods", thing(name))
    store.put("nodes", thing("n", ""))
    assert [change.number for change in store.changes("pods", 2)] == [3, 4]
    with pytest.raises(RefusedError):
        store.changes("pods", 1)
    assert [change.number for change in store.changes("nodes", 1)] == [5]


def test_listeners_are_told_until_they_leave() -> None:
    store, heard = Store(), []
    leave = store.listen(heard.append)
    store.put("pods", thing("a"))
    leave()
    store.remove("pods", "default", "a")
    assert heard == ["pods"]
