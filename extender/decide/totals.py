"""Sums of weighted scores over plugins, kept from one pod to the next like it, with the nodes that lead.

Kept and fresh answers are equal; a property test says so. Source: A067, A100.
"""

from bisect import bisect_left
from collections.abc import Sequence

import numpy as np

from extender.cluster.arrays import IntArray
from extender.decide.parts import Part


class Totals:
    """The sums of parts at the versions that these had. True until the next cycle; never to be written to.

    Attributes:
        sums: one a node of the crowd, int64.
        leaders: the places with the highest sum, ascending; None where nobody has kept count of them, as that only
            pays for sums that change in one place at a time.
    """

    __slots__ = ("_top", "_versions", "leaders", "sums")

    def __init__(self, parts: Sequence[Part], size: int) -> None:
        self.sums: IntArray = parts[0].scores.weighted.copy() if parts else np.zeros(size, dtype=np.int64)
        self.leaders: list[int] | None = None
        self._top = 0
        self._versions = [part.version for part in parts]
        for part in parts[1:]:
            self.sums += part.scores.weighted

    def beside(self, parts: Sequence[Part]) -> "Totals":
        """These sums with the scores of *parts* added: new ones."""
        more = Totals(parts, len(self.sums))
        more.sums += self.sums
        return more

    def follow(self, parts: Sequence[Part]) -> bool:
        """Take over what changed in *parts*, the same as ever; False if that cannot be told, then this is worthless."""
        written: IntArray | None = None
        for number, part in enumerate(parts):
            before = self._versions[number]
            if part.version == before:
                continue
            if before is None or part.version != before + 1:
                return False
            self._versions[number] = part.version
            if part.changed is not written:  # mostly all changed at the same places
                written = part.changed
                self._add_up(written, parts)
        return True

    def _add_up(self, places: IntArray, parts: Sequence[Part]) -> None:
        if len(places) == 1:  # after each placement
            place = places.item()
            total = sum([part.scores.weighted.item(place) for part in parts])
            self.sums[place] = total
            self._lead(place, total)
        elif len(places):
            self.sums[places] = sum(part.scores.weighted[places] for part in parts)
            self.leaders = None

    def _lead(self, place: int, total: int) -> None:
        """Count the leaders anew, after the sum of *place* alone became *total*."""
        leaders = self.leaders
        if leaders is None or total > self._top:
            self._top = top = self.sums.item(self.sums.argmax())
            self.leaders = (self.sums == top).nonzero()[0].tolist()
            return
        at = bisect_left(leaders, place)
        led = at < len(leaders) and leaders[at] == place
        if total == self._top:
            if not led:
                leaders.insert(at, place)
        elif led:
            del leaders[at]
            if not leaders:
                self.leaders = None
                self._lead(place, total)
