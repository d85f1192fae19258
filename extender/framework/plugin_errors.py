"""Describe the exceptions of plugins in one line. For a third-party plugin, its file and line number follow."""

import sys
from collections.abc import Callable, Iterator
from math import isnan
from numbers import Real
from pathlib import PurePath
from types import FrameType, TracebackType
from typing import Any, Final

_OWN_PACKAGE: Final = "extender"

DEFINING_MODULE: Final = "defining_module"
"""The class attribute of third-party plugins that holds the name of the module that defines the plugin."""

_TYPES_OMITTED_FROM_MESSAGES: Final = frozenset((Exception, LookupError, RuntimeError, ValueError))
"""The types that messages omit for exceptions that this package raised, because their texts are full sentences."""


class FatalPluginError(Exception):
    """An error of a plugin that ends the command; the message is one line."""


class SortKeyError(FatalPluginError):
    """A third-party QueueSort plugin raised or returned no valid key, so no queue can be sorted."""

    def __init__(self, plugin: str, detail: str) -> None:
        super().__init__(f'running QueueSort plugin "{plugin}": {detail}')


def plugin_exceptions() -> type[BaseException] | tuple[()]:
    """Return the exceptions of plugins, for an `except` clause: all but KeyboardInterrupt, which is the user's Ctrl-C.

    A plugin that calls `sys.exit`, or whose Rust code panics (pyo3's PanicException is no Exception), fails like any
    other, and the process continues. A panic ends kube-scheduler. It is started again, and the same pod panics again.
    """
    return () if isinstance(sys.exception(), KeyboardInterrupt) else BaseException


def format_exception(error: BaseException, module: str = _OWN_PACKAGE) -> str:
    """Return the type and the message of *error* in one line. The type is left out for full sentences of this package.

    For a third-party plugin, the file and the line follow in brackets: `KeyError: 'zone' (price_plugins/zones.py:12)`.

    The last call in the top-level package of *module*, which defines the plugin, is named.
    """
    text, error_type = " ".join(_get_text(error).split()), type(error)
    if not text:
        message = error_type.__name__
    elif error_type in _TYPES_OMITTED_FROM_MESSAGES and _is_raised_by_this_package(error.__traceback__):
        message = text
    else:
        message = f"{error_type.__name__}: {text}"
    location = find_source_location(error.__traceback__, module)
    return f"{message} ({location})" if location else message


def _get_text(error: BaseException) -> str:
    """Return the message of *error*; empty if the exception raises while it makes its message."""
    try:
        return str(error)
    except plugin_exceptions():
        return ""


def describe_value(value: Any) -> str:
    """Return the type and the text of a wrong *value* of a plugin, for messages."""
    numpy = sys.modules.get("numpy")  # commands that call no plugin do without its import
    if numpy is not None and isinstance(value, numpy.ndarray):
        return f"an array of {value.dtype} with shape {value.shape}"
    if value is None:
        return "None"
    try:
        return f"{type(value).__name__} {value!r}"[:120]
    except plugin_exceptions():
        return type(value).__name__


def get_defining_module(plugin: Any) -> str:
    """Return the name of the module of a third-party *plugin*, an instance or its class; `extender` for others."""
    return str(getattr(plugin, DEFINING_MODULE, _OWN_PACKAGE))


def is_own_module(module: str) -> bool:
    """Return whether the module with this name belongs to this package, and not to a third-party plugin."""
    return module.partition(".")[0] == _OWN_PACKAGE


def check_sort_key(sort_key: Callable[..., Any]) -> Callable[..., Any]:
    """Return the method *sort_key* of a third-party plugin with a check, because the queues call it themselves.

    The method raises a SortKeyError in place of any other exception, and if its result is no tuple of numbers.
    """

    def call(self: Any, entry: Any) -> Any:
        try:
            key = sort_key(self, entry)
        except plugin_exceptions() as error:
            raise SortKeyError(self.name, format_exception(error, get_defining_module(self))) from error
        if not isinstance(key, tuple) or not all(isinstance(item, Real) and not isnan(item) for item in key):
            raise SortKeyError(self.name, f"returned {key!r:.100}, want a tuple of numbers")
        return key

    return call


def find_source_location(traceback: TracebackType | None, module: str) -> str:
    """Return the file and the line of the last call in the top-level package of *module*.

    The result is empty if there is none, or for this package. The path starts with the name of the package.
    """
    if is_own_module(module):
        return ""
    location = ""
    package = module.partition(".")[0]
    for frame, line in _walk(traceback):
        name = str(frame.f_globals.get("__name__"))
        if name.partition(".")[0] == package:
            location = f"{_shorten(frame.f_code.co_filename, name)}:{line}"
    return location


def _walk(traceback: TracebackType | None) -> Iterator[tuple[FrameType, int]]:
    while traceback is not None:
        yield traceback.tb_frame, traceback.tb_lineno
        traceback = traceback.tb_next


def _shorten(file: str, module: str) -> str:
    """Return the path of *file* from the top-level package of *module*."""
    path = PurePath(file)
    depth = module.count(".") + (2 if path.name == "__init__.py" else 1)
    return "/".join(path.parts[-depth:])


def _is_raised_by_this_package(traceback: TracebackType | None) -> bool:
    """Return whether the exception was raised in this package, not in a third-party plugin."""
    frames = [frame for frame, _ in _walk(traceback)]
    return bool(frames) and is_own_module(str(frames[-1].f_globals.get("__name__")))
