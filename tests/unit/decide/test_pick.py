"""One of the best nodes. Source: A104."""

from random import Random

import numpy as np
import pytest

from extender.decide.pick import pick
from extender.decide.rank import Ranking

ROWS = np.array([2, 5, 7, 9], dtype=np.int64)


class NoChance(Random):
    """Fails whoever asks it."""

    def randrange(self, *_: object) -> int:  # type: ignore[override]
        raise AssertionError("there is nothing to leave to chance")


def test_without_a_tie_chance_is_not_asked() -> None:
    assert pick(Ranking(ROWS, np.array([1, 4, 3, 3])), NoChance()) == 5
    assert pick(Ranking(ROWS, np.array([1, 4, 3, 3]), leaders=[1]), NoChance()) == 5


@pytest.mark.parametrize("leaders", [None, [0, 3]])
def test_each_of_the_best_is_as_likely(leaders: list[int] | None) -> None:
    chance = Random(7)
    ranking = Ranking(ROWS, np.array([4, 1, 3, 4]), leaders=leaders)
    picked = [pick(ranking, chance) for _ in range(1000)]

    assert set(picked) == {2, 9}
    assert 450 < picked.count(2) < 550


def test_the_same_chance_picks_the_same_whether_leaders_are_known_or_not() -> None:
    totals = np.array([4, 4, 3, 4])
    for seed in range(20):
        assert pick(Ranking(ROWS, totals), Random(seed)) == pick(Ranking(ROWS, totals, leaders=[0, 1, 3]), Random(seed))
