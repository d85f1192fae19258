"""What must be right in an object before anything is computed from it: every quantity, every selector's operator.

The checks follow from the types alone. An API server refuses all that is refused here; what it lets pass, such as a
node affinity that compares with something that is no number, is left to the scheduler, which has its own words for it.
"""

from collections.abc import Callable, Iterable
from functools import cache
from types import UnionType
from typing import Any, Final, Union, get_args, get_origin

import msgspec

from extender.objects.affinity import NodeSelectorTerm, Toleration
from extender.objects.meta import LabelSelector
from extender.objects.quantity import parse
from extender.objects.record import RawQuantity, ResourceList

Problem = tuple[str, str]
"""A field path below the value that was checked, and what is wrong there."""

_Check = Callable[[Any], Iterable[Problem]]

_LABEL_OPERATORS: Final = ("In", "NotIn", "Exists", "DoesNotExist")
_NODE_OPERATORS: Final = (*_LABEL_OPERATORS, "Gt", "Lt")
_FIELD_OPERATORS: Final = ("In", "NotIn")
_TOLERATION_OPERATORS: Final = ("", "Equal", "Exists", "Lt", "Gt")


def problems(thing: msgspec.Struct) -> Iterable[Problem]:
    """Everything wrong with an object, in the order of its fields."""
    check = _check_of(type(thing))
    return check(thing) if check else ()


@cache
def _check_of(kind: Any) -> _Check | None:
    """The check of a type; None for types that hold nothing to be checked."""
    if kind == ResourceList:
        return _resources
    own = _OWN.get(kind) if isinstance(kind, type) else None
    if own is not None:
        return own
    if isinstance(kind, type) and issubclass(kind, msgspec.Struct):
        return _struct(kind)
    parts = get_args(kind)
    if get_origin(kind) in {Union, UnionType}:
        if set(get_args(RawQuantity)) <= set(parts):
            return _quantity
        inner = [part for part in parts if part is not type(None)]
        return _check_of(inner[0]) if len(inner) == 1 else None
    if get_origin(kind) is tuple:
        each = _check_of(parts[0])
        return _all(each) if each else None
    return None


def _struct(kind: type[msgspec.Struct]) -> _Check | None:
    plan = [
        (field.name, field.encode_name, check)
        for field in msgspec.structs.fields(kind)
        if (check := _check_of(field.type)) is not None
    ]

    def check_fields(value: Any) -> Iterable[Problem]:
        found: list[Problem] = []
        for name, written, check in plan:
            inner = getattr(value, name)
            if inner:
                found += _below(written, check(inner))
        return found

    return check_fields if plan else None


def _all(check: _Check) -> _Check:
    def check_each(values: Any) -> Iterable[Problem]:
        found: list[Problem] = []
        for index, value in enumerate(values):
            found += _below(f"[{index}]", check(value))
        return found

    return check_each


def _below(start: str, found: Iterable[Problem]) -> Iterable[Problem]:
    return [(f"{start}{path}" if path[:1] in {"", "["} else f"{start}.{path}", message) for path, message in found]


def _resources(amounts: ResourceList) -> Iterable[Problem]:
    return [(name, message) for name, raw in amounts.items() for _, message in _quantity(raw)]


def _quantity(raw: RawQuantity) -> Iterable[Problem]:
    try:
        amount = parse(raw)
    except ValueError as fault:
        return [("", str(fault))]
    return [("", f'quantity "{raw}": want 0 or more')] if amount.unscaled < 0 else ()


def _operators(rules: Iterable[Any], path: str, legal: tuple[str, ...]) -> Iterable[Problem]:
    for index, rule in enumerate(rules):
        if rule.operator not in legal:
            yield f"{path}[{index}].operator", f'unknown operator "{rule.operator}"; want one of {", ".join(legal)}'


def _label_selector(selector: LabelSelector) -> Iterable[Problem]:
    return _operators(selector.match_expressions, "matchExpressions", _LABEL_OPERATORS)


def _node_term(term: NodeSelectorTerm) -> Iterable[Problem]:
    yield from _operators(term.match_expressions, "matchExpressions", _NODE_OPERATORS)
    yield from _operators(term.match_fields, "matchFields", _FIELD_OPERATORS)


def _toleration(toleration: Toleration) -> Iterable[Problem]:
    if toleration.operator not in _TOLERATION_OPERATORS:
        yield "operator", f'unknown operator "{toleration.operator}"; want Equal or Exists'


_OWN: Final[dict[type, _Check]] = {
    LabelSelector: _label_selector,
    NodeSelectorTerm: _node_term,
    Toleration: _toleration,
}
