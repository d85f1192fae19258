"""Totals become scores of 0 to 10; order and ties do not change."""

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from extender.extender_api.score_scaling import scale_totals


@pytest.mark.parametrize(
    ("totals", "lowest", "scores"),
    [
        ([], 0, []),
        ([512], 0, [10]),
        ([0, 0, 0], 0, [10, 10, 10]),
        ([700, 699], 0, [10, 0]),
        ([200, 150, 100], 0, [10, 5, 0]),
        ([200, 150, 100], 1, [10, 5, 1]),
        ([100, 2, 1, 0], 0, [10, 2, 1, 0]),
        ([100, 99, 98, 0], 0, [10, 9, 8, 0]),
        ([100, 6, 5, 5], 0, [10, 1, 0, 0]),
        ([*range(10, -1, -1)], 0, [*range(10, -1, -1)]),
        ([*range(9, -1, -1)], 1, [*range(10, 0, -1)]),
        ([*range(11, -1, -1)], 0, [10, 9, 8, 7, 6, 5, 4, 3, 2, 1, 0, 0]),
        ([2**63 - 1, 2**62, 0], 0, [10, 5, 0]),
    ],
    ids=[
        "no node",
        "one node",
        "all equal",
        "two nodes",
        "in proportion",
        "above refused nodes",
        "crowded below",
        "crowded above",
        "ties",
        "eleven totals, each its own score",
        "ten totals above refused nodes, each its own score",
        "twelve totals, two must share",
        "the greatest numbers",
    ],
)
def test_totals_become_scores(totals: list[int], lowest: int, scores: list[int]) -> None:
    assert scale_totals(np.array(totals, dtype=np.int64), lowest).tolist() == scores


@given(st.lists(st.integers(0, 2**63 - 1) | st.integers(0, 30), min_size=1, max_size=40), st.sampled_from([0, 1]))
def test_order_and_ties_do_not_change(totals: list[int], lowest: int) -> None:
    totals.sort(reverse=True)
    scores = scale_totals(np.array(totals, dtype=np.int64), lowest).tolist()
    pairs = sorted(zip(totals, scores, strict=True))
    assert all(low[1] <= high[1] for low, high in pairwise(pairs))
    assert all(low[1] == high[1] for low, high in pairwise(pairs) if low[0] == high[0])
    assert pairs[-1][1] == 10
    assert min(scores) >= lowest
    if len(set(totals)) <= 11 - lowest:
        assert len(set(scores)) == len(set(totals))
