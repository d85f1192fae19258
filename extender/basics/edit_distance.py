"""The edit distance of two texts, for suggestions for misspelled names."""

from collections.abc import Iterable


def compute_edit_distance(first: str, second: str, limit: int) -> int:
    """Return the number of edits between two texts, or `limit + 1` if it exceeds *limit*.

    An edit inserts, deletes or replaces a character, or swaps two adjacent characters (optimal string alignment).
    """
    if abs(len(first) - len(second)) > limit:
        return limit + 1
    before_previous: list[int] = []
    previous = list(range(len(second) + 1))
    for row, character in enumerate(first, 1):
        current = [row]
        for column, other in enumerate(second, 1):
            cost = min(previous[column] + 1, current[column - 1] + 1, previous[column - 1] + (character != other))
            if row > 1 and column > 1 and character == second[column - 2] and first[row - 2] == other:
                cost = min(cost, before_previous[column - 2] + 1)
            current.append(cost)
        if min(current) > limit:
            return limit + 1
        before_previous, previous = previous, current
    return min(previous[-1], limit + 1)


def find_nearest_names(name: str, known_names: Iterable[str], count: int = 3) -> list[str]:
    """Return at most *count* known names with the smallest edit distance to *name*, regardless of case.

    Names that differ in more than a third of the characters of *name* are left out. Equally near names are sorted.
    """
    limit = max(1, len(name) // 3)
    nearest: list[str] = []
    for known_name in sorted(known_names):
        distance = compute_edit_distance(name.lower(), known_name.lower(), limit)
        if distance < limit:
            limit, nearest = distance, []
        if distance <= limit:
            nearest.append(known_name)
    return nearest[:count]
