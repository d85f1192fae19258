"""Raw scores brought to 0..100, the way most score plugins do it."""

import numpy as np

from extender.cluster.arrays import IntArray

MAX_SCORE = 100


def in_proportion(raw: IntArray, *, reverse: bool = False) -> IntArray:
    """Scores in proportion to the greatest raw score, which gets 100; where all are 0 they stay 0.

    Args:
        raw: none negative; left as it is.
        reverse: the greatest gets 0 and a raw score of 0 gets 100.

    Returns:
        A new int64 array in the order of *raw*, rounded down (before reversing).

    Source: B004.
    """
    top = int(raw.max(initial=0))
    scores = raw * MAX_SCORE // top if top else np.zeros_like(raw)
    return MAX_SCORE - scores if reverse else scores
