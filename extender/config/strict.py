"""Strict decoding of builtins into frozen msgspec Structs: every fault at once, each with its path.

Used for the configuration itself and, with the plugins' own option types, for `pluginConfig[].args`. As strict as
kube-scheduler (Source: G018): names are case-sensitive, an unknown field is a fault. As lenient: null means absent,
and a number with no fraction is an integer however it is written.
"""

import base64
import binascii
import math
import types
from collections.abc import Callable, Mapping, Sequence
from enum import Enum
from typing import Annotated, Any, Final, Literal, TypeVar, Union, get_args, get_origin

import msgspec

from extender.config import durations
from extender.config.faults import Fault
from extender.config.nearest import hint
from extender.config.paths import child, item

T = TypeVar("T", bound=msgspec.Struct)

Int32 = Annotated[int, msgspec.Meta(ge=-(2**31), le=2**31 - 1)]
Int64 = Annotated[int, msgspec.Meta(ge=-(2**63), le=2**63 - 1)]

_TYPE_META: Final = ("kind", "apiVersion")
_BAD: Final = object()  # stands for a value that could not be decoded; the fault is recorded


def decode_strict(raw: Mapping[str, object], type: type[T], path: str) -> tuple[T | None, list[Fault]]:  # noqa: A002
    """*raw* as a *type*, or None and all that is wrong with it.

    `kind` and `apiVersion` are accepted at the top level whether the type has them or not.

    Args:
        raw: builtins, as YAML or JSON give them.
        type: a msgspec Struct; nested structs, tuples, mappings, literals, enums, bytes (base64) and
            `durations.Duration` are understood.
        path: where *raw* stands, to begin the faults' paths with.
    """
    value, faults = decode_partial(raw, type, path)
    return (None if faults else value), faults


def decode_partial(raw: Mapping[str, object], type: type[T], path: str) -> tuple[T | None, list[Fault]]:  # noqa: A002
    """As `decode_strict`, but beside its faults gives the value with their fields left at their defaults.

    None only when a field that has no default is missing or wrong.
    """
    decoder = _Decoder()
    own = {field.encode_name for field in msgspec.structs.fields(type)}
    body = {key: value for key, value in raw.items() if key in own or key not in _TYPE_META}
    value = decoder.struct(body, type, path)
    return (value if isinstance(value, type) else None), decoder.faults


