"""Validate the quantities, the selector operators and the toleration operators of an object.

The checks are derived from the types of the fields. An API server rejects every object that has one of these errors.
This module accepts invalid values that an API server accepts, such as a non-numeric operand of Gt in a node affinity.
"""

from collections.abc import Callable, Iterable
from functools import cache
from types import UnionType
from typing import Any, Final, Union, get_args, get_origin

import msgspec

from extender.api.kinds.affinity import NodeSelectorTerm, Toleration
from extender.api.kinds.meta import LabelSelector, RawQuantity, ResourceList
from extender.api.label_syntax import FIELD_OPERATORS, LABEL_OPERATORS, OPERATORS
from extender.api.quantity import parse

ObjectError = tuple[str, str]
"""A field path relative to the validated value, and the error message."""

_Validator = Callable[[Any], Iterable[ObjectError]]

_TOLERATION_OPERATORS: Final = ("", "Equal", "Exists", "Lt", "Gt")


def validate_object(obj: msgspec.Struct) -> Iterable[ObjectError]:
    """Return all errors of an object in the order of its fields."""
    validator = _get_validator(type(obj))
    return validator(obj) if validator else ()


@cache
def _get_validator(field_type: Any) -> _Validator | None:
    """Return the validator of a type; None if no value of the type can be invalid."""
    if field_type == ResourceList:
        return _validate_resources
    validator = _VALIDATORS.get(field_type) if isinstance(field_type, type) else None
    if validator is not None:
        return validator
    if isinstance(field_type, type) and issubclass(field_type, msgspec.Struct):
        return _build_struct_validator(field_type)
    type_args = get_args(field_type)
    if get_origin(field_type) in {Union, UnionType}:
        if set(get_args(RawQuantity)) <= set(type_args):
            return _validate_quantity
        members = [member for member in type_args if member is not type(None)]
        return _get_validator(members[0]) if len(members) == 1 else None
    if get_origin(field_type) is tuple:
        item_validator = _get_validator(type_args[0])
        return _build_sequence_validator(item_validator) if item_validator else None
    return None


def _build_struct_validator(struct_type: type[msgspec.Struct]) -> _Validator | None:
    fields = [
        (field.name, field.encode_name, validator)
        for field in msgspec.structs.fields(struct_type)
        if (validator := _get_validator(field.type)) is not None
    ]

    def validate_fields(value: Any) -> Iterable[ObjectError]:
        errors: list[ObjectError] = []
        for name, encoded_name, validator in fields:
            field_value = getattr(value, name)
            if field_value:
                errors += prefix_paths(encoded_name, validator(field_value))
        return errors

    return validate_fields if fields else None


def _build_sequence_validator(item_validator: _Validator) -> _Validator:
    def validate_items(values: Any) -> Iterable[ObjectError]:
        errors: list[ObjectError] = []
        for index, value in enumerate(values):
            errors += prefix_paths(f"[{index}]", item_validator(value))
        return errors

    return validate_items


def prefix_paths(prefix: str, errors: Iterable[ObjectError]) -> Iterable[ObjectError]:
    """Return *errors* with their paths below *prefix*. A path that is empty or starts with a bracket gets no dot."""
    return [(f"{prefix}{path}" if path[:1] in {"", "["} else f"{prefix}.{path}", message) for path, message in errors]


def _validate_resources(resources: ResourceList) -> Iterable[ObjectError]:
    return [(name, message) for name, raw in resources.items() for _, message in _validate_quantity(raw)]


def _validate_quantity(raw: RawQuantity) -> Iterable[ObjectError]:
    try:
        quantity = parse(raw)
    except ValueError as error:
        return [("", str(error))]
    return [("", f'quantity "{raw}": want 0 or more')] if quantity.unscaled < 0 else ()


def _validate_operators(requirements: Iterable[Any], path: str, operators: tuple[str, ...]) -> Iterable[ObjectError]:
    for index, requirement in enumerate(requirements):
        if requirement.operator not in operators:
            message = f'unknown operator "{requirement.operator}"; want one of {", ".join(operators)}'
            yield f"{path}[{index}].operator", message


def _validate_label_selector(selector: LabelSelector) -> Iterable[ObjectError]:
    return _validate_operators(selector.match_expressions, "matchExpressions", LABEL_OPERATORS)


def _validate_node_selector_term(term: NodeSelectorTerm) -> Iterable[ObjectError]:
    yield from _validate_operators(term.match_expressions, "matchExpressions", OPERATORS)
    yield from _validate_operators(term.match_fields, "matchFields", FIELD_OPERATORS)


def _validate_toleration(toleration: Toleration) -> Iterable[ObjectError]:
    if toleration.operator not in _TOLERATION_OPERATORS:
        yield "operator", f'unknown operator "{toleration.operator}"; want Equal or Exists'


_VALIDATORS: Final[dict[type, _Validator]] = {
    LabelSelector: _validate_label_selector,
    NodeSelectorTerm: _validate_node_selector_term,
    Toleration: _validate_toleration,
}
