"""Functions of lists and sets that the library does not have, or has without a bound.

Source: B123.
"""

from collections.abc import Callable, Mapping, Sequence
from itertools import pairwise
from typing import Any, Final

from extender.cel.costs import METER
from extender.cel.signature import KEPT, Function

_LONGEST_ATTRIBUTE: Final = 48


def _same(one: Any, other: Any) -> bool:
    return isinstance(one, bool) == isinstance(other, bool) and bool(one == other)


def _has(items: Sequence[Any], wanted: Any) -> bool:
    return any(_same(item, wanted) for item in items)


def _all_in(items: Sequence[Any], wanted: Sequence[Any]) -> bool:
    METER.spend(len(items) * len(wanted))
    return all(_has(items, each) for each in wanted)


def _meet(items: Sequence[Any], wanted: Sequence[Any]) -> bool:
    METER.spend(len(items) * len(wanted))
    return any(_has(items, each) for each in wanted)


def _sorted(items: Sequence[Any]) -> bool:
    METER.spend(len(items))
    return all(one <= other for one, other in pairwise(items))


def _sum(items: Sequence[Any]) -> Any:
    METER.spend(len(items))
    return sum(items)


def _extreme(choose: Callable[[Sequence[Any]], Any], name: str) -> Callable[[Sequence[Any]], Any]:
    def body(items: Sequence[Any]) -> Any:
        METER.spend(len(items))
        if not items:
            raise ValueError(f"{name} called on empty list")
        return choose(items)

    return body


def _place(items: Sequence[Any], arguments: Sequence[Any]) -> int:
    METER.spend(len(items))
    (wanted,) = arguments
    return next((at for at, item in enumerate(items) if _same(item, wanted)), -1)


def _last_place(items: Sequence[Any], arguments: Sequence[Any]) -> int:
    after = _place(items[::-1], arguments)
    return -1 if after < 0 else len(items) - 1 - after


def _part_and_offset(arguments: Sequence[Any], usual: int) -> tuple[str, int]:
    part, *rest = arguments
    (offset,) = rest or (usual,)
    numbered = isinstance(offset, int) and not isinstance(offset, bool)
    if not (isinstance(part, str) and numbered):
        raise ValueError("no such overload")
    if part and offset < 0 and rest:
        raise ValueError(f"index out of range: {offset}")
    return part, offset


def _place_in_text(text: str, arguments: Sequence[Any]) -> int:
    part, offset = _part_and_offset(arguments, 0)
    return text.find(part, offset) if part else offset


def _last_place_in_text(text: str, arguments: Sequence[Any]) -> int:
    part, offset = _part_and_offset(arguments, len(text))
    if not part:
        return offset
    return -1 if offset >= len(text) and len(arguments) > 1 else text.rfind(part, 0, offset + len(part))


def _merged(maps: Sequence[Mapping[Any, Any]]) -> dict[Any, Any]:
    merged: dict[Any, Any] = {}
    for each in maps:
        METER.spend(len(each))
        for key, value in each.items():
            if key in merged:
                raise ValueError(f"insert failed: key {key} already exists")
            merged[key] = value
    return merged


LISTS: Final = (
    Function("sets.contains", "bool", ("list", "list"), False, _all_in),
    Function("sets.equivalent", "bool", ("list", "list"), False, lambda a, b: _all_in(a, b) and _all_in(b, a)),
    Function("sets.intersects", "bool", ("list", "list"), False, _meet),
    Function("isSorted", "bool", ("list",), True, _sorted),
    Function("sum", "dyn", ("list",), True, _sum),
    Function("min", "dyn", ("list",), True, _extreme(min, "min")),
    Function("max", "dyn", ("list",), True, _extreme(max, "max")),
    Function("__indexOf", "int", ("list", "list"), True, _place),
    Function("__indexOf", "int", ("string", "list"), True, _place_in_text),
    Function("__lastIndexOf", "int", ("list", "list"), True, _last_place),
    Function("__lastIndexOf", "int", ("string", "list"), True, _last_place_in_text),
    Function("__merged", "dyns", ("maps",), False, _merged),
    Function("__spend", "bool", ("int",), False, METER.spend),
)
"""Functions that are always there; those that begin with underscores are written by `calls` alone."""


def _includes(target: Any, wanted: Any) -> bool:
    if not isinstance(target, list):
        return _same(target, wanted)
    if len(target) > _LONGEST_ATTRIBUTE:
        raise ValueError(f"'includes' function cannot be applied to lists longer than {_LONGEST_ATTRIBUTE} values")
    return _has(target, wanted)


_SCALARS: Final = ("bool", "int", "string", KEPT)

INCLUDES: Final = tuple(
    Function("includes", "bool", (target, wanted), True, _includes)
    for target in ("list", *_SCALARS)
    for wanted in _SCALARS
)
"""Functions of the gate DRAListTypeAttributes."""
