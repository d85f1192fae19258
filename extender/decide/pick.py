"""One of the best nodes, by injected chance.

Source: A104 (the rule of releases before 1.35: every best node is as likely).
"""

from random import Random

from extender.decide.rank import Ranking


def pick(ranking: Ranking, chance: Random) -> int:
    """One of the best rows of *ranking*, which is not empty; only a tie asks *chance*."""
    leaders = ranking.leaders
    if leaders is None:
        best = ranking.best()
        return best.item(_any_of(len(best), chance))
    return ranking.rows.item(leaders[_any_of(len(leaders), chance)])


def _any_of(count: int, chance: Random) -> int:
    return 0 if count == 1 else chance.randrange(count)
