"""Makes a comparison of a Kubernetes value, such as a semantic version, with a value of another type fail.

In Kubernetes, `device.attributes["example.com"].version == "1.2.3"` fails if the attribute is a semantic version, but
`!=` is true, and `"1.2.3" == ...` is false. The library compares values of any types. So each comparison in which an
attribute is the left operand has a variant that checks the types first. It is evaluated only for devices with such an
attribute. A variable of `cel.bind` counts as an attribute.

`semver("1.2.3") == device.attributes["example.com"].version` fails if the attribute is no semantic version. So a
comparison whose left operand begins with a Kubernetes value always checks the types.

`device.attributes["example.com"].version in ["1.2.3"]` fails if the attribute is a semantic version and the list has
only literals: cel-go searches such a list by hash, which semantic versions do not have.

Source: apiserver/pkg/cel/semver.go, Semver.Equal; apiserver/pkg/cel/quantity.go, Quantity.Equal;
cel-go interpreter/decorators.go, maybeOptimizeSetMembership (1.36).
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final

from extender.dra.cel.call_rewrites import find_operand_start
from extender.dra.cel.costs import COST_METER
from extender.dra.cel.function_signature import Function
from extender.dra.cel.tokens import Edit, Token, apply_edits, get_text_at, match_brackets, tokenize

_OPERATORS: Final = frozenset("+-*/%!<>=")
_ENDS_OF_OPERAND: Final = frozenset("&|?:)]},<>=")
_ATTRIBUTES: Final = ["device", ".", "attributes"]
_BIND: Final = ["cel", ".", "bind", "("]
_CAPACITY: Final = ["device", ".", "capacity"]
_CONSTRUCTORS: Final = frozenset({"cidr", "ip", "quantity", "semver", "url"})
"""The functions whose values are Kubernetes values."""


@dataclass(frozen=True, slots=True)
class ComparedAttributes:
    """The comparisons whose left operand is an attribute or a variable, or begins with a Kubernetes value.

    Attributes:
        text: the expression, which checks the types of the operands before each of these comparisons.
        words: the names and strings in the left operands, among them the names of the attributes; those of the whole
            expression if a variable is the left operand; empty without such a comparison.
        has_value_on_left: whether one of the left operands begins with a Kubernetes value, and the right operand has an
            attribute.
    """

    text: str
    words: frozenset[str]
    has_value_on_left: bool


def find_compared_attributes(expression: str) -> ComparedAttributes:
    """Return the comparisons in *expression* whose types have to be checked."""
    tokens = tokenize(expression)
    words: set[str] = set()
    edits: list[Edit] = []
    has_value_on_left = False
    variables = _find_variables(tokens)
    for first, middle, last in _find_comparisons(tokens, variables):
        left = expression[tokens[first].start : tokens[middle - 1].end]
        if tokens[middle].text == "in":
            right = expression[tokens[middle + 1].start : tokens[last].end]
            edit = f"(__hashable([{left}]) ? {left} in {right} : false)"
        else:
            right = expression[tokens[middle + 2].start : tokens[last].end]
            edit = f"(__comparable([{left}, {right}]) ? {left} == {right} : false)"
        edits.append((tokens[first].start, tokens[last].end, edit))
        is_variable = tokens[first].text in variables
        named_tokens = tokens if is_variable else tokens[first:middle]
        words.update(token.text.strip("\"'") for token in named_tokens if token.kind != "other")
        has_value_on_left = has_value_on_left or not (is_variable or _get_start(tokens, first) == _ATTRIBUTES)
    return ComparedAttributes(apply_edits(expression, edits), frozenset(words), has_value_on_left)


def _find_variables(tokens: Sequence[Token]) -> frozenset[str]:
    """Return the names that `cel.bind` declares."""
    return frozenset(
        tokens[index + 4].text
        for index in range(len(tokens) - 4)
        if [token.text for token in tokens[index : index + 4]] == _BIND
    )


def _get_start(tokens: Sequence[Token], index: int) -> list[str]:
    return [token.text for token in tokens[index : index + 3]]


def _has_value_on_left(tokens: Sequence[Token], first: int, middle: int, end: int) -> bool:
    """Return whether the left operand begins with a Kubernetes value, and the right operand has an attribute."""
    start = _get_start(tokens, first)
    is_value = start == _CAPACITY or (start[0] in _CONSTRUCTORS and start[1] == "(")
    return is_value and any(_get_start(tokens, index) == _ATTRIBUTES for index in range(middle + 2, end))


def _find_comparisons(tokens: Sequence[Token], variables: frozenset[str]) -> Iterator[tuple[int, int, int]]:
    """Yield the indices of the first token, the operator and the last token of each outermost comparison.

    The operator is `==`, or `in` before a list of literals.
    """
    bracket_pairs = match_brackets(tokens)
    end = 0
    for index in range(1, len(tokens) - 2):
        is_membership = _is_membership(tokens, index)
        is_equality = tokens[index].text == tokens[index + 1].text == "=" and tokens[index - 1].text not in _OPERATORS
        if not (is_equality or is_membership) or index < end:
            continue
        first = find_operand_start(tokens, bracket_pairs, index - 1)
        previous = get_text_at(tokens, first - 1)
        if first < end or previous in _OPERATORS or previous == "in":
            continue
        operand_end = _find_operand_end(tokens, bracket_pairs, index + (1 if is_membership else 2))
        if is_membership and not _is_list_of_literals(tokens[index + 1 : operand_end]):
            continue
        is_attribute = _get_start(tokens, first) == _ATTRIBUTES or tokens[first].text in variables
        if is_attribute or (is_equality and _has_value_on_left(tokens, first, index, operand_end)):
            end = operand_end
            yield first, index, end - 1


def _is_membership(tokens: Sequence[Token], index: int) -> bool:
    is_field = get_text_at(tokens, index - 1) == "."
    return tokens[index].kind == "name" and tokens[index].text == "in" and not is_field


def _is_list_of_literals(tokens: Sequence[Token]) -> bool:
    """Return whether the tokens are a list of at least one boolean, number or string, and of nothing else."""
    inner = [token for token in tokens[1:-1] if token.text not in {",", "-"}]
    is_list = get_text_at(tokens, 0) == "[" and get_text_at(tokens, len(tokens) - 1) == "]"
    return is_list and bool(inner) and all(map(_is_literal, inner))


def _is_literal(token: Token) -> bool:
    if token.kind == "string":
        return "b" not in token.text.partition(token.text[-1])[0].lower()
    return token.text in {"true", "false"} or (token.kind == "other" and token.text[0].isdigit())


def _find_operand_end(tokens: Sequence[Token], bracket_pairs: dict[int, int], index: int) -> int:
    """Return the index after the operand of a comparison that begins at *index*."""
    while get_text_at(tokens, index) in {"!", "-"}:
        index += 1
    while index < len(tokens):
        token = tokens[index]
        is_optional_field = token.text == "?" and get_text_at(tokens, index - 1) == "."
        is_not_equal = token.text == "!" and get_text_at(tokens, index + 1) == "="
        if _is_membership(tokens, index):
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


def _check_hash(operands: Sequence[Any]) -> bool:
    """Return True; fail if the only operand is a semantic version."""
    if getattr(operands[0], "kind", None) == "semver":
        COST_METER.fail("internal error: runtime error: hash of unhashable type cel.Semver")
    return True


EQUALITY: Final = (
    Function("__comparable", "bool", ("list(dyn)",), False, _check_types),
    Function("__hashable", "bool", ("list(dyn)",), False, _check_hash),
)
"""The functions that rewritten comparisons use."""
