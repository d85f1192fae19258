"""The order in which Go sorts elements that are not all distinct.

Go's `sort.Slice` is not stable, but it depends on nothing except the results of the comparisons. Where kube-scheduler
tries elements in that order, the order of equal elements is part of its decision.

Source: sort/zsortfunc.go of Go (1.19 to 1.26).
"""

from functools import lru_cache
from typing import Final

_MAX_INSERTION: Final = 12
"""Up to so many elements are sorted by insertion, which is stable."""

_MIN_NINTHER: Final = 50
"""From so many elements on, the pivot is a median of medians, and few misplaced elements are shifted."""

_MAX_SHIFTS: Final = 5
_MAX_SWAPS: Final = 12


@lru_cache(maxsize=256)
def sort_like_go(keys: tuple[int, ...]) -> tuple[int, ...]:
    """Return the indices of *keys* in the order in which `sort.Slice` leaves them.

    A key is less than greater keys. Two equal odd keys are each less than the other one: some comparisons of
    kube-scheduler have this result for two elements.
    """
    sorter = _Sorter(keys)
    sorter.sort(0, len(keys), len(keys).bit_length())
    return tuple(sorter.indices)


def is_stable(count: int) -> bool:
    """Return whether *count* elements with even keys keep their order if their keys are equal."""
    return count <= _MAX_INSERTION


class _Sorter:
    """Pattern-defeating quicksort. All ranges include *start* and exclude *end*.

    An element is less than another one if its key is less than the bound of the other one.

    Attributes:
        indices: the indices of the elements in their current order.
    """

    def __init__(self, keys: tuple[int, ...]) -> None:
        self._keys, self._bounds = keys, [key + (key & 1) for key in keys]
        self.indices = list(range(len(keys)))

    def _less(self, first: int, second: int) -> bool:
        return self._keys[self.indices[first]] < self._bounds[self.indices[second]]

    def _swap(self, first: int, second: int) -> None:
        indices = self.indices
        indices[first], indices[second] = indices[second], indices[first]

    def sort(self, start: int, end: int, remaining_bad_pivots: int) -> None:
        """Sort a range; by a heap after too many bad pivots."""
        is_balanced = is_partitioned = True
        while end - start > _MAX_INSERTION:
            if remaining_bad_pivots == 0:
                self._sort_by_heap(start, end)
                return
            if not is_balanced:
                self._break_patterns(start, end)
                remaining_bad_pivots -= 1
            pivot, swaps = self._choose_pivot(start, end)
            if swaps == _MAX_SWAPS:
                self.indices[start:end] = self.indices[start:end][::-1]
                pivot = end - 1 - (pivot - start)
            is_probably_sorted = is_balanced and is_partitioned and swaps in (0, _MAX_SWAPS)
            if is_probably_sorted and self._sort_by_few_shifts(start, end):
                return
            if start > 0 and not self._less(start - 1, pivot):
                start = self._partition_equal(start, end, pivot)
                continue
            length = end - start
            middle, is_partitioned = self._partition(start, end, pivot)
            is_balanced = min(middle - start, end - middle) >= length // 8
            if middle - start < end - middle:
                self.sort(start, middle, remaining_bad_pivots)
                start = middle + 1
            else:
                self.sort(middle + 1, end, remaining_bad_pivots)
                end = middle
        self._sort_by_insertion(start, end)

    def _sort_by_insertion(self, start: int, end: int) -> None:
        indices, bounds = self.indices, self._bounds
        for position in range(start + 1, end):
            index, target = indices[position], position
            key = self._keys[index]
            while target > start and key < bounds[indices[target - 1]]:
                indices[target] = indices[target - 1]
                target -= 1
            indices[target] = index

    def _sort_by_heap(self, start: int, end: int) -> None:
        count = end - start
        for root in range((count - 1) // 2, -1, -1):
            self._sift_down(root, count, start)
        for last in range(count - 1, -1, -1):
            self._swap(start, start + last)
            self._sift_down(0, last, start)

    def _sift_down(self, root: int, count: int, start: int) -> None:
        while (child := 2 * root + 1) < count:
            if child + 1 < count and self._less(start + child, start + child + 1):
                child += 1
            if not self._less(start + root, start + child):
                return
            self._swap(start + root, start + child)
            root = child

    def _break_patterns(self, start: int, end: int) -> None:
        """Swap three elements in the middle with pseudo-random ones, which depend only on the length."""
        length = end - start
        mask = (1 << length.bit_length()) - 1
        random = length
        for position in range(start + length // 4 * 2 - 1, start + length // 4 * 2 + 2):
            random ^= random << 13 & 0xFFFFFFFFFFFFFFFF
            random ^= random >> 7
            random ^= random << 17 & 0xFFFFFFFFFFFFFFFF
            other = random & mask
            self._swap(position, start + (other - length if other >= length else other))

    def _choose_pivot(self, start: int, end: int) -> tuple[int, int]:
        """Return the position of a median of some elements, and how many pairs of them are in descending order."""
        length = end - start
        positions = [start + length // 4 * quarter for quarter in (1, 2, 3)]
        swaps = 0
        if length >= _MIN_NINTHER:
            for index, position in enumerate(positions):
                positions[index], more = self._find_median(position - 1, position, position + 1)
                swaps += more
        median, more = self._find_median(*positions)
        return median, swaps + more

    def _find_median(self, first: int, second: int, third: int) -> tuple[int, int]:
        swaps = 0
        if self._less(second, first):
            first, second, swaps = second, first, 1
        if self._less(third, second):
            second, swaps = third, swaps + 1
        if self._less(second, first):
            second, swaps = first, swaps + 1
        return second, swaps

    def _partition(self, start: int, end: int, pivot: int) -> tuple[int, bool]:
        """Move lesser elements before the pivot; return its new position, and whether all were in place."""
        self._swap(start, pivot)
        indices, keys = self.indices, self._keys
        bound = self._bounds[indices[start]]
        left, right, is_partitioned = start + 1, end - 1, True
        while True:
            while left <= right and keys[indices[left]] < bound:
                left += 1
            while left <= right and keys[indices[right]] >= bound:
                right -= 1
            if left > right:
                self._swap(right, start)
                return right, is_partitioned
            self._swap(left, right)
            left, right, is_partitioned = left + 1, right - 1, False

    def _partition_equal(self, start: int, end: int, pivot: int) -> int:
        """Move elements equal to the pivot, the least key of the range, to its start; return their end."""
        self._swap(start, pivot)
        indices, bounds = self.indices, self._bounds
        key = self._keys[indices[start]]
        left, right = start + 1, end - 1
        while True:
            while left <= right and key >= bounds[indices[left]]:
                left += 1
            while left <= right and key < bounds[indices[right]]:
                right -= 1
            if left > right:
                return left
            self._swap(left, right)
            left, right = left + 1, right - 1

    def _sort_by_few_shifts(self, start: int, end: int) -> bool:
        """Shift at most five misplaced elements; return whether the range is sorted then."""
        position = start + 1
        for _ in range(_MAX_SHIFTS):
            while position < end and not self._less(position, position - 1):
                position += 1
            if position == end:
                return True
            if end - start < _MIN_NINTHER:
                return False
            self._swap(position, position - 1)
            if position - start >= 2:  # the lesser one to the left
                left = position - 1
                while left >= 1 and self._less(left, left - 1):
                    self._swap(left, left - 1)
                    left -= 1
            if end - position >= 2:  # the greater one to the right
                right = position + 1
                while right < end and self._less(right, right - 1):
                    self._swap(right, right - 1)
                    right += 1
        return False
