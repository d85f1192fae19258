"""Sums that follow what changed are those added up anew, and so are the nodes that lead."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from extender.decide.parts import Part, PluginScores
from extender.decide.totals import Totals
from extender.framework.columns import Crowd

NODES = 6
SCORES = st.lists(st.integers(0, 3), min_size=NODES, max_size=NODES)
WRITE = st.dictionaries(st.integers(0, NODES - 1), st.tuples(st.integers(0, 3), st.integers(0, 3)), max_size=3)
"""What two plugins say of some nodes, by place."""
CROWD = Crowd.of(np.ones(NODES, dtype=np.bool_))


def _part(scores: list[int], weight: int) -> Part:
    raw = np.array(scores, dtype=np.int64)
    return Part(PluginScores(raw, raw, weight, raw * weight), CROWD, version=0)


@given(first=SCORES, second=SCORES, writes=st.lists(WRITE, min_size=1, max_size=12))
def test_sums_and_leaders_that_follow_are_those_made_anew(
    first: list[int], second: list[int], writes: list[dict[int, tuple[int, int]]]
) -> None:
    parts = [_part(first, 1), _part(second, 3)]
    totals = Totals(parts, NODES)
    for write in writes:
        places = np.array(sorted(write), dtype=np.int64)
        for number, part in enumerate(parts):
            part.scores.weighted[places] = [write[place][number] * part.scores.weight for place in places.tolist()]
            part.version, part.changed = (part.version or 0) + 1, places
        assert totals.follow(parts)
        expected = [one + other for one, other in zip(*(part.scores.weighted.tolist() for part in parts), strict=True)]
        assert totals.sums.tolist() == expected
        if totals.leaders is not None:
            assert totals.leaders == [place for place, total in enumerate(expected) if total == max(expected)]
        assert (totals.leaders is not None) or len(places) != 1


def test_a_part_that_is_two_versions_ahead_cannot_be_followed() -> None:
    part = _part([1, 2, 3, 1, 2, 3], 1)
    totals = Totals([part], NODES)
    part.version = 2

    assert not totals.follow([part])
