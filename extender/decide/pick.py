"""One of the best nodes, by injected chance.

Source: A104 (the rule of releases before 1.35: every best node is as likely).
"""

from random import Random

from extender.cluster.arrays import IntArray


def pick(best: IntArray, chance: Random) -> int:
    """One row of *best* (int64, not empty); only a tie asks *chance*."""
    return int(best[0] if len(best) == 1 else best[chance.randrange(len(best))])
