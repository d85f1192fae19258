"""Split an expression into tokens, and apply edits to it.

Source: dynamic-resource-allocation/cel/compile.go, newCompiler (1.36).
"""

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final

_TOKEN: Final = re.compile(
    r"""(?P<skip>\s+|//[^\n]*)
    |(?P<string>[rRbB]{0,2}(?:\"\"\".*?\"\"\"|'''.*?'''|"(?:[^"\\\n]|\\.)*"|'(?:[^'\\\n]|\\.)*'))
    |(?P<name>[A-Za-z_][A-Za-z0-9_]*)
    |(?P<other>\d[\w.]*|.)""",
    re.DOTALL | re.VERBOSE,
)

_CLOSING_BRACKETS: Final = {"(": ")", "[": "]", "{": "}"}


@dataclass(slots=True)
class Token:
    """A token of an expression.

    Attributes:
        kind: `string` for a string or bytes literal, `name`, or `other`.
        text: the text in the expression.
        start: the position in the expression.
    """

    kind: str
    text: str
    start: int

    @property
    def end(self) -> int:
        """The position after the token."""
        return self.start + len(self.text)


Edit = tuple[int, int, str]
"""Start, end and replacement text."""


def tokenize(expression: str) -> list[Token]:
    """Return the tokens of *expression*, without space and comments."""
    return [
        Token(match.lastgroup or "", match.group(), match.start())
        for match in _TOKEN.finditer(expression)
        if match.lastgroup != "skip"
    ]


def get_text_at(tokens: Sequence[Token], index: int) -> str:
    """Return the text of the token at *index*, or an empty string."""
    return tokens[index].text if 0 <= index < len(tokens) else ""


def match_brackets(tokens: Sequence[Token]) -> dict[int, int]:
    """Map the index of each bracket to the index of its counterpart; empty if the brackets do not match."""
    bracket_pairs: dict[int, int] = {}
    open_indices: list[int] = []
    for index, token in enumerate(tokens):
        if token.kind != "other":
            continue
        if token.text in _CLOSING_BRACKETS:
            open_indices.append(index)
        elif token.text in _CLOSING_BRACKETS.values():
            if not open_indices or _CLOSING_BRACKETS[tokens[open_indices[-1]].text] != token.text:
                return {}
            bracket_pairs[index] = open_indices.pop()
            bracket_pairs[bracket_pairs[index]] = index
    return bracket_pairs


def apply_edits(expression: str, edits: Iterable[Edit]) -> str:
    """Apply non-overlapping *edits* to *expression*; edits at one position keep their order."""
    fragments: list[str] = []
    position = 0
    for start, end, replacement in sorted(edits, key=lambda edit: edit[0]):
        fragments += [expression[position:start], replacement]
        position = end
    return "".join((*fragments, expression[position:]))
