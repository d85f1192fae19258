"""`find` and `findAll`: the parts of a text that match a regular expression.

The library reports only whether a text matches. The matches are found with Python's `re`, whose run time is unbounded.
So long texts and potentially slow patterns are rejected: nested repeats, and many unbounded repeats. Lookaround and
backreferences are rejected too, since the library's own expressions lack them.

Source: dynamic-resource-allocation/cel/compile.go, newCompiler (1.36).
"""

import re
from functools import lru_cache
from typing import Final

from extender.dra.cel.costs import COST_LIMIT_EXCEEDED

_MAX_TEXT_LENGTH: Final = 64
_MAX_REPEATS: Final = 4
_UNSUPPORTED_SYNTAX: Final = re.compile(r"\\[1-9]|\(\?(?!:|[imsU-]+[:)]|P<)|\(\?P[=>]")
_CHARACTER_CLASS: Final = re.compile(r"\\.|\[\^?\]?(?:\\.|[^\]\\])*\]", re.DOTALL)
_REPEATED_GROUP: Final = re.compile(r"\)[*+{]")
_REPEAT: Final = re.compile(r"[*+]|\{\d+,\}")


@lru_cache(maxsize=256)
def _compile(pattern: str) -> re.Pattern[str]:
    without_classes = _CHARACTER_CLASS.sub("x", pattern)
    if _UNSUPPORTED_SYNTAX.search(pattern):
        raise ValueError("invalid regular expression: not supported")
    if _REPEATED_GROUP.search(without_classes) or len(_REPEAT.findall(without_classes)) > _MAX_REPEATS:
        raise ValueError(COST_LIMIT_EXCEEDED)
    try:
        return re.compile(pattern)
    except (re.error, RecursionError, OverflowError) as error:
        raise ValueError(f"invalid regular expression: {error}") from error


def _compile_for_text(text: str, pattern: str) -> re.Pattern[str]:
    if len(text) > _MAX_TEXT_LENGTH:
        raise ValueError(COST_LIMIT_EXCEEDED)
    return _compile(pattern)


def find(text: str, pattern: str) -> str:
    """Return the first match in *text*, or an empty string.

    Raises:
        ValueError: the pattern is invalid or potentially slow.
    """
    match = _compile_for_text(text, pattern).search(text)
    return match.group() if match else ""


def find_all(text: str, pattern: str, limit: int = -1) -> list[str]:
    """Return all matches in *text*, or the first *limit*.

    Raises:
        ValueError: the pattern is invalid or potentially slow.
    """
    matches = [match.group() for match in _compile_for_text(text, pattern).finditer(text)]
    return matches if limit < 0 else matches[:limit]
