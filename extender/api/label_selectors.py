"""Parse label selectors in the notation of kubectl and the API: `app in (a,b),tier=web,!old`."""

import re
from typing import Final

from extender.api.matching import Requirement, RequirementError, new_requirement

_SET_REQUIREMENT: Final = re.compile(r"(?P<key>\S+)\s+(?P<operator>in|notin)\s*\((?P<values>[^)]*)\)")
_COMPARISON: Final = re.compile(r"(?P<key>[^=!<>\s]+)\s*(?P<operator>==|=|!=|>|<)\s*(?P<value>[^=!<>\s]*)")
_EXISTENCE: Final = re.compile(r"(?P<negation>!?)\s*(?P<key>[^=!<>\s(),]+)")
_OPERATORS: Final = {"in": "In", "notin": "NotIn", "=": "In", "==": "In", "!=": "NotIn", ">": "Gt", "<": "Lt"}
_COMMA_OUTSIDE_PARENTHESES: Final = re.compile(r",(?![^(]*\))")


def parse_label_selector(text: str) -> tuple[Requirement, ...]:
    """Return the requirements of a label selector, all of which must match. An empty text has none.

    Raises:
        ValueError: the text is no label selector; the message is that of the API server.
    """
    requirements = (
        [requirement.strip() for requirement in _COMMA_OUTSIDE_PARENTHESES.split(text)] if text.strip() else []
    )
    return tuple(_parse_requirement(requirement, text) for requirement in requirements)


def _parse_requirement(requirement: str, text: str) -> Requirement:
    try:
        if match := _SET_REQUIREMENT.fullmatch(requirement):
            values = tuple(value.strip() for value in match["values"].split(","))
            return new_requirement(match["key"], _OPERATORS[match["operator"]], values)
        if match := _COMPARISON.fullmatch(requirement):
            return new_requirement(match["key"], _OPERATORS[match["operator"]], (match["value"],))
        if match := _EXISTENCE.fullmatch(requirement):
            return new_requirement(match["key"], "DoesNotExist" if match["negation"] else "Exists", ())
    except RequirementError as error:
        raise ValueError(f"unable to parse requirement: {error}") from error
    raise ValueError(f"couldn't parse the selector string {text!r}: unable to parse requirement {requirement!r}")
