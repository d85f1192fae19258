"""The score normalization that most score plugins use."""

import numpy as np

from extender.cache.tables.arrays import IntArray

MAX_SCORE = 100
_MAX_PRODUCT = 2**63 - 1


def default_normalize_score(scores: IntArray, *, reverse: bool = False) -> IntArray:
    """Scale raw scores so that the maximum becomes 100. If all scores are 0, they stay 0.

    A plugin that normalizes its scores only by this function may have the attribute `normalizes_only_by_scores = True`.
    If its raw scores are equal for all nodes, they are then normalized once, not for the nodes of each pod. The
    attribute means that the result depends only on the raw scores, and not on the number of equal ones.

    No raw score is negative; *scores* is not modified. With *reverse*, the scaled scores are subtracted from 100, so
    that the maximum becomes 0.

    Returns:
        A new int64 array in the order of *scores*, rounded down (before reversing).

    Source: pkg/scheduler/framework/plugins/helper/normalize_score.go, DefaultNormalizeScore (1.36).
    """
    maximum = int(scores.max(initial=0))
    if maximum > _MAX_PRODUCT // MAX_SCORE:  # such as times in nanoseconds
        scores, maximum = scores >> 7, maximum >> 7
    normalized = scores * MAX_SCORE // maximum if maximum else np.zeros_like(scores)
    return MAX_SCORE - normalized if reverse else normalized
