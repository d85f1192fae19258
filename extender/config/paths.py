"""Field paths of faults: `profiles[0].pluginConfig[1].args`."""

from collections.abc import Iterable

from extender.config.faults import Fault


def child(path: str, key: str) -> str:
    """The path of the field *key* of the object at *path*."""
    return f"{path}.{key}" if path else key


def item(path: str, index: int) -> str:
    """The path of the element *index*, from 0, of the list at *path*."""
    return f"{path}[{index}]"


def within(path: str, ancestor: str) -> bool:
    """Whether *path* is *ancestor* or lies inside it."""
    return path == ancestor or path.startswith((f"{ancestor}.", f"{ancestor}["))


def without_consequences(later: Iterable[Fault], earlier: Iterable[Fault]) -> list[Fault]:
    """The *later* faults that do not merely repeat that an *earlier* one left a place without its value.

    A field that could not be decoded keeps its default; what validation then says about that default helps nobody.
    """
    spoiled = [fault.path for fault in earlier if fault.path]
    return [fault for fault in later if not any(within(fault.path, path) for path in spoiled)]
