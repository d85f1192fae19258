"""What has to be rewritten in an expression because of the device, before the library reads it.

The library knows `device.attributes` as a variable of its own. Two things follow from Kubernetes' semantics:

- Asking for a domain that a device has no attributes of gives an empty map, while `in`, macros and functions see only
  the domains that are there. So there are two variables, one with the domains the expression names filled up, and one
  without; `DOMAINS` maps the name of the one to that of the other.
- `has(device.driver)` is true: a device always has its fields.

Source: B123.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from extender.cel.tokens import Edit, Token, edited, text_at, tokens

FIELDS: Final = ("driver", "attributes", "capacity", "allowMultipleAllocations")
"""The fields of a device."""

DOMAINS: Final = {"attributes": "__everyAttribute", "capacity": "__everyCapacity"}
"""Fields that are maps by domain, and the name under which only the domains that are there are seen."""


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


def read(expression: str) -> Source:
    """*expression* rewritten, and what it asks for."""
    words = tokens(expression)
    edits: list[Edit] = []
    domains: set[str] = set()
    whole_maps: set[str] = set()
    whole_device = False
    for at, token in enumerate(words):
        if token.kind != "name" or token.text != "device" or text_at(words, at - 1) in {".", "?"}:
            continue
        field = text_at(words, at + 2)
        if text_at(words, at + 1) != "." or text_at(words, at + 2) == "?":
            whole_device = whole_device or text_at(words, at + 1) != "["  # a device is no map
            continue
        if field in FIELDS and _is_asked_for(words, at):
            first, last = words[at - 2], words[at + 3]
            edits.append((first.start, last.start + 1, "(true)"))
        elif field in DOMAINS:
            named = _named_domains(words, at + 3)
            if named is None:
                whole_maps.add(field)
                place = words[at + 2]
                edits.append((place.start, place.start + len(field), DOMAINS[field]))
            else:
                domains.update(named)
    return Source(edited(expression, edits), frozenset(domains), whole_device, frozenset(whole_maps))


def _is_asked_for(words: Sequence[Token], at: int) -> bool:
    """Whether the token at *at* begins the only argument of `has`, as in `has(device.driver)`."""
    return text_at(words, at - 2) == "has" and text_at(words, at - 1) == "(" and text_at(words, at + 3) == ")"


def _named_domains(words: Sequence[Token], at: int) -> set[str] | None:
    """The domains that the access at *at* may name; None: it is no access to one domain."""
    if text_at(words, at) == "[":
        inner = at + 2 if text_at(words, at + 1) == "?" else at + 1
        if text_at(words, inner + 1) == "]" and words[inner].kind == "text":
            return {_unquoted(words[inner].text)}
        return {_unquoted(token.text) for token in words if token.kind == "text"}
    if text_at(words, at) == ".":
        inner = at + 2 if text_at(words, at + 1) == "?" else at + 1
        if inner < len(words) and words[inner].kind == "name" and text_at(words, inner + 1) != "(":
            return {words[inner].text}
    return None


def _unquoted(text: str) -> str:
    body = text.lstrip("rRbB")
    quotes = 3 if body[:3] in {'"""', "'''"} else 1
    return body[quotes:-quotes]
