"""From a profile's totals to the scores of prioritize.

kube-scheduler takes scores from 0 to 10 from an extender, multiplies them by its weight and by 10, and adds them to its
own totals (F024, F036). The mapping of totals to such scores:

- The best node has 10 and the worst 0. In between, scores are in proportion to the totals, rounded down; so only nodes
  with the best total have 10.
- It never turns an order round, and equal totals have equal scores.
- With at most eleven different totals no two of them share a score: where rounding would make them equal, the lower one
  moves down, or the higher one up where there is no room below. With more than eleven that cannot be, and neighbours
  share scores.
- If all totals are equal, all nodes have 10.
- A node that the profile refuses has no total. It has 0, and the worst of the others then has 1. kube-scheduler does
  not ask about such nodes unless our filter is left out of its configuration.

The answer names the nodes best first, by total; so nodes that share a score are still in order.

In the raw mode scores are the totals themselves, and 0 for refused nodes. That is for callers that do their own
arithmetic: kube-scheduler does not check the range, and its own totals would hardly count beside them.
"""

from enum import Enum

import numpy as np

from extender.cluster.arrays import IntArray

BEST = 10
"""The highest score of a node. Source: F024."""

_BITS = 59
"""What a span of totals may have so that ten times it is still an int64."""


class ScoreRange(Enum):
    """How prioritize answers."""

    TEN = "0-10"
    RAW = "raw"


def scaled(totals: IntArray, lowest: int = 0) -> IntArray:
    """*totals* mapped to *lowest*..10: int64, same shape.

    Args:
        totals: int64, at least 0.
        lowest: of the worst node, 0 to 9.
    """
    if not len(totals):
        return totals
    if (totals == totals[0]).all():
        return np.full(len(totals), BEST, dtype=np.int64)
    different, places = np.unique(totals, return_inverse=True)
    above = different - different[0]
    span = int(above[-1])
    spare = max(0, span.bit_length() - _BITS)
    scores: IntArray = lowest + (above >> spare) * (BEST - lowest) // (span >> spare)
    if len(scores) <= BEST - lowest + 1:
        scores = _apart(scores, lowest)
    result: IntArray = scores[places]
    return result


def _apart(scores: IntArray, lowest: int) -> IntArray:
    """Ascending scores made different from each other, each moved as little as that takes; there is room for all."""
    moved = scores.tolist()
    for place in range(len(moved) - 2, -1, -1):
        moved[place] = min(moved[place], moved[place + 1] - 1)
    for place in range(len(moved)):
        moved[place] = max(moved[place], lowest + place if place == 0 else moved[place - 1] + 1)
    return np.array(moved, dtype=np.int64)
