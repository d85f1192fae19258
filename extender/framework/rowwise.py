"""Plugins row at a time: a function or a small class over one pod and one node becomes a plugin like any other.

    @filter_plugin("GpuModel")
    def gpu_model(pod: Pod, node: NodeInfo) -> str | None:
        return None if "example.com/gpu-model" in node.labels else "node(s) lack a GPU model"

What is decorated stays what it was, so that tests can call it; `plugin_class` finds the plugin made from it.
"""

import inspect
from collections.abc import Callable
from dataclasses import replace
from types import SimpleNamespace
from typing import Any, Final, Protocol, TypeVar, overload

import msgspec

from extender.framework.contract import DefinitionError, wrong_name, wrong_options, wrong_signature
from extender.framework.node_info import NodeInfo
from extender.framework.registry import METHODS
from extender.framework.row_adapters import Answer, Definition, Keep, adapter
from extender.framework.setup import Setup
from extender.framework.verdict import Code, Reason
from extender.objects.pod import Pod

_MADE: Final = "__extender_plugin__"
_ARGUMENTS: Final = ("pod", "node")
_ROW_METHODS: Final = ("filter", "score")


class RowFilter(Protocol):
    """Something that says of one node whether it can take the pod."""

    def filter(self, pod: Pod, node: NodeInfo) -> Answer:
        """None takes the pod; a text, a `Reason` or several say why not."""


class RowScore(Protocol):
    """Something that rates one node."""

    def score(self, pod: Pod, node: NodeInfo) -> int:
        """0 to 100, or any number from 0 up if scores are normalized."""


Options = TypeVar("Options", bound=msgspec.Struct)
FilterFunction = TypeVar("FilterFunction", bound=Callable[[Pod, NodeInfo], Answer])
ScoreFunction = TypeVar("ScoreFunction", bound=Callable[[Pod, NodeInfo], int])
RowClass = TypeVar("RowClass", bound="type[RowFilter | RowScore]")
FilterWithOptions = Callable[[Pod, NodeInfo, Options], Answer]
ScoreWithOptions = Callable[[Pod, NodeInfo, Options], int]


def final(text: str) -> Reason:
    """A reason that evicting pods from the node cannot remove, so that preemption leaves the node alone."""
    return Reason(text, Code.UNRESOLVABLE)


@overload
def filter_plugin(name: str, *, keep: Keep = False) -> Callable[[FilterFunction], FilterFunction]: ...
@overload
def filter_plugin(
    name: str, *, options: type[Options], keep: Keep = False
) -> Callable[[FilterWithOptions[Options]], FilterWithOptions[Options]]: ...
def filter_plugin(name: str, *, options: type[Any] | None = None, keep: Keep = False) -> Callable[[Any], Any]:
    """Make a function of a pod and a node a Filter plugin.

    Args:
        name: as in the configuration.
        options: a msgspec Struct with defaults; then the function takes the options as third argument.
        keep: answers depend on nothing but the node, the pods on it and the pod's shape (namespace, labels, owners,
            spec), or the key that the given function makes of the pod, and are kept between cycles. With True the
            function is shown a pod without name, uid, annotations and times.

    Raises:
        DefinitionError: the name, the options or the function cannot be a plugin's.
    """
    return _function_plugin(Definition(name, _unmade, frozenset({"filter"}), options, keep))


@overload
def score_plugin(
    name: str, *, keep: Keep = False, normalize: bool = False, reverse: bool = False
) -> Callable[[ScoreFunction], ScoreFunction]: ...
@overload
def score_plugin(
    name: str, *, options: type[Options], keep: Keep = False, normalize: bool = False, reverse: bool = False
) -> Callable[[ScoreWithOptions[Options]], ScoreWithOptions[Options]]: ...
def score_plugin(
    name: str, *, options: type[Any] | None = None, keep: Keep = False, normalize: bool = False, reverse: bool = False
) -> Callable[[Any], Any]:
    """Make a function of a pod and a node a Score plugin.

    Args:
        name: as in the configuration.
        options: as for `filter_plugin`.
        keep: as for `filter_plugin`.
        normalize: scores are any numbers from 0 up, and are brought to 0..100 in proportion to the highest; without it
            they are 0 to 100.
        reverse: with `normalize`, the lower the better: a score of 0 becomes 100, the highest 0.

    Raises:
        DefinitionError: the name, the options or the function cannot be a plugin's.
    """
    return _function_plugin(Definition(name, _unmade, frozenset({"score"}), options, keep, normalize, reverse))


