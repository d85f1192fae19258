"""Pods by domain with the emptiest domain at hand, also while pods are imagined to come and go. Source: B073."""

import numpy as np

from extender.cluster.arrays import IntArray, widened
from extender.cluster.nodes import ABSENT

_NO_DOMAIN = 2**31 - 1
"""The number that stands for the emptiest domain where there is none."""

_Path = tuple[int | None, int]
"""A domain (the id of its label value, None for none yet) and the pods in it."""


class DomainCounts:
    """Pods in each domain of one constraint.

    The least number is followed through changes the way kube-scheduler does it, with the two emptiest domains only:
    right for changes in one domain, and equally wrong after changes in several.

    Attributes:
        counts: int64 by the id of the label value; may be shared with the tables, so only `move` writes.
        number: how many domains there are.
    """

    __slots__ = ("_ids", "_least", "_mine", "_paths", "counts", "number")

    def __init__(self, counts: IntArray, ids: IntArray) -> None:
        """Nothing was moved yet.

        Args:
            counts: pods by the id of the label value.
            ids: the values that are domains, ascending.
        """
        self.counts = counts
        self.number = len(ids)
        self._ids = ids
        self._mine = False
        self._paths: tuple[_Path, _Path] | None = None
        self._least: int | None = None

    @property
    def least(self) -> int:
        """Pods in the emptiest domain; 2147483647 without domains."""
        if self._paths is not None:
            return self._paths[0][1]
        if self._least is None:
            self._least = int(self._in_domains().min()) if self.number else _NO_DOMAIN
        return self._least

    def _in_domains(self) -> IntArray:
        dense = self.number == int(self._ids[-1]) + 1
        return self.counts[: self.number] if dense else self.counts[self._ids]

    def clone(self) -> "DomainCounts":
        """The same counts, to be changed without touching these."""
        twin = DomainCounts(self.counts, self._ids)
        twin._paths, twin._least = self._paths, self._least
        self._mine = False  # both share from here on, so both copy before they write
        return twin

    def move(self, value: int, by: int) -> None:
        """*by* pods more in the domain of the label value with id *value*."""
        paths = self._paths or self._emptiest()
        if not self._mine:
            self.counts = widened(self.counts.copy(), value + 1)
            self._mine = True
        self.counts[value] += by
        self._paths = _updated(paths, value, int(self.counts[value]))

    def least_apart(self, values: IntArray, counts: IntArray, moved: IntArray) -> IntArray:
        """Pods in the emptiest domain for each of several changes in one domain, each on its own: int64.

        Args:
            values: the id of the label value of each change.
            counts: how many pods are in that domain after the change.
            moved: by how many it changed; where it is 0, *counts* and *values* are not looked at.
        """
        (first, least), (_, next_least) = self._paths or self._emptiest()
        others = np.where(values == (ABSENT if first is None else first), next_least, least)
        changed: IntArray = np.where(moved == 0, least, np.minimum(others, counts))
        return changed

    def _emptiest(self) -> tuple[_Path, _Path]:
        found: list[_Path] = [(None, _NO_DOMAIN), (None, _NO_DOMAIN)]
        if self.number:
            numbers = self._in_domains().copy()
            for place in range(min(2, self.number)):
                at = int(numbers.argmin())
                found[place] = (int(self._ids[at]), int(numbers[at]))
                numbers[at] = np.iinfo(np.int64).max
        return found[0], found[1]


def _updated(paths: tuple[_Path, _Path], value: int, number: int) -> tuple[_Path, _Path]:
    first, second = paths
    if value in {first[0], second[0]}:
        if value == first[0]:
            first = (value, number)
        else:
            second = (value, number)
        return (second, first) if first[1] > second[1] else (first, second)
    if number < first[1]:
        return (value, number), first
    if number < second[1]:
        return first, (value, number)
    return paths
