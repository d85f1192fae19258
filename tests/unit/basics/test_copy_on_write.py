"""CopyOnWriteDict: a fork shares values with its original and copies them on write."""

import pytest

from extender.basics.copy_on_write import CopyOnWriteDict


@pytest.fixture
def original() -> CopyOnWriteDict[str, list[int]]:
    mapping: CopyOnWriteDict[str, list[int]] = CopyOnWriteDict(list)
    mapping.put("a", [1])
    mapping.put("b", [2])
    return mapping


def test_a_new_mapping_is_written_in_place(original: CopyOnWriteDict[str, list[int]]) -> None:
    value = original.get("a")
    assert original.get_writable("a", list) is value
    assert original.get_writable("c", list) == []
    assert list(original) == ["a", "b", "c"]


def test_a_fork_shares_values_until_they_are_written(original: CopyOnWriteDict[str, list[int]]) -> None:
    fork = original.fork()
    assert fork.get("a") is original.get("a")
    fork.get_writable("a", list).append(7)
    assert (original.get("a"), fork.get("a")) == ([1], [1, 7])
    assert fork.get("b") is original.get("b")


def test_a_value_is_copied_once_per_fork(original: CopyOnWriteDict[str, list[int]]) -> None:
    fork = original.fork()
    first = fork.get_writable("a", list)
    assert fork.get_writable("a", list) is first


def test_writes_of_a_fork_do_not_change_the_original(original: CopyOnWriteDict[str, list[int]]) -> None:
    fork = original.fork()
    fork.put("c", [3])
    fork.remove("a")
    fork.remove("unknown")
    assert fork.get_writable("d", list) == []
    assert dict(original.items()) == {"a": [1], "b": [2]}
    assert dict(fork.items()) == {"b": [2], "c": [3], "d": []}
    assert (len(original), len(fork)) == (2, 3)


def test_a_value_put_into_a_fork_is_written_in_place(original: CopyOnWriteDict[str, list[int]]) -> None:
    fork, value = original.fork(), [3]
    fork.put("c", value)
    assert fork.get_writable("c", list) is value


def test_a_removed_key_is_created_again(original: CopyOnWriteDict[str, list[int]]) -> None:
    fork = original.fork()
    fork.get_writable("a", list)
    fork.remove("a")
    assert "a" not in fork
    assert fork.get_writable("a", lambda: [9]) == [9]


def test_a_fork_of_a_fork_is_independent_of_both(original: CopyOnWriteDict[str, list[int]]) -> None:
    fork = original.fork()
    fork.get_writable("a", list).append(7)
    second = fork.fork()
    second.get_writable("a", list).append(8)
    assert list(original.get_all(["a", "x"])) == [[1], None]
    assert list(fork.values()) == [[1, 7], [2]]
    assert list(second.values()) == [[1, 7, 8], [2]]
