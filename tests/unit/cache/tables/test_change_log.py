"""The change log returns the distinct rows since a position, and forgets its oldest entries."""

import tracemalloc
from collections.abc import Callable

import numpy as np
import pytest

from extender.cache.tables.change_log import ChangeLog


def rows_since(log: ChangeLog, position: int) -> list[int] | None:
    rows = log.get_rows_since(position)
    return None if rows is None else rows.tolist()


@pytest.mark.parametrize(
    ("position", "rows"),
    [(0, [1, 3, 5]), (1, [1, 3, 5]), (3, [1, 5]), (5, [5]), (6, [])],
    ids=["from the start", "a repeated row", "in order of rows", "one row", "nothing"],
)
def test_distinct_rows_since_a_position_are_sorted(position: int, rows: list[int]) -> None:
    log = ChangeLog()
    for row in (3, 5, 3, 1):
        log.append(row)
    log.extend(np.array([1, 5]))
    assert log.position == 6
    assert rows_since(log, position) == rows


def test_invalidating_the_log_ends_all_earlier_positions() -> None:
    log = ChangeLog()
    log.append(1)
    old_position = log.position
    log.invalidate()
    assert rows_since(log, old_position) is None
    position = log.position
    log.append(2)
    assert rows_since(log, position) == [2]


def test_old_entries_are_dropped() -> None:
    log = ChangeLog()
    log.append(7)
    for _ in range(3):
        log.extend(np.zeros(1 << 16, dtype=np.int64))
    assert log.position == 3 * (1 << 16) + 1
    assert rows_since(log, 0) is None
    assert rows_since(log, log.position - 5) == [0]


def append_rows(log: ChangeLog, rows: range) -> None:
    for row in rows:
        log.append(row)


def extend_by_rows(log: ChangeLog, rows: range) -> None:
    log.extend(np.arange(rows.start, rows.stop, dtype=np.int64))


@pytest.mark.parametrize("add", [append_rows, extend_by_rows])
def test_the_log_keeps_at_most_131_072_changes(add: Callable[[ChangeLog, range], None]) -> None:
    log, retained = ChangeLog(), 0
    for start in range(0, 300_000, 1000):
        add(log, range(start, start + 1000))
        rows = log.get_rows_since(log._first_position)
        assert rows is not None
        retained = max(retained, len(rows))
    assert 65_536 <= retained <= 131_072
    assert log.position == 300_000


@pytest.mark.parametrize("position", [0, 4_095, 4_096, 4_097, 10_000, 12_287, 12_288], ids=str)
def test_rows_since_a_position_may_be_in_several_blocks(position: int) -> None:
    log = ChangeLog()
    for row in range(5_000):
        log.append(row)
    log.extend(np.arange(5_000, 12_288))
    assert log.position == 12_288
    assert rows_since(log, position) == list(range(position, 12_288))


def test_no_allocation_of_the_log_is_large() -> None:
    tracemalloc.start()
    try:
        log = ChangeLog()
        for _ in range(100_000):
            log.append(1)
        largest = max(trace.size for trace in tracemalloc.take_snapshot().traces)
    finally:
        tracemalloc.stop()
    assert 10_000 < largest < 50_000