def row_plugin(
    name: str,
    *,
    options: type[msgspec.Struct] | None = None,
    keep: Keep = False,
    normalize: bool = False,
    reverse: bool = False,
) -> Callable[[RowClass], RowClass]:
    """Make a class with the methods `filter(pod, node)` or `score(pod, node)`, or both, a plugin.

    A method `events()` may stand beside them; without one every event wakes the pods the plugin turned away.

    Args:
        name: as in the configuration.
        options: a msgspec Struct with defaults; then the constructor takes a `Setup`, whose `options` they are.
        keep: as for `filter_plugin`; for both methods.
        normalize: as for `score_plugin`.
        reverse: as for `score_plugin`.

    Raises:
        DefinitionError: the name, the options or the class cannot be a plugin's.
    """
    _check_named(name, "row_plugin")

    def decorate(kind: RowClass) -> RowClass:
        if not isinstance(kind, type):
            raise DefinitionError(
                name, "row_plugin decorates classes; use filter_plugin or score_plugin for a function"
            )
        methods = frozenset(method for method in (*_ROW_METHODS, "events") if callable(getattr(kind, method, None)))
        takes_setup = bool(_constructor(name, kind, options))
        make = kind if takes_setup else (lambda _: kind())
        definition = Definition(name, make, methods, options, keep, normalize, reverse, inspect.getdoc(kind))
        faults = _wrong_class(kind, definition)
        _finish(kind, definition, faults)
        return kind

    return decorate


def plugin_class(thing: object) -> object:
    """The plugin class made from a decorated function or class; anything else as it is."""
    own = getattr(thing, "__dict__", {})
    return own.get(_MADE, thing)


def _check_named(name: object, decorator: str) -> None:
    """Catch a decorator that stands there bare, so that what it decorates came in place of the name.

    Raises:
        DefinitionError: it does.
    """
    if callable(name):
        raise DefinitionError(getattr(name, "__name__", str(name)), f'want its name: write @{decorator}("Name")')


def _unmade(_: Setup[Any]) -> Any:
    raise NotImplementedError


def _function_plugin(definition: Definition) -> Callable[[Any], Any]:
    method = next(iter(definition.methods))
    _check_named(definition.name, f"{method}_plugin")
    wanted = _ARGUMENTS if definition.options is None else (*_ARGUMENTS, "options")

    def decorate(function: Callable[..., Any]) -> Callable[..., Any]:
        if isinstance(function, type) or not callable(function):
            raise DefinitionError(definition.name, f"{method}_plugin decorates functions; use row_plugin for a class")
        called = getattr(function, "__name__", method)
        faults = wrong_signature(called, function, wanted, any_names=True)

        def make(setup: Setup[Any]) -> Any:
            if definition.options is None:
                return SimpleNamespace(**{method: function})
            options = setup.options
            return SimpleNamespace(**{method: lambda pod, node: function(pod, node, options)})

        _finish(function, replace(definition, make=make, doc=inspect.getdoc(function)), faults)
        return function

    return decorate


def _constructor(name: str, kind: type[Any], options: type[Any] | None) -> list[inspect.Parameter]:
    """The parameters of the constructor: none, or one that takes the setup."""
    parameters = list(inspect.signature(kind).parameters.values())
    required = [p for p in parameters if p.default is p.empty and p.kind not in (p.VAR_POSITIONAL, p.VAR_KEYWORD)]
    if len(required) > 1:
        raise DefinitionError(
            name, f"its constructor takes ({', '.join(p.name for p in parameters)}), want (setup) or nothing"
        )
    if options is not None and not parameters:
        raise DefinitionError(
            name, "it has options but its constructor takes nothing; write def __init__(self, setup: Setup[...])"
        )
    return parameters


def _wrong_class(kind: type[Any], definition: Definition) -> list[str]:
    faults = []
    for method in _ROW_METHODS:
        if method in definition.methods:
            function = getattr(kind, method)
            bound = function.__get__(object()) if inspect.isfunction(function) else function
            faults += wrong_signature(method, bound, _ARGUMENTS)
    if not definition.methods.intersection(_ROW_METHODS):
        faults.append("it has neither filter(self, pod, node) nor score(self, pod, node)")
    others = [
        method for method in METHODS.values() if method not in _ROW_METHODS and callable(getattr(kind, method, None))
    ]
    if others:
        faults.append(f"it has {', '.join(others)}, which work on all nodes at once; write it without row_plugin")
    return faults


def _finish(target: Any, definition: Definition, faults: list[str]) -> None:
    """Check what all forms share, and leave the plugin where `plugin_class` finds it."""
    wrong = [*wrong_name(definition.name), *faults]
    if definition.options is not None:
        wrong += wrong_options(definition.options)
    if definition.normalize and "score" not in definition.methods:
        wrong.append("normalize=True is for plugins that score")
    if definition.reverse and not definition.normalize:
        wrong.append("reverse=True turns normalized scores round, so it needs normalize=True")
    if wrong:
        raise DefinitionError(str(definition.name), "; ".join(wrong))
    made = adapter(definition)
    made.__module__ = target.__module__
    setattr(target, _MADE, made)
