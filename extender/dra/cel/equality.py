"""Makes a comparison of an attribute that is a semantic version with a value of another type fail.

In Kubernetes, `device.attributes["example.com"].version == "1.2.3"` fails if the attribute is a semantic version, but
`!=` is true, and `"1.2.3" == ...` is false. The library compares values of any types. So each comparison in which an
attribute is the left operand has a variant that checks the types first. It is evaluated only for devices with such an
attribute.

Source: apiserver/pkg/cel/semver.go, Semver.Equal (1.36).
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final

from extender.dra.cel.call_rewrites import find_operand_start
from extender.dra.cel.function_signature import Function
from extender.dra.cel.tokens import Edit, Token, apply_edits, get_text_at, match_brackets, tokenize

_OPERATORS: Final = frozenset("+-*/%!<>=")
_ENDS_OF_OPERAND: Final = frozenset("&|?:)]},<>=")
_ATTRIBUTES: Final = ["device", ".", "attributes"]


@dataclass(frozen=True, slots=True)
class ComparedAttributes:
    """The comparisons of an expression whose left operand is an attribute.

    Attributes:
        text: the expression, which checks the types of both operands before each of these comparisons.
        words: the names and strings in the left operands, among them the names of the attributes; empty without such a
            comparison.
    """

    text: str
    words: frozenset[str]


def find_compared_attributes(expression: str) -> ComparedAttributes:
    """Return the comparisons in *expression* whose left operand is an attribute."""
    tokens = tokenize(expression)
    words: set[str] = set()
    edits: list[Edit] = []
    for first, middle, last in _find_comparisons(tokens):
        left = expression[tokens[first].start : tokens[middle - 1].end]
        right = expression[tokens[middle + 2].start : tokens[last].end]
        edit = f"(__comparable([{left}, {right}]) ? {left} == {right} : false)"
        edits.append((tokens[first].start, tokens[last].end, edit))
        words.update(token.text.strip("\"'") for token in tokens[first:middle] if token.kind != "other")
    return ComparedAttributes(apply_edits(expression, edits), frozenset(words))


def _find_comparisons(tokens: Sequence[Token]) -> Iterator[tuple[int, int, int]]:
    """Yield the indices of the first token, the operator and the last token of each outermost comparison."""
    bracket_pairs = match_brackets(tokens)
    end = 0
    for index in range(1, len(tokens) - 2):
        is_operator = tokens[index].text == tokens[index + 1].text == "=" and tokens[index - 1].text not in _OPERATORS
        if not is_operator or index < end:
            continue
        first = find_operand_start(tokens, bracket_pairs, index - 1)
        previous = get_text_at(tokens, first - 1)
        if first < end or previous in _OPERATORS or previous == "in":
            continue
        if [token.text for token in tokens[first : first + 3]] == _ATTRIBUTES:
            end = _find_operand_end(tokens, bracket_pairs, index + 2)
            yield first, index, end - 1


def _find_operand_end(tokens: Sequence[Token], bracket_pairs: dict[int, int], index: int) -> int:
    """Return the index after the operand of a comparison that begins at *index*."""
    while get_text_at(tokens, index) in {"!", "-"}:
        index += 1
    while index < len(tokens):
        token = tokens[index]
        is_optional_field = token.text == "?" and get_text_at(tokens, index - 1) == "."
        is_not_equal = token.text == "!" and get_text_at(tokens, index + 1) == "="
        if token.kind == "name" and token.text == "in" and get_text_at(tokens, index - 1) != ".":
            return index
        if token.kind == "other" and (is_not_equal or (token.text in _ENDS_OF_OPERAND and not is_optional_field)):
            return index
        index = bracket_pairs.get(index, index) + 1
    return index


def _check_types(operands: Sequence[Any]) -> bool:
    """Return True; fail if the left operand is a Kubernetes value, and the right is neither null nor of its kind."""
    left, right = operands
    kind = getattr(left, "kind", None)
    if kind is not None and right is not None and getattr(right, "kind", None) != kind:
        raise ValueError("no such overload")
    return True


EQUALITY: Final = (Function("__comparable", "bool", ("list(dyn)",), False, _check_types),)
"""The function that rewritten comparisons use."""
