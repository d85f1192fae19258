"""Select one of the nodes with the highest score, at random.

Every best node is equally likely, as in releases before 1.35.

Source: pkg/scheduler/schedule_one.go, nodeScoreHeap.Less (1.36).
"""

from random import Random

from extender.cycle.score import Ranking


def select_host(ranking: Ranking, rng: Random) -> int:
    """Return one of the best rows of *ranking*, which is not empty; *rng* breaks ties."""
    positions = ranking.best_positions
    if positions is None:
        rows = ranking.find_best_rows()
        return rows.item(_select_index(len(rows), rng))
    return ranking.rows.item(positions[_select_index(len(positions), rng)])


def _select_index(count: int, rng: Random) -> int:
    return 0 if count == 1 else rng.randrange(count)
