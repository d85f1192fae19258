"""The known name somebody probably meant."""

from collections.abc import Iterable
from difflib import get_close_matches


def nearest(name: str, known: Iterable[str]) -> str | None:
    """The name in *known* most like *name*, or None when none is like it. Case counts least."""
    by_lower = {candidate.lower(): candidate for candidate in known}
    close = get_close_matches(name.lower(), by_lower, n=1, cutoff=0.6)
    return by_lower[close[0]] if close else None


def hint(name: str, known: Iterable[str]) -> str:
    """`; did you mean "cpu"?` to end a message with, or the empty string."""
    meant = nearest(name, known)
    return f'; did you mean "{meant}"?' if meant is not None and meant != name else ""
