"""Scale a profile's totals to the scores of prioritize.

kube-scheduler takes scores from 0 to 10 from an extender, multiplies them by the extender's weight and by 10, and adds
them to its own totals. Totals are scaled to such scores as follows:

- The best node has 10 and the worst 0. In between, scores are in proportion to the totals, rounded down; so only nodes
  with the best total have 10.
- The order never changes, and equal totals have equal scores.
- If there are at most as many distinct totals as scores, distinct totals have distinct scores. If rounding makes two
  scores equal, the lower one is decreased. If it is already at the minimum, the higher one is increased.
- If there are more distinct totals than scores, adjacent totals share a score.
- If all totals are equal, all nodes have 10.
- A node that the profile rejects has no total. It gets 0, and the worst feasible node gets 1. kube-scheduler sends such
  nodes only if its configuration does not use our filter.

The response lists the nodes best first, by total; so nodes that share a score are still in order.

In the relative mode the commonest score is subtracted from all scores, and nodes whose score is then 0 are left out of
the response. kube-scheduler counts 0 for them, so it compares totals with the same differences as before. But it draws
a random number only for the nodes in the response, so the others lose ties against these.

In the raw mode scores are the totals themselves, and 0 for rejected nodes. It is for callers that scale totals
themselves. kube-scheduler does not check the range, so raw totals would outweigh kube-scheduler's totals.

Source: kube-scheduler/extender/v1/types.go, MaxExtenderPriority; pkg/scheduler/schedule_one.go, prioritizeNodes
(1.36).
"""

from enum import Enum

import numpy as np

from extender.cache.tables.arrays import IntArray

MAX_EXTENDER_PRIORITY = 10
"""The highest score of a node. Source: kube-scheduler/extender/v1/types.go, MaxExtenderPriority (1.36)."""

_MAX_SPAN_BITS = 59
"""Maximum bit length of a span of totals: ten times the span must fit an int64."""


class ScoreRange(Enum):
    """The score range of prioritize."""

    TEN = "0-10"
    RELATIVE = "relative"
    RAW = "raw"


def scale_totals(totals: IntArray, min_score: int = 0) -> IntArray:
    """Scale *totals* to *min_score*..10: int64, same shape.

    Args:
        totals: int64, at least 0, the highest first.
        min_score: the score of the worst node, 0 to 9.
    """
    if not len(totals):
        return totals
    if totals[0] == totals[-1]:
        return np.full(len(totals), MAX_EXTENDER_PRIORITY, dtype=np.int64)
    group_starts = np.concatenate(([0], (totals[1:] != totals[:-1]).nonzero()[0] + 1))
    distinct = totals[group_starts[::-1]]
    differences = distinct - distinct[0]
    span = int(differences[-1])
    shift = max(0, span.bit_length() - _MAX_SPAN_BITS)
    scores: IntArray = min_score + (differences >> shift) * (MAX_EXTENDER_PRIORITY - min_score) // (span >> shift)
    if len(scores) <= MAX_EXTENDER_PRIORITY - min_score + 1:
        scores = _make_distinct(scores, min_score)
    group_sizes = np.diff(group_starts, append=len(totals))
    result: IntArray = scores[::-1].repeat(group_sizes)
    return result


def _make_distinct(scores: IntArray, min_score: int) -> IntArray:
    """Make ascending scores distinct, changing each as little as possible; the range must have enough values."""
    distinct = scores.tolist()
    for index in range(len(distinct) - 2, -1, -1):
        distinct[index] = min(distinct[index], distinct[index + 1] - 1)
    for index in range(len(distinct)):
        distinct[index] = max(distinct[index], min_score + index if index == 0 else distinct[index - 1] + 1)
    return np.array(distinct, dtype=np.int64)
