"""Strict decoding of plain values to msgspec Structs, with all errors and their field paths.

The configuration and the plugin arguments in `pluginConfig[].args` are decoded in this way. Each plugin defines the
type of its arguments. As in kube-scheduler, field names are case-sensitive, and an unknown field is an error. A null
field is treated as absent; a duration may not be null. A float without a fraction is accepted as an integer.

Source: cmd/kube-scheduler/app/options/configfile.go, loadConfig;
apimachinery/pkg/apis/meta/v1/duration.go, Duration.UnmarshalJSON (1.36).
"""

import base64
import binascii
import math
import types
from collections.abc import Callable, Mapping, Sequence
from enum import Enum
from typing import Annotated, Any, Final, Literal, TypeVar, Union, get_args, get_origin

import msgspec

from extender.api.label_syntax import unsupported_value
from extender.config import durations
from extender.config.did_you_mean import did_you_mean
from extender.config.errors import FieldError, child, item

T = TypeVar("T", bound=msgspec.Struct)

_TYPE_META: Final = ("kind", "apiVersion")
_INVALID: Final = object()  # the result for a value that cannot be decoded; its error is in `errors`


def decode_strict(raw: Mapping[str, object], type: type[T], path: str) -> tuple[T | None, list[FieldError]]:  # noqa: A002
    """Decode *raw* to *type*. Return the value and the list of all errors; the value is None if there are errors.

    `kind` and `apiVersion` are accepted at the top level even if the type does not have them.

    Args:
        raw: plain values from YAML or JSON.
        type: a msgspec Struct; nested structs, tuples, mappings, literals, enums, bytes (base64) and
            `durations.Duration` are supported.
        path: the field path of *raw*, which prefixes the paths of the errors.
    """
    value, errors = decode_partial(raw, type, path)
    return (None if errors else value), errors


def decode_partial(raw: Mapping[str, object], type: type[T], path: str) -> tuple[T | None, list[FieldError]]:  # noqa: A002
    """Decode like `decode_strict`, but return the value even with errors; invalid fields keep their defaults.

    The value is None if a field without a default is missing or invalid, or if the type's constructor fails.
    """
    decoder = _Decoder()
    fields = {field.encode_name for field in msgspec.structs.fields(type)}
    body = {key: value for key, value in raw.items() if key in fields or key not in _TYPE_META}
    value = decoder.decode_struct(body, type, path)
    return (value if isinstance(value, type) else None), decoder.errors


def describe_value(value: object) -> str:
    """Describe *value* for a message: `the string "x"`, `the integer 5`, `a list`."""
    match value:
        case None:
            return "null"
        case bool():
            return f"the boolean {str(value).lower()}"
        case int():
            return f"the integer {value}"
        case float():
            return f"the number {value:g}"
        case str():
            return f'the string "{value}"'
        case Mapping():
            return "an object"
        case list() | tuple():
            return "a list"
    return f"a {value.__class__.__name__}"


