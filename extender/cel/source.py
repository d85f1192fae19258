"""The text of an expression as tokens, and what has to be rewritten in it before the library reads it.

The library knows `device.attributes` as a variable of its own. Two things follow from Kubernetes' semantics:

- Asking for a domain that a device has no attributes of gives an empty map, while `in`, macros and functions see only
  the domains that are there. So there are two variables, one with the domains the expression names filled up, and one
  without; `DOMAINS` maps the name of the one to that of the other.
- `has(device.driver)` is true: a device always has its fields.

Source: B123.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

FIELDS: Final = ("driver", "attributes", "capacity", "allowMultipleAllocations")
"""The fields of a device."""

DOMAINS: Final = {"attributes": "everyAttribute", "capacity": "everyCapacity"}
"""Fields that are maps by domain, and the name under which only the domains that are there are seen."""

_TOKEN: Final = re.compile(
    r"""(?P<skip>\s+|//[^\n]*)
    |(?P<text>[rRbB]{0,2}(?:\"\"\".*?\"\"\"|'''.*?'''|"(?:[^"\\\n]|\\.)*"|'(?:[^'\\\n]|\\.)*'))
    |(?P<name>[A-Za-z_][A-Za-z0-9_]*)
    |(?P<other>\d[\w.]*|.)""",
    re.DOTALL | re.VERBOSE,
)


@dataclass(slots=True)
class _Token:
    kind: str
    text: str
    start: int


@dataclass(frozen=True, slots=True)
class Source:
    """An expression, ready for the library.

    Attributes:
        text: rewritten.
        domains: what to fill up with empty maps.
        whole_device: `device` is used as a value.
        whole_maps: fields of `DOMAINS` that are used as a value.
    """

    text: str
    domains: frozenset[str]
    whole_device: bool
    whole_maps: frozenset[str]


def _tokens(expression: str) -> list[_Token]:
    return [
        _Token(match.lastgroup or "", match.group(), match.start())
        for match in _TOKEN.finditer(expression)
        if match.lastgroup != "skip"
    ]


def read(expression: str) -> Source:
    """*expression* rewritten, and what it asks for."""
    tokens = _tokens(expression)
    edits: list[tuple[int, int, str]] = []
    domains: set[str] = set()
    whole_maps: set[str] = set()
    whole_device = False
    for at, token in enumerate(tokens):
        if token.kind != "name" or token.text != "device" or _text(tokens, at - 1) in {".", "?"}:
            continue
        field = _text(tokens, at + 2)
        if _text(tokens, at + 1) != "." or _text(tokens, at + 2) == "?":
            whole_device = whole_device or _text(tokens, at + 1) != "["  # a device is no map
            continue
        if field in FIELDS and _is_asked_for(tokens, at):
            first, last = tokens[at - 2], tokens[at + 3]
            edits.append((first.start, last.start + 1, "(true)"))
        elif field in DOMAINS:
            named = _named_domains(tokens, at + 3)
            if named is None:
                whole_maps.add(field)
                place = tokens[at + 2]
                edits.append((place.start, place.start + len(field), DOMAINS[field]))
            else:
                domains.update(named)
    return Source(_edited(expression, edits), frozenset(domains), whole_device, frozenset(whole_maps))


def _text(tokens: Sequence[_Token], at: int) -> str:
    return tokens[at].text if 0 <= at < len(tokens) else ""


def _is_asked_for(tokens: Sequence[_Token], at: int) -> bool:
    """Whether the token at *at* begins the only argument of `has`, as in `has(device.driver)`."""
    return _text(tokens, at - 2) == "has" and _text(tokens, at - 1) == "(" and _text(tokens, at + 3) == ")"


def _named_domains(tokens: Sequence[_Token], at: int) -> set[str] | None:
    """The domains that the access at *at* may name; None: it is no access to one domain."""
    if _text(tokens, at) == "[":
        inner = at + 2 if _text(tokens, at + 1) == "?" else at + 1
        if _text(tokens, inner + 1) == "]" and tokens[inner].kind == "text":
            return {_unquoted(tokens[inner].text)}
        return {_unquoted(token.text) for token in tokens if token.kind == "text"}
    if _text(tokens, at) == ".":
        inner = at + 2 if _text(tokens, at + 1) == "?" else at + 1
        if inner < len(tokens) and tokens[inner].kind == "name" and _text(tokens, inner + 1) != "(":
            return {tokens[inner].text}
    return None


def _unquoted(text: str) -> str:
    body = text.lstrip("rRbB")
    quotes = 3 if body[:3] in {'"""', "'''"} else 1
    return body[quotes:-quotes]


def _edited(expression: str, edits: Sequence[tuple[int, int, str]]) -> str:
    for start, end, new in sorted(edits, reverse=True):
        expression = expression[:start] + new + expression[end:]
    return expression
