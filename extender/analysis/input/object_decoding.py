"""Decode one object of a file to its type, with errors that name the object and the field."""

import re
from typing import Any, Final, TypeVar

import msgspec

from extender.analysis.input.input_errors import InputErrorLine
from extender.analysis.input.object_documents import ObjectEntry
from extender.analysis.input.workloads import WORKLOAD_VERSIONS
from extender.api.codec import DecodeError, decode, from_builtins
from extender.api.kinds.meta import KubernetesObject, ObjectMeta
from extender.api.scheme import KINDS
from extender.basics.edit_distance import find_nearest_names

T = TypeVar("T", bound=KubernetesObject)

_MAX_NAME_LENGTH: Final = 253
_MAX_KIND_EDITS: Final = 2
_IS_UNQUOTED: Final = re.compile(r"Expected `str( \| null)?`, got `(bool|int|float)`")
_STEP: Final = re.compile(r"[^.\[\]]+")
_INVALID_NAME_CHARACTERS: Final = frozenset("/%")
_KNOWN_KINDS: Final = frozenset(
    {(version, kind) for version, kind in KINDS} | {(v, k) for k, v in WORKLOAD_VERSIONS.items()}
)


class InvalidObjectError(Exception):
    """An object cannot be decoded, or has an invalid name."""

    def __init__(self, error: InputErrorLine) -> None:
        self.error = error
        super().__init__(str(error))


def decode_entry(entry: ObjectEntry, kind: type[T]) -> T:
    """Decode an object and check its name. An object with `generateName` and no name is accepted.

    Raises:
        InvalidObjectError: the object is invalid.
    """
    try:
        if isinstance(entry.value, msgspec.Raw):
            obj = decode(memoryview(entry.value), kind)  # type: ignore[arg-type]
        else:
            obj = from_builtins(entry.value, kind)
    except DecodeError as error:
        path, hint = error.path, ""
        if _IS_UNQUOTED.match(error.message):
            path, hint = _name_key(entry.value, path), "; put it in quotes"
        line = InputErrorLine(entry.location, error.message + hint, _describe_entry(entry), path)
        raise InvalidObjectError(line) from error
    if (path_and_message := _find_name_error(obj.metadata)) is not None:
        path, message = path_and_message
        raise InvalidObjectError(InputErrorLine(entry.location, message, entry.kind, path))
    return obj


def get_plain_values(entry: ObjectEntry) -> Any:
    """Return an object as plain values; None if an unknown field has a number that is out of range."""
    if not isinstance(entry.value, msgspec.Raw):
        return entry.value
    try:
        return msgspec.json.decode(entry.value)
    except msgspec.DecodeError:
        return None


def _name_key(value: Any, path: str) -> str:
    """Return *path* with the first key of a number or boolean in place of a final `[...]`, which stands for any key."""
    mapping_path = path.removesuffix("[...]")
    if mapping_path == path or "[...]" in mapping_path:
        return path
    obj = msgspec.json.decode(value) if isinstance(value, msgspec.Raw) else value
    for step in _STEP.findall(mapping_path):
        obj = obj[int(step)] if isinstance(obj, list) else obj[step]
    key = next(key for key, item in obj.items() if isinstance(item, bool | int | float))
    return f"{mapping_path}[{key}]"


def suggest_kind(entry: ObjectEntry) -> str:
    """Return a known kind of the same apiVersion that the kind of an entry may mean; empty if none is similar."""
    kinds = (kind for version, kind in _KNOWN_KINDS if version == entry.version)
    return next(iter(find_nearest_names(entry.kind, kinds, 1, _MAX_KIND_EDITS)), "")


def _find_name_error(meta: ObjectMeta) -> tuple[str, str] | None:
    """Return the path and the error of an invalid name or namespace.

    Source: apimachinery/pkg/api/validation/path/name.go, IsValidPathSegmentName (1.36), and the maximum length of a
    DNS subdomain in apimachinery/pkg/util/validation/validation.go.
    """
    if not meta.name and not meta.generate_name:
        return "metadata.name", "is missing; every object needs a name"
    for path, name in (
        ("metadata.name", meta.name),
        ("metadata.generateName", meta.generate_name),
        ("metadata.namespace", meta.namespace),
    ):
        if len(name) > _MAX_NAME_LENGTH:
            return path, f"must be no more than {_MAX_NAME_LENGTH} characters"
        if not name.isprintable() or _INVALID_NAME_CHARACTERS.intersection(name):
            return path, f"{name!r} has a slash, a percent sign or a control character"
    return None


class _ObjectName(msgspec.Struct):
    """The name of a JSON object; the decoder does not convert other fields, which may have invalid numbers."""

    metadata: dict[str, msgspec.Raw] = {}


_NAME_DECODER: Final = msgspec.json.Decoder(_ObjectName)


def _describe_entry(entry: ObjectEntry) -> str:
    """Return the kind of an object that could not be decoded, and the object's name if it is readable."""
    try:
        if isinstance(entry.value, msgspec.Raw):
            raw_meta = _NAME_DECODER.decode(entry.value).metadata
            meta: Any = {key: msgspec.json.decode(raw_meta[key]) for key in ("name", "namespace") if key in raw_meta}
        else:
            meta = entry.value.get("metadata")
    except msgspec.DecodeError:
        return entry.kind
    name = meta.get("name") if isinstance(meta, dict) else None
    namespace = meta.get("namespace") if isinstance(meta, dict) else None
    if not isinstance(name, str) or not name:
        return entry.kind
    return f"{entry.kind} {namespace}/{name}" if isinstance(namespace, str) and namespace else f"{entry.kind} {name}"
