"""List and set functions that the Python CEL library lacks, or whose cost it does not limit.

Source: dynamic-resource-allocation/cel/compile.go, newCompiler (1.36).
"""

from collections.abc import Callable, Mapping, Sequence
from itertools import accumulate, pairwise
from typing import Any, Final

from extender.api.quantity import MAX_INT64
from extender.dra.cel.costs import COST_METER
from extender.dra.cel.function_signature import CEL_VALUE, Function
from extender.dra.cel.values import CelValue

_MAX_LIST_LENGTH: Final = 48


def _are_equal(left: Any, right: Any) -> bool:
    return isinstance(left, bool) == isinstance(right, bool) and bool(left == right)


def _contains(items: Sequence[Any], target: Any) -> bool:
    return any(_are_equal(item, target) for item in items)


def _contains_all(items: Sequence[Any], targets: Sequence[Any]) -> bool:
    COST_METER.spend(len(items) * len(targets))
    return all(_contains(items, item) for item in targets)


def _intersects(items: Sequence[Any], targets: Sequence[Any]) -> bool:
    COST_METER.spend(len(items) * len(targets))
    return any(_contains(items, item) for item in targets)


def _is_sorted(items: Sequence[Any]) -> bool:
    COST_METER.spend(len(items))
    return all(item <= next_item for item, next_item in pairwise(items))


def _sum(items: Sequence[Any]) -> Any:
    COST_METER.spend(len(items))
    total = 0
    for total in accumulate(items):
        if isinstance(total, int) and not -MAX_INT64 - 1 <= total <= MAX_INT64:
            raise ValueError("integer overflow")
    return total


def _make_extremum_function(select: Callable[[Sequence[Any]], Any], name: str) -> Callable[[Sequence[Any]], Any]:
    def select_extremum(items: Sequence[Any]) -> Any:
        COST_METER.spend(len(items))
        if not items:
            raise ValueError(f"{name} called on empty list")
        return select(items)

    return select_extremum


def _find_index_in_list(items: Sequence[Any], arguments: Sequence[Any]) -> int:
    COST_METER.spend(len(items))
    (target,) = arguments
    return next((index for index, item in enumerate(items) if _are_equal(item, target)), -1)


def _find_last_index_in_list(items: Sequence[Any], arguments: Sequence[Any]) -> int:
    index_from_end = _find_index_in_list(items[::-1], arguments)
    return -1 if index_from_end < 0 else len(items) - 1 - index_from_end


def _parse_substring_and_offset(arguments: Sequence[Any], default_offset: int) -> tuple[str, int]:
    substring, *options = arguments
    (offset,) = options or (default_offset,)
    is_integer = isinstance(offset, int) and not isinstance(offset, bool)
    if not (isinstance(substring, str) and is_integer):
        raise ValueError("no such overload")
    if substring and offset < 0 and options:
        raise ValueError(f"index out of range: {offset}")
    return substring, offset


def _find_index_in_string(text: str, arguments: Sequence[Any]) -> int:
    substring, offset = _parse_substring_and_offset(arguments, 0)
    return text.find(substring, offset) if substring else offset


def _find_last_index_in_string(text: str, arguments: Sequence[Any]) -> int:
    substring, offset = _parse_substring_and_offset(arguments, len(text))
    if not substring:
        return offset
    return -1 if offset >= len(text) and len(arguments) > 1 else text.rfind(substring, 0, offset + len(substring))


def _get_substring(text: str, start: int, end: int | None = None) -> str:
    if end is not None and start > end:
        raise ValueError(f"invalid substring range. start: {start}, end: {end}")
    for position in (start, end):
        if position is not None and not 0 <= position <= len(text):
            raise ValueError(f"index out of range: {position}")
    return text[start:end]


def _merge_maps(maps: Sequence[Mapping[Any, Any]]) -> dict[Any, Any]:
    merged_map: dict[Any, Any] = {}
    for entries in maps:
        COST_METER.spend(len(entries))
        for key, value in entries.items():
            if key in merged_map:
                raise ValueError(f"insert failed: key {key} already exists")
            merged_map[key] = value
    return merged_map


LISTS: Final = (
    Function("sets.contains", "bool", ("list(dyn)", "list(dyn)"), False, _contains_all),
    Function(
        "sets.equivalent",
        "bool",
        ("list(dyn)", "list(dyn)"),
        False,
        lambda left, right: _contains_all(left, right) and _contains_all(right, left),
    ),
    Function("sets.intersects", "bool", ("list(dyn)", "list(dyn)"), False, _intersects),
    Function("isSorted", "bool", ("list(dyn)",), True, _is_sorted),
    Function("sum", "dyn", ("list(dyn)",), True, _sum),
    Function("min", "dyn", ("list(dyn)",), True, _make_extremum_function(min, "min")),
    Function("max", "dyn", ("list(dyn)",), True, _make_extremum_function(max, "max")),
    Function("__indexOf", "int", ("list(dyn)", "list(dyn)"), True, _find_index_in_list),
    Function("__indexOf", "int", ("string", "list(dyn)"), True, _find_index_in_string),
    Function("__lastIndexOf", "int", ("list(dyn)", "list(dyn)"), True, _find_last_index_in_list),
    Function("__lastIndexOf", "int", ("string", "list(dyn)"), True, _find_last_index_in_string),
    Function("__substring", "string", ("string", "int"), True, _get_substring),
    Function("__substring", "string", ("string", "int", "int"), True, _get_substring),
    Function("__charAt", "string", ("string", "int"), True, lambda text, position: _get_substring(text, position)[:1]),
    Function("__mergeMaps", "map(dyn, dyn)", ("list(map(dyn, dyn))",), False, _merge_maps),
    Function("__spend", "bool", ("int",), False, COST_METER.spend),
)
"""The functions that need no feature gate. Only `call_rewrites` uses names with two leading underscores."""


def _includes(attribute: Any, value: Any) -> bool:
    if not isinstance(attribute, list):
        return _are_equal(attribute, value)
    if len(attribute) > _MAX_LIST_LENGTH:
        raise ValueError(f"'includes' function cannot be applied to lists longer than {_MAX_LIST_LENGTH} values")
    if isinstance(value, CelValue):
        # The library converts the messages of arguments, but not those in lists.
        return any((getattr(item, "kind", None), getattr(item, "text", None)) == value for item in attribute)
    return _contains(attribute, value)


_SCALARS: Final = ("bool", "int", "string", CEL_VALUE)

INCLUDES: Final = tuple(
    Function("includes", "bool", (attribute_type, value_type), True, _includes)
    for attribute_type in ("list(dyn)", *_SCALARS)
    for value_type in (*_SCALARS, "double", "uint")
)
"""The functions of list-type attributes."""
