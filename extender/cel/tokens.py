"""The text of an expression as tokens, and edits of it.

Source: B123.
"""

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final

_TOKEN: Final = re.compile(
    r"""(?P<skip>\s+|//[^\n]*)
    |(?P<text>[rRbB]{0,2}(?:\"\"\".*?\"\"\"|'''.*?'''|"(?:[^"\\\n]|\\.)*"|'(?:[^'\\\n]|\\.)*'))
    |(?P<name>[A-Za-z_][A-Za-z0-9_]*)
    |(?P<other>\d[\w.]*|.)""",
    re.DOTALL | re.VERBOSE,
)

_OPENING: Final = {"(": ")", "[": "]", "{": "}"}


@dataclass(slots=True)
class Token:
    """A word of an expression.

    Attributes:
        kind: `text`, `name` or `other`.
        text: as it is written.
        start: where it begins.
    """

    kind: str
    text: str
    start: int

    @property
    def end(self) -> int:
        """Where it ends."""
        return self.start + len(self.text)


Edit = tuple[int, int, str]
"""What to put between two places of a text."""


def tokens(expression: str) -> list[Token]:
    """The words of *expression*, without space and comments."""
    return [
        Token(match.lastgroup or "", match.group(), match.start())
        for match in _TOKEN.finditer(expression)
        if match.lastgroup != "skip"
    ]


def text_at(words: Sequence[Token], at: int) -> str:
    """The text of the word at *at*; nothing where there is none."""
    return words[at].text if 0 <= at < len(words) else ""


def brackets(words: Sequence[Token]) -> dict[int, int]:
    """For each bracket that is one of a pair, where the other is."""
    pairs: dict[int, int] = {}
    opened: list[int] = []
    for at, word in enumerate(words):
        if word.kind != "other":
            continue
        if word.text in _OPENING:
            opened.append(at)
        elif word.text in _OPENING.values():
            if not opened or _OPENING[words[opened[-1]].text] != word.text:
                return {}
            pairs[at] = opened.pop()
            pairs[pairs[at]] = at
    return pairs


def edited(expression: str, edits: Iterable[Edit]) -> str:
    """*expression* with *edits* made, of which none overlaps another; at one place, the first stays first."""
    parts: list[str] = []
    place = 0
    for start, end, new in sorted(edits, key=lambda edit: edit[0]):
        parts += [expression[place:start], new]
        place = end
    return "".join((*parts, expression[place:]))