def describe(value: object) -> str:
    """*value* for a message: `the string "x"`, `the integer 5`, `a list`."""
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
    """One decoding: collects faults while it walks."""

    def __init__(self) -> None:
        self.faults: list[Fault] = []

    def struct(self, raw: object, wanted: type[msgspec.Struct], path: str) -> object:
        if not isinstance(raw, Mapping):
            return self._wrong("an object", raw, path)
        fields = {field.encode_name: field for field in msgspec.structs.fields(wanted)}
        for key in raw:
            if key not in fields:
                self._fault(child(path, str(key)), f'unknown field "{key}"{hint(str(key), fields)}')
        found: dict[str, object] = {}
        complete = True
        for key, field in fields.items():
            where = child(path, key)
            value = raw.get(key)
            if value is not None:
                value = self.any(value, field.type, where)
                if value is not _BAD:
                    found[field.name] = value
                    continue
            elif field.required:
                self._fault(where, "Required value")
            complete = complete and not field.required
        if not complete:
            return _BAD
        try:
            return wanted(**found)
        except (ValueError, TypeError) as exc:  # a type's own __post_init__ refused
            return self._fault(path, str(exc))

    def any(self, raw: object, wanted: Any, path: str) -> object:
        """*raw* as the annotation *wanted*, or `_BAD` with a fault recorded."""
        origin = get_origin(wanted)
        if origin is Annotated:
            return self._annotated(raw, wanted, path)
        if wanted in {Any, object}:
            return raw
        if origin in {Union, types.UnionType}:
            return self._union(raw, wanted, path)
        if origin is Literal:
            return self._one_of(raw, {member: member for member in get_args(wanted)}, path)
        if origin in {tuple, list, Sequence}:
            return self._list(raw, wanted, path)
        if origin in {dict, Mapping}:
            return self._mapping(raw, get_args(wanted)[1], path)
        if wanted in _SCALARS:
            return _SCALARS[wanted](self, raw, path)
        if isinstance(wanted, type) and issubclass(wanted, msgspec.Struct):
            return self.struct(raw, wanted, path)
        if isinstance(wanted, type) and issubclass(wanted, Enum):
            return self._one_of(raw, {member.value: member for member in wanted}, path)
        try:
            return msgspec.convert(raw, wanted)
        except msgspec.ValidationError as exc:
            return self._fault(path, str(exc))

    def _annotated(self, raw: object, wanted: Any, path: str) -> object:
        inner, *marks = get_args(wanted)
        if any(isinstance(mark, durations.GoDuration) for mark in marks):
            return self._duration(raw, path)
        value = self.any(raw, inner, path)
        for mark in marks:
            if isinstance(mark, msgspec.Meta) and isinstance(value, int | float):
                low, high = mark.ge, mark.le
                if (low is not None and value < low) or (high is not None and value > high):
                    return self._fault(path, f"Invalid value: {value}: not in valid range [{low}, {high}]")
        return value

    def _union(self, raw: object, wanted: Any, path: str) -> object:
        members = [member for member in get_args(wanted) if member is not type(None)]
        if raw is None:
            return None
        if len(members) == 1:
            return self.any(raw, members[0], path)
        try:
            return msgspec.convert(raw, wanted)
        except msgspec.ValidationError as exc:
            return self._fault(path, str(exc))

    def _list(self, raw: object, wanted: Any, path: str) -> object:
        if not isinstance(raw, list | tuple):
            return self._wrong("a list", raw, path)
        inner = get_args(wanted)[0]
        values = []
        for index, element in enumerate(raw):
            where = item(path, index)
            value = self.any(_zero(inner) if element is None else element, inner, where)
            if value is _BAD and _is_struct(inner):
                # A stand-in keeps the later elements at their places; only faults inside it are suppressed.
                value = _stand_in(inner)
            if value is not _BAD:
                values.append(value)
        return values if get_origin(wanted) is list else tuple(values)

    def _mapping(self, raw: object, inner: Any, path: str) -> object:
        if not isinstance(raw, Mapping):
            return self._wrong("an object", raw, path)
        values = {
            str(key): self.any(_zero(inner) if value is None else value, inner, child(path, str(key)))
            for key, value in raw.items()
        }
        return {key: value for key, value in values.items() if value is not _BAD}

    def _one_of(self, raw: object, members: Mapping[Any, object], path: str) -> object:
        if isinstance(raw, str | int) and raw in members:
            return members[raw]
        if not isinstance(raw, str):
            return self._wrong("a string", raw, path)
        known = ", ".join(f'"{member}"' for member in members)
        meant = hint(raw, [str(member) for member in members])
        return self._fault(path, f'Unsupported value: "{raw}": supported values: {known}{meant}')

    def string(self, raw: object, path: str) -> object:
        return raw if isinstance(raw, str) else self._wrong("a string", raw, path)

    def boolean(self, raw: object, path: str) -> object:
        return raw if isinstance(raw, bool) else self._wrong("a boolean", raw, path)

    def integer(self, raw: object, path: str) -> object:
        if isinstance(raw, float) and raw.is_integer():
            raw = int(raw)
        return raw if isinstance(raw, int) and not isinstance(raw, bool) else self._wrong("an integer", raw, path)

    def number(self, raw: object, path: str) -> object:
        if isinstance(raw, int | float) and not isinstance(raw, bool) and math.isfinite(raw):
            return float(raw)
        return self._wrong("a number", raw, path)

    def octets(self, raw: object, path: str) -> object:
        if not isinstance(raw, str):
            return self._wrong("a string of base64", raw, path)
        try:
            return base64.b64decode("".join(raw.split()), validate=True)
        except (binascii.Error, ValueError) as exc:
            return self._fault(path, f"illegal base64 data: {exc}")

    def _duration(self, raw: object, path: str) -> object:
        if not isinstance(raw, str):
            return self._wrong('a duration such as "1m30s"', raw, path)
        try:
            return durations.parse(raw)
        except ValueError as exc:
            return self._fault(path, f'{exc}: write it like "1m30s" or "100ms"')

    def _wrong(self, wanted: str, raw: object, path: str) -> object:
        return self._fault(path, f"expected {wanted}, got {describe(raw)}")

    def _fault(self, path: str, message: str) -> object:
        self.faults.append(Fault(path, message))
        return _BAD


_SCALARS: Final[Mapping[Any, Callable[[_Decoder, object, str], object]]] = {
    str: _Decoder.string,
    bool: _Decoder.boolean,
    int: _Decoder.integer,
    float: _Decoder.number,
    bytes: _Decoder.octets,
}


def _is_struct(wanted: Any) -> bool:
    return isinstance(wanted, type) and issubclass(wanted, msgspec.Struct)


def _zero(wanted: Any) -> object:
    """What null stands for inside a list or a mapping: Go leaves the element at its zero value."""
    if get_origin(wanted) is Annotated:
        inner, *marks = get_args(wanted)
        return "0s" if any(isinstance(mark, durations.GoDuration) for mark in marks) else _zero(inner)
    if _is_struct(wanted):
        return {}
    return wanted() if wanted in {str, bool, int, float} else None


def _stand_in(wanted: type[msgspec.Struct]) -> object:
    required = any(field.required for field in msgspec.structs.fields(wanted))
    return _BAD if required else wanted()
