"""Suggestions for misspelled names."""

from collections.abc import Iterable
from difflib import get_close_matches


def find_closest_name(name: str, known_names: Iterable[str]) -> str | None:
    """Return the known name that is most similar to *name*, regardless of case; None if no name is similar."""
    name_by_lower = {candidate.lower(): candidate for candidate in known_names}
    matches = get_close_matches(name.lower(), name_by_lower, n=1, cutoff=0.6)
    return name_by_lower[matches[0]] if matches else None


def did_you_mean(name: str, known_names: Iterable[str]) -> str:
    """Return the message suffix `; did you mean "cpu"?`, or an empty string if no known name is similar."""
    suggestion = find_closest_name(name, known_names)
    return f'; did you mean "{suggestion}"?' if suggestion is not None and suggestion != name else ""
