"""Two positions of one history, or of histories that branch off from it, differ in the rows written since."""

from extender.cache.tables.change_log import ChangeLog
from extender.cache.tables.history import HistoryId, HistoryPosition


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
    results = [one.find_changed_rows(other), other.find_changed_rows(one)]
    first, second = ([rows.tolist() for rows in changed] if changed is not None else None for changed in results)
    assert first == second
    return None if first is None else (first[0], first[1])


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
