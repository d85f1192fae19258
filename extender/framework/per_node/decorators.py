"""Decorators that turn a function or class into a plugin. The function or class filters or scores one node per call.

    @filter_plugin("GpuModel")
    def gpu_model(pod: Pod, node: NodeInfo) -> str | None:
        return None if "example.com/gpu-model" in node.labels else "node(s) lack a GPU model"

The decorators return the function or class unchanged, so that tests can call it; `unwrap_plugin` returns the plugin
class made from it.
"""

import inspect
from collections.abc import Callable
from dataclasses import replace
from types import SimpleNamespace
from typing import Any, Final, Protocol, TypeVar, overload

import msgspec

from extender.api.kinds.pod import Pod
from extender.framework.node_info import NodeInfo
from extender.framework.per_node.adapters import Cacheable, FilterReasons, PerNodeDefinition, make_plugin_class
from extender.framework.plugin_args import PluginArgs, takes_arguments
from extender.framework.plugin_validation import (
    DefinitionError,
    bind_method,
    validate_constructor,
    validate_name,
    validate_options,
    validate_signature,
    validate_spelling,
)
from extender.framework.profile_builder import EXTENSION_POINT_METHODS
from extender.framework.status import Code, Reason

_PLUGIN_CLASS: Final = "__extender_plugin__"
_PER_NODE_PARAMETERS: Final = ("pod", "node")
_PER_NODE_METHODS: Final = ("filter", "score")
_CALLED_METHODS: Final = (*_PER_NODE_METHODS, "events_to_register")


class PerNodeFilter(Protocol):
    """Filters one node."""

    def filter(self, pod: Pod, node: NodeInfo) -> FilterReasons:
        """Return None if the node can run the pod, else one reason or a tuple of reasons."""


class PerNodeScore(Protocol):
    """Scores one node."""

    def score(self, pod: Pod, node: NodeInfo) -> int:
        """Return a score from 0 to 100, or of at least 0 if scores are normalized."""


Options = TypeVar("Options", bound=msgspec.Struct)
FilterFunction = TypeVar("FilterFunction", bound=Callable[[Pod, NodeInfo], FilterReasons])
ScoreFunction = TypeVar("ScoreFunction", bound=Callable[[Pod, NodeInfo], int])
PerNodeClass = TypeVar("PerNodeClass", bound="type[PerNodeFilter | PerNodeScore]")
FilterWithOptions = Callable[[Pod, NodeInfo, Options], FilterReasons]
ScoreWithOptions = Callable[[Pod, NodeInfo, Options], int]


def unresolvable_reason(text: str) -> Reason:
    """Return a reason with the code UNRESOLVABLE: preemption skips the node."""
    return Reason(text, Code.UNRESOLVABLE)


@overload
def filter_plugin(name: str, *, cacheable: Cacheable = False) -> Callable[[FilterFunction], FilterFunction]: ...
@overload
def filter_plugin(
    name: str, *, options: type[Options], cacheable: Cacheable = False
) -> Callable[[FilterWithOptions[Options]], FilterWithOptions[Options]]: ...
def filter_plugin(name: str, *, options: type[Any] | None = None, cacheable: Cacheable = False) -> Callable[[Any], Any]:
    """Decorate a function of a pod and a node, to turn it into a Filter plugin.

    Args:
        name: the plugin's name in the configuration.
        options: a msgspec Struct with defaults; the function then takes the options as its third argument.
        cacheable: whether results are cached across scheduling cycles. With True, results must depend only on the node,
            the pods on it and the pod's signature (namespace, labels, owners, spec). The function then receives a pod
            without name, uid, annotations and times. Instead of True, *cacheable* may be a function that returns a
            cache key for a pod; if it returns None, the result is not cached.

    Raises:
        DefinitionError: the name, the options or the function are invalid for a plugin.
    """
    return _make_function_decorator(
        PerNodeDefinition(name, _raise_not_implemented, frozenset({"filter"}), options, cacheable)
    )


@overload
def score_plugin(
    name: str, *, cacheable: Cacheable = False, normalize: bool = False, reverse: bool = False
) -> Callable[[ScoreFunction], ScoreFunction]: ...
@overload
def score_plugin(
    name: str, *, options: type[Options], cacheable: Cacheable = False, normalize: bool = False, reverse: bool = False
) -> Callable[[ScoreWithOptions[Options]], ScoreWithOptions[Options]]: ...
def score_plugin(
    name: str,
    *,
    options: type[Any] | None = None,
    cacheable: Cacheable = False,
    normalize: bool = False,
    reverse: bool = False,
) -> Callable[[Any], Any]:
    """Decorate a function of a pod and a node, to turn it into a Score plugin.

    Args:
        name: the plugin's name in the configuration.
        options: as for `filter_plugin`.
        cacheable: as for `filter_plugin`.
        normalize: whether scores are scaled to 0..100 in proportion to the maximum. Such scores must be at least 0;
            other scores must be 0 to 100.
        reverse: whether normalized scores are reversed: 0 becomes 100, and the maximum becomes 0.

    Raises:
        DefinitionError: the name, the options or the function are invalid for a plugin.
    """
    methods = frozenset({"score"})
    return _make_function_decorator(
        PerNodeDefinition(name, _raise_not_implemented, methods, options, cacheable, normalize, reverse)
    )


