"""Updated totals and best rows equal recomputed ones."""

from typing import Any, cast

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from extender.cycle.tables.score_table import ScoreTable, ScoreTotals
from extender.framework.extension_points import DependsOn
from extender.framework.plugin_runner import PluginRunner
from extender.framework.profiles import WeightedScore
from extender.framework.result_cache import NodeSet
from tests.build import make_cluster, make_node, make_pod

NODES = 8
SCORES = st.lists(st.integers(0, 3), min_size=NODES, max_size=NODES)
WRITES = st.tuples(
    st.dictionaries(st.integers(0, NODES - 1), st.tuples(st.integers(0, 3), st.integers(0, 3)), min_size=1, max_size=3),
    st.booleans(),
)
"""The scores that two plugins write for some nodes, by row; and whether the plugins are in the second table."""
MASKS = st.lists(st.booleans(), min_size=NODES, max_size=NODES).filter(any)
RUNNER, SNAPSHOT = PluginRunner(), make_cluster(*(make_node(f"n{number}") for number in range(NODES))).snapshot()
POD = SNAPSHOT.make_pod_info(make_pod())


class ListedScores:
    """Returns the scores of a list."""

    name = "ListedScores"

    def __init__(self, scores: list[int], depends_on: DependsOn) -> None:
        self.scores, self.score_depends_on = np.array(scores, dtype=np.int64), depends_on

    def score(self, _pod: Any, nodes: Any, _state: Any) -> Any:
        return nodes.take(self.scores)


def _make_table(first: list[int], second: list[int], depends_on: DependsOn) -> ScoreTable:
    entries = [
        WeightedScore(cast("Any", ListedScores(first, depends_on)), 1),
        WeightedScore(cast("Any", ListedScores(second, depends_on)), 3),
    ]
    return ScoreTable(entries, POD, SNAPSHOT, {}, RUNNER)


@given(
    first=SCORES,
    second=SCORES,
    writes=st.lists(WRITES, min_size=1, max_size=12),
    masks=st.tuples(MASKS, MASKS),
)
def test_updated_totals_equal_recomputed_totals(
    first: list[int],
    second: list[int],
    writes: list[tuple[dict[int, tuple[int, int]], bool]],
    masks: tuple[list[bool], list[bool]],
) -> None:
    tables = (
        _make_table(first, second, DependsOn.NODE),
        _make_table(second, first, DependsOn.NODE_AND_PODS),
    )
    node_sets = [NodeSet.from_mask(np.array(mask)) for mask in masks]
    totals = ScoreTotals(tables)
    for number, (write, is_second_table) in enumerate(writes):
        rows = np.array(sorted(write), dtype=np.int64)
        for plugin in (0, 1):
            scores = np.array([write[row][plugin] for row in rows.tolist()], dtype=np.int64)
            tables[is_second_table]._write(plugin, rows, scores)
        tables[is_second_table]._finish_write(rows)
        totals.update()

        expected = [
            sum(column)
            for column in zip(
                *(
                    [score * weight for score in row]
                    for table in tables
                    for row, weight in zip(table.raw.tolist(), (1, 3), strict=True)
                ),
                strict=True,
            )
        ]
        assert totals.sums.tolist() == expected
        node_set = node_sets[number // 4 % 2]
        best_total = max(expected[row] for row in node_set.rows.tolist())
        assert list(totals.find_best_rows(node_set, node_set.take(totals.sums))) == [
            row for row in node_set.rows.tolist() if expected[row] == best_total
        ]


def test_totals_two_versions_behind_are_recomputed() -> None:
    table = _make_table([1] * NODES, [2] * NODES, DependsOn.NODE_AND_PODS)
    totals = ScoreTotals((table,))
    for row in (2, 5):
        table._write(0, np.array([row]), np.array([9]))
        table._finish_write(np.array([row]))
    totals.update()
    assert totals.sums.tolist() == [7, 7, 15, 7, 7, 15, 7, 7]
