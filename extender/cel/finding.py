"""`find` and `findAll`: the parts of a text that a regular expression matches.

The library only tells whether an expression matches; what it matches is found with Python's `re`, whose time has no
bound. So what could take long is refused: long texts, repeats within repeats, many repeats without a bound, and what
the library's own expressions do not know either (looking around, references to groups). Source: B123.
"""

import re
from functools import lru_cache
from typing import Final

from extender.cel.costs import EXCEEDED

_LONGEST: Final = 64
_MOST_REPEATS: Final = 4
_UNKNOWN: Final = re.compile(r"\\[1-9]|\(\?(?!:|[imsU-]+[:)]|P<)|\(\?P[=>]")
_CLASS: Final = re.compile(r"\\.|\[\^?\]?(?:\\.|[^\]\\])*\]", re.DOTALL)
_REPEATED_GROUP: Final = re.compile(r"\)[*+{]")
_REPEAT: Final = re.compile(r"[*+]|\{\d+,\}")


@lru_cache(maxsize=256)
def _compiled(pattern: str) -> re.Pattern[str]:
    bare = _CLASS.sub("x", pattern)
    if _UNKNOWN.search(pattern):
        raise ValueError("invalid regular expression: not supported")
    if _REPEATED_GROUP.search(bare) or len(_REPEAT.findall(bare)) > _MOST_REPEATS:
        raise ValueError(EXCEEDED)
    try:
        return re.compile(pattern)
    except (re.error, RecursionError, OverflowError) as fault:
        raise ValueError(f"invalid regular expression: {fault}") from fault


def _checked(text: str, pattern: str) -> re.Pattern[str]:
    if len(text) > _LONGEST:
        raise ValueError(EXCEEDED)
    return _compiled(pattern)


def find(text: str, pattern: str) -> str:
    """The first part of *text* that matches, or nothing.

    Raises:
        ValueError: the pattern is wrong, or could take too long.
    """
    found = _checked(text, pattern).search(text)
    return found.group() if found else ""


def find_all(text: str, pattern: str, limit: int = -1) -> list[str]:
    """All parts of *text* that match, or the first *limit* of them.

    Raises:
        ValueError: the pattern is wrong, or could take too long.
    """
    found = [match.group() for match in _checked(text, pattern).finditer(text)]
    return found if limit < 0 else found[:limit]
