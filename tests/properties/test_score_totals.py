"""Updated totals and best positions equal recomputed ones."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from extender.cycle.score_table import NodeSetScores, PluginScores, ScoreTotals
from extender.framework.result_cache import NodeSet

NODES = 6
SCORES = st.lists(st.integers(0, 3), min_size=NODES, max_size=NODES)
WRITES = st.dictionaries(st.integers(0, NODES - 1), st.tuples(st.integers(0, 3), st.integers(0, 3)), max_size=3)
"""The scores that two plugins write for some nodes, by position."""
NODE_SET = NodeSet.from_mask(np.ones(NODES, dtype=np.bool_))


def _part(scores: list[int], weight: int) -> NodeSetScores:
    raw = np.array(scores, dtype=np.int64)
    return NodeSetScores(PluginScores(raw, raw, weight, raw * weight), NODE_SET, version=0)


@given(first=SCORES, second=SCORES, writes=st.lists(WRITES, min_size=1, max_size=12))
def test_updated_totals_equal_recomputed_totals(
    first: list[int], second: list[int], writes: list[dict[int, tuple[int, int]]]
) -> None:
    parts = [_part(first, 1), _part(second, 3)]
    totals = ScoreTotals(parts, NODES)
    for write in writes:
        places = np.array(sorted(write), dtype=np.int64)
        for number, part in enumerate(parts):
            part.scores.weighted[places] = [write[place][number] * part.scores.weight for place in places.tolist()]
            part.version, part.changed_positions = (part.version or 0) + 1, places
        assert totals.update_to(parts)
        expected = [one + other for one, other in zip(*(part.scores.weighted.tolist() for part in parts), strict=True)]
        assert totals.sums.tolist() == expected
        if totals.best_positions is not None:
            assert totals.best_positions == [place for place, total in enumerate(expected) if total == max(expected)]
        assert (totals.best_positions is not None) or len(places) != 1


def test_scores_two_versions_ahead_cannot_be_applied() -> None:
    part = _part([1, 2, 3, 1, 2, 3], 1)
    totals = ScoreTotals([part], NODES)
    part.version = 2

    assert not totals.update_to([part])
