"""Read-only copies and views of API objects, for code that must not modify the objects of the cache."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cache
from typing import Any, Final, NoReturn, TypeVar, cast, overload

import msgspec
from msgspec import inspect

T = TypeVar("T")
K = TypeVar("K")
StructT = TypeVar("StructT", bound=msgspec.Struct)


def refuse_change(*_: object, **__: object) -> NoReturn:
    """Refuse the change of a read-only object.

    Raises:
        TypeError: always.
    """
    raise TypeError("read-only: change a copy, such as dict(...)")


class ReadOnlyDict(dict[K, T]):
    """A dict whose items cannot be changed. Its copies are plain dicts."""

    __slots__ = ()
    __setitem__ = __delitem__ = __ior__ = clear = pop = popitem = setdefault = update = refuse_change

    def __reduce__(self) -> tuple[Any, ...]:
        return dict, (dict(self),)

    def __copy__(self) -> dict[K, T]:
        return dict(self)


class ReadOnlySequence(Sequence[T]):
    """A read-only view of a sequence, which makes each item read-only when it is read."""

    __slots__ = ("_convert", "_items")

    def __init__(self, items: Sequence[Any], convert: Callable[[Any], T]) -> None:
        self._items, self._convert = items, convert

    def __len__(self) -> int:
        return len(self._items)

    @overload
    def __getitem__(self, index: int) -> T: ...
    @overload
    def __getitem__(self, index: slice) -> Sequence[T]: ...
    def __getitem__(self, index: int | slice) -> T | Sequence[T]:
        if isinstance(index, slice):
            return [self._convert(item) for item in self._items[index]]
        return self._convert(self._items[index])

    def __iter__(self) -> Iterator[T]:
        return map(self._convert, self._items)


class ReadOnlyMapping(Mapping[str, T]):
    """A read-only view of a mapping, which makes each value read-only when it is read."""

    __slots__ = ("_convert", "_items")

    def __init__(self, items: Mapping[str, Any], convert: Callable[[Any], T]) -> None:
        self._items, self._convert = items, convert

    def __len__(self) -> int:
        return len(self._items)

    def __getitem__(self, key: str) -> T:
        return self._convert(self._items[key])

    def __iter__(self) -> Iterator[str]:
        return iter(self._items)


def copy_read_only(value: StructT) -> StructT:
    """Return an equal object with a `ReadOnlyDict` in place of each dict. Parts without dicts are shared."""
    return cast("StructT", copy_value_read_only(value))


def copy_value_read_only(value: Any) -> Any:
    """Return a read-only copy of *value*: an object, or a part of one."""
    if isinstance(value, msgspec.Struct):
        changes = {}
        for name in _find_fields_with_dicts(type(value)):
            part = getattr(value, name)
            read_only_part = copy_value_read_only(part)
            if read_only_part is not part:
                changes[name] = read_only_part
        return msgspec.structs.replace(value, **changes) if changes else value
    if type(value) in (tuple, list) and value:
        return tuple(map(copy_value_read_only, value))  # lists occur only in the parameters of device drivers
    if type(value) is dict:
        return ReadOnlyDict((key, copy_value_read_only(item)) for key, item in value.items()) if value else _EMPTY
    return value


_EMPTY: Final[ReadOnlyDict[Any, Any]] = ReadOnlyDict()


@cache
def _find_fields_with_dicts(struct: type[msgspec.Struct]) -> tuple[str, ...]:
    info = inspect.type_info(struct)
    assert isinstance(info, inspect.StructType)  # noqa: S101  for the type checker
    return tuple(field.name for field in info.fields if _has_dicts(field.type))


def _has_dicts(info: inspect.Type) -> bool:
    match info:
        case inspect.DictType() | inspect.AnyType():
            return True
        case inspect.StructType():
            return bool(_find_fields_with_dicts(info.cls))
        case inspect.VarTupleType():
            return _has_dicts(info.item_type)
        case inspect.UnionType():
            return any(map(_has_dicts, info.types))
    return False
