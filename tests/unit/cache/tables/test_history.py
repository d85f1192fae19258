"""Two positions of one history, or of histories that branch off from it, differ in the rows written since.

The change log returns the distinct rows since a position, and forgets its oldest entries.
"""

import tracemalloc
from collections.abc import Callable

import numpy as np
import pytest

from extender.cache.tables.history import ChangeLog, HistoryId, HistoryPosition


class WrittenHistory:
    """A history to which a test writes rows."""

    def __init__(self, branch_point: HistoryPosition | None = None) -> None:
        self.history_id, self.node_log, self.pod_log = HistoryId(branch_point), ChangeLog(), ChangeLog()

    def write(self, *, nodes: tuple[int, ...] = (), pods: tuple[int, ...] = ()) -> HistoryPosition:
        for row in nodes:
            self.node_log.append(row)
        for row in pods:
            self.pod_log.append(row)
        return HistoryPosition(
            self.history_id, self.node_log, self.pod_log, self.node_log.position, self.pod_log.position
        )


def differing_rows(one: HistoryPosition, other: HistoryPosition) -> tuple[list[int], list[int]] | None:
    """Return the rows with a changed node and those with any change; check that the order does not matter."""
    rows_of_nodes, all_rows = one.find_changed_rows(other, nodes_only=True), one.find_changed_rows(other)
    for nodes_only, rows in ((True, rows_of_nodes), (False, all_rows)):
        other_rows = other.find_changed_rows(one, nodes_only=nodes_only)
        assert (None if other_rows is None else other_rows.tolist()) == (None if rows is None else rows.tolist())
    return None if rows_of_nodes is None or all_rows is None else (rows_of_nodes.tolist(), all_rows.tolist())


def test_positions_of_one_history_differ_in_the_rows_written_between_them() -> None:
    history = WrittenHistory()
    start = history.write(pods=(9,))
    end = history.write(nodes=(5,), pods=(3, 5, 3))
    assert differing_rows(start, end) == ([5], [3, 5])
    assert differing_rows(end, end) == ([], [])


def test_a_branch_differs_from_its_origin_in_the_rows_of_both() -> None:
    origin = WrittenHistory()
    old_position = origin.write(pods=(1,))
    branch_point = origin.write(pods=(2,))
    branch = WrittenHistory(branch_point).write(pods=(3,))
    assert differing_rows(branch, branch_point) == ([], [3])
    assert differing_rows(branch, old_position) == ([], [2, 3])
    assert differing_rows(branch, origin.write(nodes=(4,))) == ([4], [3, 4])


def test_two_branches_differ_in_their_rows_and_those_between_their_branch_points() -> None:
    origin = WrittenHistory()
    first = WrittenHistory(origin.write(pods=(1,))).write(pods=(2,))
    second_branch = WrittenHistory(origin.write(pods=(3,)))
    second = second_branch.write(pods=(4,))
    assert differing_rows(first, second) == ([], [2, 3, 4])
    assert differing_rows(first, WrittenHistory(second).write(nodes=(5,))) == ([5], [2, 3, 4, 5])


def test_any_row_may_differ_between_unrelated_histories() -> None:
    assert differing_rows(WrittenHistory().write(), WrittenHistory().write()) is None


def test_any_row_may_differ_after_rows_moved() -> None:
    origin = WrittenHistory()
    branch = WrittenHistory(origin.write())
    position = branch.write(pods=(1,))
    origin.pod_log.invalidate()
    assert differing_rows(position, origin.write()) is None
    later_branch = WrittenHistory(origin.write())
    assert differing_rows(position, later_branch.write()) is None
    assert differing_rows(origin.write(), later_branch.write(pods=(2,))) == ([], [2])


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
