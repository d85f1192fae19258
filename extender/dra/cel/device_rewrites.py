"""Rewrites of accesses to the variable `device`, so that the library follows Kubernetes' semantics.

The library has `device.attributes` as a variable of its own. Kubernetes differs in two ways:

- A domain without attributes yields an empty map when indexed, while `in`, macros and functions see only existing
  domains. So each such field has two variables: the first also has empty maps for domains in the expression, the
  second has only existing domains. `UNFILLED_MAPS` maps the name of the first to the name of the second.
- `has(device.driver)` is true, since a device always has its fields.

Source: dynamic-resource-allocation/cel/compile.go, newCompiler (1.36).
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from extender.dra.cel.tokens import Edit, Token, apply_edits, get_text_at, tokenize

FIELDS: Final = ("driver", "attributes", "capacity", "allowMultipleAllocations")
"""The fields of a device."""

UNFILLED_MAPS: Final = {"attributes": "__everyAttribute", "capacity": "__everyCapacity"}
"""Fields that are maps by domain, and the names of the variables with existing domains only."""


@dataclass(frozen=True, slots=True)
class RewrittenExpression:
    """An expression rewritten for the library.

    Attributes:
        text: the rewritten expression.
        domains: the domains that get an empty map if they do not exist.
        whole_device: whether `device` is used as a value.
        whole_maps: fields of `UNFILLED_MAPS` that are used as a value.
    """

    text: str
    domains: frozenset[str]
    whole_device: bool
    whole_maps: frozenset[str]


def rewrite_device(expression: str) -> RewrittenExpression:
    """Rewrite *expression*; collect the accessed domains and the maps used as values."""
    tokens = tokenize(expression)
    edits: list[Edit] = []
    domains: set[str] = set()
    whole_maps: set[str] = set()
    whole_device = False
    for index, token in enumerate(tokens):
        if token.kind != "name" or token.text != "device" or get_text_at(tokens, index - 1) in {".", "?"}:
            continue
        field = get_text_at(tokens, index + 2)
        if get_text_at(tokens, index + 1) != "." or get_text_at(tokens, index + 2) == "?":
            whole_device = whole_device or get_text_at(tokens, index + 1) != "["  # a device is no map
            continue
        if field in FIELDS and _is_has_argument(tokens, index):
            first, last = tokens[index - 2], tokens[index + 3]
            edits.append((first.start, last.start + 1, "(true)"))
        elif field in UNFILLED_MAPS:
            accessed_domains = _find_accessed_domains(tokens, index + 3)
            if accessed_domains is None:
                whole_maps.add(field)
                field_token = tokens[index + 2]
                edits.append((field_token.start, field_token.start + len(field), UNFILLED_MAPS[field]))
            else:
                domains.update(accessed_domains)
    return RewrittenExpression(apply_edits(expression, edits), frozenset(domains), whole_device, frozenset(whole_maps))


def _is_has_argument(tokens: Sequence[Token], index: int) -> bool:
    """Return whether the token at *index* starts the only argument of `has`, as in `has(device.driver)`."""
    return (
        get_text_at(tokens, index - 2) == "has"
        and get_text_at(tokens, index - 1) == "("
        and get_text_at(tokens, index + 3) == ")"
    )


def _find_accessed_domains(tokens: Sequence[Token], index: int) -> set[str] | None:
    """Return the domains that the access at *index* may use; None if the map is used as a value."""
    if get_text_at(tokens, index) == "[":
        key_index = index + 2 if get_text_at(tokens, index + 1) == "?" else index + 1
        if get_text_at(tokens, key_index + 1) == "]" and tokens[key_index].kind == "text":
            return {_unquote(tokens[key_index].text)}
        return {_unquote(token.text) for token in tokens if token.kind == "text"}
    if get_text_at(tokens, index) == ".":
        key_index = index + 2 if get_text_at(tokens, index + 1) == "?" else index + 1
        if key_index < len(tokens) and tokens[key_index].kind == "name" and get_text_at(tokens, key_index + 1) != "(":
            return {tokens[key_index].text}
    return None


def _unquote(text: str) -> str:
    body = text.lstrip("rRbB")
    quotes = 3 if body[:3] in {'"""', "'''"} else 1
    return body[quotes:-quotes]
