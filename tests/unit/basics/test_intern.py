"""Interning: ids of values, and shared objects."""

from extender.basics.intern import Interner, InternerFork, InternPool


def make_pair(*numbers: int) -> tuple[int, ...]:
    """Return a new tuple, which the compiler cannot share with an equal constant."""
    return numbers


def test_ids_are_consecutive_and_equal_values_have_the_same_id() -> None:
    interner = Interner(("cpu", "memory"))
    assert [interner.intern(name) for name in ("gpu", "cpu", "gpu", "disk")] == [2, 0, 2, 3]
    assert list(interner) == ["cpu", "memory", "gpu", "disk"]
    assert (interner[2], len(interner)) == ("gpu", 4)


def test_get_does_not_add_a_value() -> None:
    interner = Interner(("cpu",))
    assert (interner.get("cpu"), interner.get("memory"), len(interner)) == (0, None, 1)


def test_a_fork_and_its_original_do_not_get_values_of_each_other() -> None:
    original = Interner(("cpu", "memory"))
    fork = InternerFork(original)
    assert [fork.intern(name) for name in ("gpu", "memory", "gpu")] == [2, 1, 2]
    assert [original.intern(name) for name in ("disk", "gpu")] == [2, 3]
    assert (list(fork), list(original)) == (["cpu", "memory", "gpu"], ["cpu", "memory", "disk", "gpu"])
    assert (fork[1], fork[2], len(fork), fork.get("disk")) == ("memory", "gpu", 3, None)
    assert fork.intern("disk") == 3


def test_a_pool_returns_one_object_for_equal_values() -> None:
    pool: InternPool[tuple[int, ...]] = InternPool()
    first = make_pair(1, 2)
    assert pool.intern(first) is first
    assert pool.intern(make_pair(1, 2)) is first


def test_a_full_pool_is_cleared() -> None:
    pool: InternPool[tuple[int, ...]] = InternPool(max_size=2)
    first = make_pair(0, 0)
    pool.intern(first)
    for number in range(1, 4):
        pool.intern((number,))
    assert pool.intern(make_pair(0, 0)) is not first
