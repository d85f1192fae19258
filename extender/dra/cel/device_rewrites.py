"""Rewrites of accesses to the variable `device`, so that the library follows Kubernetes' semantics.

For the library, `device.attributes` is one variable. Kubernetes differs in two ways:

- An index with an unknown domain yields an empty map. But `in`, macros and functions use only existing domains. So
  `attributes` and `capacity` have two variables each. The variable with the field's name also has an empty map for each
  domain in the expression. The variable in `EXISTING_DOMAIN_MAPS` has only existing domains.
- `has(device.driver)` is true, because a device always has its fields.
- `has(device.attributes["a"].b.c)` is false for attributes, which are no maps. In the library it fails.

Source: dynamic-resource-allocation/cel/compile.go, newCompiler (1.36).
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from extender.dra.cel.tokens import Edit, Token, apply_edits, get_text_at, match_brackets, tokenize

FIELDS: Final = ("driver", "attributes", "capacity", "allowMultipleAllocations")
"""The fields of a device."""

EXISTING_DOMAIN_MAPS: Final = {"attributes": "__existingAttributes", "capacity": "__existingCapacity"}
"""The fields that are maps by domain, and the names of their variables with existing domains only."""


@dataclass(frozen=True, slots=True)
class RewrittenExpression:
    """An expression rewritten for the library.

    Attributes:
        text: the rewritten expression.
        domains: the domains in the expression. Unknown domains get an empty map.
        device_as_value: whether `device` is used as a value.
        maps_as_values: the fields of `EXISTING_DOMAIN_MAPS` that are used as a value.
    """

    text: str
    domains: frozenset[str]
    device_as_value: bool
    maps_as_values: frozenset[str]


def rewrite_device(expression: str) -> RewrittenExpression:
    """Rewrite the accesses to `device` in *expression*."""
    tokens = tokenize(expression)
    edits: list[Edit] = []
    domains: set[str] = set()
    maps_as_values: set[str] = set()
    device_as_value = False
    for index, token in enumerate(tokens):
        before = get_text_at(tokens, index - 2) + get_text_at(tokens, index - 1)
        if token.kind != "name" or token.text != "device" or before.endswith((".", ".?")):
            continue
        field = get_text_at(tokens, index + 2)
        if get_text_at(tokens, index + 1) != "." or get_text_at(tokens, index + 2) == "?":
            device_as_value = device_as_value or get_text_at(tokens, index + 1) != "["  # a device has no index
            continue
        if field in FIELDS and _is_argument_of_has(tokens, index):
            first, last = tokens[index - 2], tokens[index + 3]
            edits.append((first.start, last.start + 1, "(true)"))
        elif field in EXISTING_DOMAIN_MAPS:
            edits += _find_field_of_attribute(tokens, index)
            accessed_domains = _find_accessed_domains(tokens, index + 3)
            if accessed_domains is None:
                maps_as_values.add(field)
                field_token = tokens[index + 2]
                edits.append((field_token.start, field_token.start + len(field), EXISTING_DOMAIN_MAPS[field]))
            else:
                domains.update(accessed_domains)
    return RewrittenExpression(
        apply_edits(expression, edits), frozenset(domains), device_as_value, frozenset(maps_as_values)
    )


def _is_argument_of_has(tokens: Sequence[Token], index: int) -> bool:
    """Return whether the token at *index* starts the only argument of `has`, as in `has(device.driver)`."""
    return (
        get_text_at(tokens, index - 2) == "has"
        and get_text_at(tokens, index - 1) == "("
        and get_text_at(tokens, index + 3) == ")"
    )


def _find_field_of_attribute(tokens: Sequence[Token], index: int) -> tuple[Edit, ...]:
    """Return the edits of `has(device.attributes["a"].b.c)`, whose argument starts at *index*; none for others.

    The argument has at least three parts after `attributes`, and the last one is a field.
    """
    is_argument = get_text_at(tokens, index - 2) == "has" and get_text_at(tokens, index - 1) == "("
    if not is_argument or get_text_at(tokens, index + 2) != "attributes":
        return ()
    close, parts, position, last = match_brackets(tokens).get(index - 1, 0), 0, index + 3, index
    while position < close:
        is_index = get_text_at(tokens, position) == "["
        is_field = get_text_at(tokens, position) == "." and tokens[position + 1].kind == "name"
        if not is_index and not is_field:
            return ()
        last, parts = position, parts + 1
        position = match_brackets(tokens).get(position, close) + 1 if is_index else position + 2
    if parts < 3 or get_text_at(tokens, last) != ".":
        return ()
    has, bracket, dot, name = tokens[index - 2], tokens[index - 1], tokens[last], tokens[last + 1]
    return (has.start, bracket.end, "__hasField(["), (dot.start, name.end, f'], "{name.text}"')


def _find_accessed_domains(tokens: Sequence[Token], index: int) -> set[str] | None:
    """Return the domains that the access at *index* may use; None if the map is used as a value."""
    if get_text_at(tokens, index) == "[":
        key_index = index + 2 if get_text_at(tokens, index + 1) == "?" else index + 1
        if get_text_at(tokens, key_index + 1) == "]" and tokens[key_index].kind == "string":
            return {_unquote(tokens[key_index].text)}
        return {_unquote(token.text) for token in tokens if token.kind == "string"}
    if get_text_at(tokens, index) == ".":
        key_index = index + 2 if get_text_at(tokens, index + 1) == "?" else index + 1
        if key_index < len(tokens) and tokens[key_index].kind == "name" and get_text_at(tokens, key_index + 1) != "(":
            return {tokens[key_index].text}
    return None


def _unquote(text: str) -> str:
    body = text.lstrip("rRbB")
    quotes = 3 if body[:3] in {'"""', "'''"} else 1
    return body[quotes:-quotes]
