"""Normalization in proportion to the maximum."""

import numpy as np
import pytest

from extender.framework.normalize import default_normalize_score


@pytest.mark.parametrize(
    ("raw", "reverse", "scores"),
    [
        pytest.param([0, 1, 3], False, [0, 33, 100], id="the maximum becomes 100, the others are rounded down"),
        pytest.param([0, 1, 3], True, [100, 67, 0], id="reversed after rounding"),
        pytest.param([0, 0], False, [0, 0], id="all zero stay zero"),
        pytest.param([0, 0], True, [100, 100], id="all zero reversed get 100"),
        pytest.param([7], False, [100], id="a single node gets 100"),
        pytest.param([], False, [], id="no nodes, no scores"),
        pytest.param([2**55, 2**54], False, [100, 50], id="large scores do not overflow"),
        pytest.param([2**63 - 1, 2**62, 0], False, [100, 50, 0], id="the largest scores do not overflow"),
        pytest.param([1_800_000_000 * 10**9, 900_000_000 * 10**9], False, [100, 50], id="nor do times in nanoseconds"),
    ],
)
def test_scores_are_in_proportion_to_the_maximum(raw: list[int], reverse: bool, scores: list[int]) -> None:
    raw_scores = np.array(raw, dtype=np.int64)
    normalized = default_normalize_score(raw_scores, reverse=reverse)
    assert normalized.dtype == np.int64
    assert normalized.tolist() == scores
    assert raw_scores.tolist() == raw, "raw scores are not modified"