def per_node_plugin(
    name: str,
    *,
    options: type[msgspec.Struct] | None = None,
    cacheable: Cacheable = False,
    normalize: bool = False,
    reverse: bool = False,
) -> Callable[[PerNodeClass], PerNodeClass]:
    """Decorate a class with a method `filter(pod, node)` or `score(pod, node)`, or both, to turn it into a plugin.

    The class may have a method `events_to_register()`. Without this method, most events requeue the pods that
    the plugin rejected.

    Args:
        name: the plugin's name in the configuration.
        options: a msgspec Struct with defaults; the constructor then takes a `PluginArgs` with these `options`.
        cacheable: as for `filter_plugin`; applies to both methods.
        normalize: as for `score_plugin`.
        reverse: as for `score_plugin`.

    Raises:
        DefinitionError: the name, the options or the class are invalid for a plugin.
    """
    _require_name(name, "per_node_plugin")

    def decorate(cls: PerNodeClass) -> PerNodeClass:
        if not isinstance(cls, type):
            raise DefinitionError(
                name, "per_node_plugin decorates classes; use filter_plugin or score_plugin for a function"
            )
        methods = frozenset(method for method in _CALLED_METHODS if callable(getattr(cls, method, None)))
        create = cls if takes_arguments(cls) else (lambda _: cls())
        doc = inspect.getdoc(cls)
        definition = PerNodeDefinition(name, create, methods, options, cacheable, normalize, reverse, doc)
        _attach_plugin_class(cls, definition, _validate_class(cls, definition))
        return cls

    return decorate


def unwrap_plugin(plugin: object) -> object:
    """Return the plugin class of a decorated function or class. Any other object is returned unchanged."""
    attributes = getattr(plugin, "__dict__", {})
    return attributes.get(_PLUGIN_CLASS, plugin)


def make_uncacheable(plugin: object) -> object:
    """Return the plugin class of a decorated function or class without `cacheable`. Any other object is unchanged."""
    definition = getattr(unwrap_plugin(plugin), "definition", None)
    if not isinstance(definition, PerNodeDefinition):
        return plugin
    return make_plugin_class(replace(definition, cacheable=False))


def _require_name(name: object, decorator: str) -> None:
    """Check that the decorator was called with a name.

    Raises:
        DefinitionError: the decorator was written without parentheses.
    """
    if callable(name):
        message = f'the decorator needs the name of the plugin: write @{decorator}("Name")'
        raise DefinitionError(getattr(name, "__name__", str(name)), message)


def _raise_not_implemented(_: PluginArgs[Any]) -> Any:
    raise NotImplementedError


def _make_function_decorator(definition: PerNodeDefinition) -> Callable[[Any], Any]:
    method = next(iter(definition.methods))
    _require_name(definition.name, f"{method}_plugin")
    parameters = _PER_NODE_PARAMETERS if definition.options is None else (*_PER_NODE_PARAMETERS, "options")

    def decorate(function: Callable[..., Any]) -> Callable[..., Any]:
        if isinstance(function, type) or inspect.ismethod(function) or not callable(function):
            raise DefinitionError(
                definition.name, f"{method}_plugin decorates functions; use per_node_plugin for a class"
            )
        function_name = getattr(function, "__name__", method)
        errors = validate_signature(function_name, function, parameters, ignore_names=True)

        def create(args: PluginArgs[Any]) -> Any:
            if definition.options is None:
                return SimpleNamespace(**{method: function})
            options = args.options
            return SimpleNamespace(**{method: lambda pod, node: function(pod, node, options)})

        _attach_plugin_class(function, replace(definition, create=create, doc=inspect.getdoc(function)), errors)
        return function

    return decorate


def _validate_class(cls: type[Any], definition: PerNodeDefinition) -> list[str]:
    errors = []
    for method in _PER_NODE_METHODS:
        if method in definition.methods:
            errors += validate_signature(method, bind_method(cls, method), _PER_NODE_PARAMETERS)
    if not definition.methods.intersection(_PER_NODE_METHODS):
        errors.append("it has neither filter(self, pod, node) nor score(self, pod, node)")
    methods = (method for method in EXTENSION_POINT_METHODS.values() if callable(getattr(cls, method, None)))
    other_methods = [method for method in methods if method not in _PER_NODE_METHODS]
    if other_methods:
        names = ", ".join(other_methods)
        errors.append(f"it has {names}, which only a vectorized class can have; write it without per_node_plugin")
    if callable(getattr(cls, "normalize_score", None)):
        errors.append("it has normalize_score, which works on all nodes at once; write normalize=True instead")
    errors += validate_spelling(cls, _CALLED_METHODS)
    return [*errors, *validate_constructor(cls, has_options=definition.options is not None)]


def _attach_plugin_class(target: Any, definition: PerNodeDefinition, errors: list[str]) -> None:
    """Validate the definition of a function or class, and attach the plugin class to this *target*.

    Raises:
        DefinitionError: the definition is invalid, or there are *errors* already.
    """
    errors = [*validate_name(definition.name), *errors]
    if definition.options is not None:
        errors += validate_options(definition.options)
    cacheable: object = definition.cacheable
    if not (isinstance(cacheable, bool) or callable(cacheable)):
        errors.append(f"its cacheable is {cacheable!r}, want True, False or a function that returns a key")
    if definition.normalize and "score" not in definition.methods:
        errors.append("normalize=True is for plugins that score")
    if definition.reverse and not definition.normalize:
        errors.append("reverse=True reverses normalized scores, so it needs normalize=True")
    if errors:
        raise DefinitionError(str(definition.name), "; ".join(errors))
    plugin_class = make_plugin_class(definition)
    plugin_class.__module__ = plugin_class.defining_module = target.__module__
    setattr(target, _PLUGIN_CLASS, plugin_class)
