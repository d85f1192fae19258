"""The edit distance of two texts, for suggestions for misspelled names."""

from collections.abc import Iterable


def compute_edit_distance(first: str, second: str, limit: int) -> int:
    """Return the number of edits between two texts, or `limit + 1` if it exceeds *limit*.

    An edit inserts, deletes or replaces a character, or swaps two adjacent characters (optimal string alignment).
    """
    if abs(len(first) - len(second)) > limit:
        return limit + 1
    costs_two_rows_above: list[int] = []
    costs_above = list(range(len(second) + 1))
    for row, character in enumerate(first, 1):
        costs = [row]
        for column, other_character in enumerate(second, 1):
            substitution_cost = int(character != other_character)
            cost = min(costs_above[column] + 1, costs[column - 1] + 1, costs_above[column - 1] + substitution_cost)
            if row > 1 and column > 1 and character == second[column - 2] and first[row - 2] == other_character:
                cost = min(cost, costs_two_rows_above[column - 2] + 1)
            costs.append(cost)
        if min(costs) > limit:
            return limit + 1
        costs_two_rows_above, costs_above = costs_above, costs
    return min(costs_above[-1], limit + 1)


def find_nearest_names(
    name: str, known_names: Iterable[str], count: int = 3, max_edits: int | None = None
) -> list[str]:
    """Return at most *count* known names with the smallest edit distance to *name*, regardless of case.

    Names with more than *max_edits* edits are left out; None: a third of the characters of *name*, at least one.
    Equally near names are sorted.
    """
    limit = max(1, len(name) // 3) if max_edits is None else max_edits
    nearest: list[str] = []
    for known_name in sorted(known_names):
        distance = compute_edit_distance(name.lower(), known_name.lower(), limit)
        if distance < limit:
            limit, nearest = distance, []
        if distance <= limit:
            nearest.append(known_name)
    return nearest[:count]
