"""Bytes and objects: JSON as the Kubernetes API writes it, and parsed YAML.

Decoding is typed and ignores unknown fields. Explicit nulls mean what they mean in Go, the zero value of the field's
type; since they are rare, they are handled in a second, slower attempt.
"""

import re
from functools import cache
from typing import Any, Final, TypeVar

import msgspec
from msgspec import inspect

T = TypeVar("T")

_COMPOUND: Final = (inspect.StructType, inspect.DictType, inspect.VarTupleType, inspect.ListType)

_PATH: Final = re.compile(r"(?P<message>.*) - at (?:`key` in )?`\$(?P<path>.*?)`", re.DOTALL)
_TOO_DEEP: Final = "nested too deeply"


class DecodeError(ValueError):
    """Something that is not an object of the wanted type.

    Attributes:
        path: where, such as `spec.containers[...].image`; empty for the whole.
        message: what is wrong there.
    """

    def __init__(self, path: str, message: str) -> None:
        super().__init__(f"{path}: {message}" if path else message)
        self.path = path
        self.message = message


@cache
def _decoder(kind: Any) -> msgspec.json.Decoder[Any]:
    return msgspec.json.Decoder(kind)


@cache
def _shape(kind: Any) -> inspect.Type:
    return inspect.type_info(kind)


@cache
def _fields(kind: type) -> dict[str, inspect.Type]:
    shape = _shape(kind)
    return {field.encode_name: field.type for field in shape.fields} if isinstance(shape, inspect.StructType) else {}


def decode(data: bytes | bytearray, kind: type[T]) -> T:
    """Reads JSON.

    Args:
        data: JSON in UTF-8.
        kind: the type wanted, such as `Pod` or `list[Node]`.

    Raises:
        DecodeError: malformed JSON, or a value of a wrong type; says where.
    """
    wanted: Any = kind
    try:
        decoded: T = _decoder(wanted).decode(data)
    except msgspec.ValidationError:
        return from_builtins(_parse(data), kind)
    except RecursionError as fault:
        raise DecodeError("", _TOO_DEEP) from fault
    except (msgspec.DecodeError, UnicodeDecodeError) as fault:
        raise DecodeError("", str(fault)) from fault
    return decoded


def _parse(data: bytes | bytearray) -> Any:
    try:
        return msgspec.json.decode(data)
    except RecursionError as fault:
        raise DecodeError("", _TOO_DEEP) from fault
    except (msgspec.DecodeError, UnicodeDecodeError) as fault:
        raise DecodeError("", str(fault)) from fault


def from_builtins(obj: Any, kind: type[T]) -> T:
    """Makes an object of parsed JSON or YAML.

    Args:
        obj: dicts, lists, strings, numbers, booleans, None, and datetimes where YAML makes them.
        kind: the type wanted, such as `Pod` or `list[Node]`.

    Raises:
        DecodeError: a value of a wrong type; says where.
    """
    wanted: Any = kind
    try:
        # The depth of this walk is that of the type, not that of the object.
        return msgspec.convert(_without_nulls(obj, _shape(wanted)), kind)
    except msgspec.ValidationError as fault:
        match = _PATH.fullmatch(str(fault))
        if match is None:
            raise DecodeError("", str(fault)) from fault
        raise DecodeError(match["path"].lstrip("."), match["message"]) from fault


def _without_nulls(obj: Any, shape: inspect.Type) -> Any:
    """A copy of the part of `obj` that has a type, with Go's zero value in place of every null."""
    if obj is None:
        return _zero(shape)
    match shape:
        case inspect.StructType() if isinstance(obj, dict):
            known = _fields(shape.cls)
            return {key: _without_nulls(obj[key], known[key]) for key in known if obj.get(key) is not None}
        case inspect.DictType() if isinstance(obj, dict):
            return {key: _without_nulls(part, shape.value_type) for key, part in obj.items()}
        case inspect.VarTupleType() | inspect.ListType() if isinstance(obj, (list, tuple)):
            return [_without_nulls(part, shape.item_type) for part in obj]
        case inspect.UnionType():
            compound = [part for part in shape.types if isinstance(part, _COMPOUND)]
            return _without_nulls(obj, compound[0]) if len(compound) == 1 else obj
        case _:
            return obj


def _zero(shape: inspect.Type) -> Any:
    """Go's zero value of a type; None where absence is a value of its own."""
    match shape:
        case inspect.StructType() | inspect.DictType():
            return {}
        case inspect.VarTupleType() | inspect.ListType():
            return []
        case inspect.StrType():
            return ""
        case inspect.IntType():
            return 0
        case inspect.BoolType():
            return False
        case inspect.DateTimeType():
            return "0001-01-01T00:00:00Z"
        case inspect.UnionType() if not shape.includes_none:
            return 0
        case _:
            return None


def encode(obj: Any) -> bytes:
    """Writes JSON with the names of Kubernetes; fields at their default are left out."""
    return msgspec.json.encode(obj)
