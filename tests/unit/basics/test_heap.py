"""KeyedHeap: a min-heap whose values can be looked up, replaced and removed by key."""

from hypothesis import given
from hypothesis import strategies as st

from extender.basics.heap import KeyedHeap

Entry = tuple[str, int]


def make_heap(*entries: Entry) -> KeyedHeap[Entry]:
    heap: KeyedHeap[Entry] = KeyedHeap(lambda entry: entry[0], lambda entry: entry[1])
    for entry in entries:
        heap.add_or_update(entry)
    return heap


def pop_all(heap: KeyedHeap[Entry]) -> list[Entry]:
    popped = []
    while (entry := heap.pop()) is not None:
        popped.append(entry)
    return popped


def test_values_are_popped_in_order_and_equal_ones_in_insertion_order() -> None:
    assert pop_all(make_heap(("a", 2), ("b", 1), ("c", 2), ("d", 1))) == [("b", 1), ("d", 1), ("a", 2), ("c", 2)]


def test_an_update_replaces_the_value_and_its_position() -> None:
    heap = make_heap(("a", 1), ("b", 2))
    heap.add_or_update(("a", 3))
    assert len(heap) == 2
    assert heap.get("a") == ("a", 3)
    assert heap.peek() == ("b", 2)
    assert pop_all(heap) == [("b", 2), ("a", 3)]


def test_a_removed_value_is_not_popped() -> None:
    heap = make_heap(("a", 1), ("b", 2))
    assert heap.remove("a") == ("a", 1)
    assert heap.remove("a") is None
    assert "a" not in heap
    assert pop_all(heap) == [("b", 2)]


def test_an_empty_heap_has_no_smallest_value() -> None:
    heap = make_heap()
    assert (heap.peek(), heap.pop(), heap.get("a"), list(heap)) == (None, None, None, [])


def test_many_updates_of_one_value_keep_the_heap_small() -> None:
    heap = make_heap(*((f"k{number}", number) for number in range(3)))
    for number in range(1000):
        heap.add_or_update(("k0", -number))
    assert len(heap._heap) <= 2 * len(heap) + 65
    assert pop_all(heap) == [("k0", -999), ("k1", 1), ("k2", 2)]


@given(st.lists(st.tuples(st.sampled_from("abcdef"), st.none() | st.integers(0, 5)), max_size=40))
def test_any_updates_and_removals_leave_the_values_in_order(changes: list[tuple[str, int | None]]) -> None:
    heap, values = make_heap(), dict[str, int]()
    for key, value in changes:
        if value is None:
            heap.remove(key)
            values.pop(key, None)
        else:
            heap.add_or_update((key, value))
            values.pop(key, None)
            values[key] = value
    assert pop_all(heap) == sorted(values.items(), key=lambda entry: entry[1])
