"""Raw scores in proportion to the greatest, as most score plugins want them. B004."""

import numpy as np
import pytest

from extender.framework.normalize import in_proportion


@pytest.mark.parametrize(
    ("raw", "reverse", "scores"),
    [
        pytest.param([0, 1, 3], False, [0, 33, 100], id="the greatest gets 100, the others are rounded down"),
        pytest.param([0, 1, 3], True, [100, 67, 0], id="reversed after rounding"),
        pytest.param([0, 0], False, [0, 0], id="all zero stay zero"),
        pytest.param([0, 0], True, [100, 100], id="all zero reversed get 100"),
        pytest.param([7], False, [100], id="a single node gets 100"),
        pytest.param([], False, [], id="no nodes, no scores"),
        pytest.param([2**55, 2**54], False, [100, 50], id="great scores do not overflow"),
    ],
)
def test_scores_are_in_proportion(raw: list[int], reverse: bool, scores: list[int]) -> None:
    given = np.array(raw, dtype=np.int64)
    found = in_proportion(given, reverse=reverse)
    assert found.dtype == np.int64
    assert found.tolist() == scores
    assert given.tolist() == raw, "raw scores stay as they are"
