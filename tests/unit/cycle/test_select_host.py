"""Select one of the best nodes. Source: pkg/scheduler/schedule_one.go, nodeScoreHeap.Less (1.36)."""

from random import Random

import numpy as np
import pytest

from extender.cycle.score import Ranking
from extender.cycle.select_host import select_host

ROWS = np.array([2, 5, 7, 9], dtype=np.int64)


class UnusedRandom(Random):
    """Fails if it is used."""

    def randrange(self, *_: object) -> int:  # type: ignore[override]
        raise AssertionError("there is nothing to leave to chance")


def test_without_a_tie_the_rng_is_not_used() -> None:
    assert select_host(Ranking(ROWS, np.array([1, 4, 3, 3])), UnusedRandom()) == 5
    assert select_host(Ranking(ROWS, np.array([1, 4, 3, 3]), best_positions=[1]), UnusedRandom()) == 5


@pytest.mark.parametrize("best_positions", [None, [0, 3]])
def test_each_of_the_best_is_as_likely(best_positions: list[int] | None) -> None:
    rng = Random(7)
    ranking = Ranking(ROWS, np.array([4, 1, 3, 4]), best_positions=best_positions)
    selected = [select_host(ranking, rng) for _ in range(1000)]

    assert set(selected) == {2, 9}
    assert 450 < selected.count(2) < 550


def test_the_same_seed_selects_the_same_node_with_and_without_best_positions() -> None:
    totals = np.array([4, 4, 3, 4])
    for seed in range(20):
        assert select_host(Ranking(ROWS, totals), Random(seed)) == select_host(
            Ranking(ROWS, totals, best_positions=[0, 1, 3]), Random(seed)
        )
