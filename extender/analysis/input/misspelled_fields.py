"""Find misspelled fields and resources in manifests, which the API server would reject and decoding ignores."""

from collections.abc import Iterator, Mapping
from functools import cache, lru_cache
from types import UnionType
from typing import Any, Final, get_args

import msgspec

from extender.api.kinds.pod import ResourceRequirements
from extender.basics.edit_distance import find_nearest_names

_MAX_EDITS: Final = 2
_MAX_LENGTH: Final = 64
"""The longest name that is compared and cached; the longest field of a pod has 47 characters."""
_NATIVE_RESOURCES: Final = ("cpu", "memory", "ephemeral-storage")
_HUGE_PAGES: Final = "hugepages-"
_NO_RESOURCE: Final = (
    f"is no resource of a container; want {', '.join(_NATIVE_RESOURCES)}, {_HUGE_PAGES}SIZE,"
    " or a name with a domain such as nvidia.com/gpu"
)


def find_misspelled_fields(value: Any, kind: type[msgspec.Struct], path: str = "") -> Iterator[tuple[str, str]]:
    """Yield the path and the error of each unknown field that resembles a known one, and of each unknown resource.

    Only fields that scheduling reads are known. An unknown field is accepted unless it resembles one of these, or has
    the name of a field one level deeper, such as `requests` in place of `resources.requests`. No field of the API does.

    Args:
        value: the manifest, or a part of it, as plain values; other values than mappings and lists have no fields.
        kind: the type as which *value* is decoded.
        path: the path of *value*; empty for the whole manifest.

    Source: pkg/apis/core/validation/validation.go, validateContainerResourceName (1.37).
    """
    if isinstance(value, list | tuple):
        for index, item in enumerate(value):
            yield from find_misspelled_fields(item, kind, f"{path}[{index}]")
    if not isinstance(value, Mapping):
        return
    types = _get_field_types(kind)
    for key, item in value.items():
        field_path = f"{path}.{key}" if path else str(key)
        if key not in types:
            suggestion = _find_similar_field(kind, key) if isinstance(key, str) and len(key) <= _MAX_LENGTH else ""
            if suggestion and suggestion not in value:
                yield field_path, f'is no field; did you mean "{suggestion}"?'
            elif isinstance(key, str) and (deeper_path := _find_deeper_field(kind, key)):
                yield field_path, f"is no field; did you mean {deeper_path}?"
        elif kind is ResourceRequirements and isinstance(item, Mapping):
            for name in map(str, item):
                if "/" not in name and name not in _NATIVE_RESOURCES and not name.startswith(_HUGE_PAGES):
                    yield f"{field_path}.{name}", _NO_RESOURCE
        elif (field_type := types[key]) is not None:
            yield from find_misspelled_fields(item, field_type, field_path)


@lru_cache(maxsize=4096)
def _find_similar_field(kind: type[msgspec.Struct], name: str) -> str:
    """Return the most similar field of *kind*; empty if none is similar. Manifests repeat the same unknown fields."""
    max_edits = min(_MAX_EDITS, len(name) // 2)
    return next(iter(find_nearest_names(name, _get_field_types(kind), 1, max_edits)), "")


def _find_deeper_field(kind: type[msgspec.Struct], name: str) -> str:
    """Return the path of the field *name* in an object that is a field of *kind*; empty if there is none."""
    for field in msgspec.structs.fields(kind):
        parts = get_args(field.type) if isinstance(field.type, UnionType) else (field.type,)
        field_type = next((part for part in parts if isinstance(part, type) and issubclass(part, msgspec.Struct)), None)
        if field_type is not None and name in _get_field_types(field_type):
            return f"{field.encode_name}.{name}"
    return ""


@cache
def _get_field_types(kind: type[msgspec.Struct]) -> dict[str, type[msgspec.Struct] | None]:
    """Return the JSON fields of a type. A field of objects or a list of them has their type, any other one None."""
    return {field.encode_name: _find_struct(field.type) for field in msgspec.structs.fields(kind)}


def _find_struct(field_type: Any) -> type[msgspec.Struct] | None:
    if isinstance(field_type, type) and issubclass(field_type, msgspec.Struct):
        return field_type
    return next((found for part in get_args(field_type) if (found := _find_struct(part)) is not None), None)