class _Decoder:
    """Decodes one document and collects errors."""

    def __init__(self) -> None:
        self.errors: list[FieldError] = []

    def decode_struct(self, raw: object, target: type[msgspec.Struct], path: str) -> object:
        if not isinstance(raw, Mapping):
            return self._add_type_error("an object", raw, path)
        fields = {field.encode_name: field for field in msgspec.structs.fields(target)}
        for key in raw:
            if key not in fields:
                self._add_error(child(path, str(key)), f'unknown field "{key}"{did_you_mean(str(key), fields)}')
        field_values: dict[str, object] = {}
        has_required_fields = True
        for key, field in fields.items():
            field_path = child(path, key)
            value = raw.get(key)
            if key in raw and value is None and field.type == durations.Duration:
                value = ""  # metav1.Duration parses null as an empty text
            if value is not None:
                value = self.decode_value(value, field.type, field_path)
                if value is not _INVALID:
                    field_values[field.name] = value
                    continue
            elif field.required:
                self._add_error(field_path, "Required value")
            has_required_fields = has_required_fields and not field.required
        if not has_required_fields:
            return _INVALID
        try:
            return target(**field_values)
        except (ValueError, TypeError) as exc:  # raised by __post_init__
            return self._add_error(path, str(exc))

    def decode_value(self, raw: object, target: Any, path: str) -> object:
        """Decode *raw* to the type *target*. If *raw* is invalid, record an error and return `_INVALID`."""
        origin = get_origin(target)
        if origin is Annotated:
            return self._decode_annotated(raw, target, path)
        if target in {Any, object}:
            return raw
        if origin in {Union, types.UnionType}:
            return self._decode_union(raw, target, path)
        if origin is Literal:
            return self._decode_choice(raw, {member: member for member in get_args(target)}, path)
        if origin in {tuple, list, Sequence}:
            return self._decode_list(raw, target, path)
        if origin in {dict, Mapping}:
            return self._decode_mapping(raw, get_args(target)[1], path)
        if target in _SCALARS:
            return _SCALARS[target](self, raw, path)
        if isinstance(target, type) and issubclass(target, msgspec.Struct):
            return self.decode_struct(raw, target, path)
        if isinstance(target, type) and issubclass(target, Enum):
            return self._decode_choice(raw, {member.value: member for member in target}, path)
        try:
            return msgspec.convert(raw, target)
        except msgspec.ValidationError as exc:
            return self._add_error(path, str(exc))

    def _decode_annotated(self, raw: object, target: Any, path: str) -> object:
        base_type, *annotations = get_args(target)
        if any(isinstance(annotation, durations.GoDuration) for annotation in annotations):
            return self._decode_duration(raw, path)
        value = self.decode_value(raw, base_type, path)
        for annotation in annotations:
            if isinstance(annotation, msgspec.Meta) and isinstance(value, int | float):
                low, high = annotation.ge, annotation.le
                if (low is not None and value < low) or (high is not None and value > high):
                    return self._add_error(path, f"Invalid value: {value}: not in valid range [{low}, {high}]")
        return value

    def _decode_union(self, raw: object, target: Any, path: str) -> object:
        members = [member for member in get_args(target) if member is not type(None)]
        if raw is None:
            return None
        if len(members) == 1:
            return self.decode_value(raw, members[0], path)
        try:
            return msgspec.convert(raw, target)
        except msgspec.ValidationError as exc:
            return self._add_error(path, str(exc))

    def _decode_list(self, raw: object, target: Any, path: str) -> object:
        if not isinstance(raw, list | tuple):
            return self._add_type_error("a list", raw, path)
        element_type = get_args(target)[0]
        values = []
        for index, element in enumerate(raw):
            element_path = item(path, index)
            value = self.decode_value(
                _make_zero_value(element_type) if element is None else element, element_type, element_path
            )
            if value is _INVALID and _is_struct(element_type):
                # A placeholder keeps the indices of later elements. Validation errors inside it are dropped later.
                has_required_field = any(field.required for field in msgspec.structs.fields(element_type))
                value = _INVALID if has_required_field else element_type()
            if value is not _INVALID:
                values.append(value)
        return values if get_origin(target) is list else tuple(values)

    def _decode_mapping(self, raw: object, value_type: Any, path: str) -> object:
        if not isinstance(raw, Mapping):
            return self._add_type_error("an object", raw, path)
        values = {
            str(key): self.decode_value(
                _make_zero_value(value_type) if value is None else value, value_type, child(path, str(key))
            )
            for key, value in raw.items()
        }
        return {key: value for key, value in values.items() if value is not _INVALID}

    def _decode_choice(self, raw: object, members: Mapping[Any, object], path: str) -> object:
        if isinstance(raw, str | int) and raw in members:
            return members[raw]
        if not isinstance(raw, str):
            return self._add_type_error("a string", raw, path)
        supported_values = [str(member) for member in members]
        return self._add_error(path, unsupported_value(raw, supported_values) + did_you_mean(raw, supported_values))

    def decode_string(self, raw: object, path: str) -> object:
        return raw if isinstance(raw, str) else self._add_type_error("a string", raw, path)

    def decode_boolean(self, raw: object, path: str) -> object:
        return raw if isinstance(raw, bool) else self._add_type_error("a boolean", raw, path)

    def decode_integer(self, raw: object, path: str) -> object:
        if isinstance(raw, float) and raw.is_integer():
            raw = int(raw)
        return (
            raw if isinstance(raw, int) and not isinstance(raw, bool) else self._add_type_error("an integer", raw, path)
        )

    def decode_number(self, raw: object, path: str) -> object:
        if isinstance(raw, int | float) and not isinstance(raw, bool) and math.isfinite(raw):
            return float(raw)
        return self._add_type_error("a number", raw, path)

    def decode_base64(self, raw: object, path: str) -> object:
        if not isinstance(raw, str):
            return self._add_type_error("a string of base64", raw, path)
        try:
            return base64.b64decode("".join(raw.split()), validate=True)
        except (binascii.Error, ValueError) as exc:
            return self._add_error(path, f"illegal base64 data: {exc}")

    def _decode_duration(self, raw: object, path: str) -> object:
        if not isinstance(raw, str):
            return self._add_type_error('a duration such as "1m30s"', raw, path)
        try:
            return durations.parse(raw)
        except ValueError as exc:
            return self._add_error(path, f'{exc}: write it like "1m30s" or "100ms"')

    def _add_type_error(self, expected_type: str, raw: object, path: str) -> object:
        return self._add_error(path, f"expected {expected_type}, got {describe_value(raw)}")

    def _add_error(self, path: str, message: str) -> object:
        self.errors.append(FieldError(path, message))
        return _INVALID


_SCALARS: Final[Mapping[Any, Callable[[_Decoder, object, str], object]]] = {
    str: _Decoder.decode_string,
    bool: _Decoder.decode_boolean,
    int: _Decoder.decode_integer,
    float: _Decoder.decode_number,
    bytes: _Decoder.decode_base64,
}


def _is_struct(target: Any) -> bool:
    return isinstance(target, type) and issubclass(target, msgspec.Struct)


def _make_zero_value(target: Any) -> object:
    """Return the zero value of an element type. As in Go, it replaces null in a list or mapping."""
    if get_origin(target) is Annotated:
        base_type, *annotations = get_args(target)
        is_duration = any(isinstance(annotation, durations.GoDuration) for annotation in annotations)
        return "0s" if is_duration else _make_zero_value(base_type)
    if _is_struct(target):
        return {}
    return target() if target in {str, bool, int, float} else None
