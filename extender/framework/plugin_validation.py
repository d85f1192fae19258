"""Validate a plugin class when it is loaded: name, methods, parameters of the methods, options and constructor."""

import inspect
import re
from collections.abc import Callable, Iterable, Sequence
from typing import Any, Final

import msgspec

from extender.config.did_you_mean import did_you_mean
from extender.framework.extension_points import DependsOn
from extender.framework.plugin_args import takes_arguments
from extender.framework.plugin_errors import plugin_exceptions
from extender.framework.plugin_inputs import METHOD_PARAMETERS
from extender.framework.profile_builder import EXTENSION_POINT_METHODS, get_extension_points

_NAME_PATTERN: Final = re.compile(r"[A-Za-z0-9]([A-Za-z0-9._/-]*[A-Za-z0-9])?")
_METHOD_GROUPS: Final = (("reserve", "unreserve"), ("clone", "add_pod", "remove_pod"))
_REQUIRED_METHODS: Final = {
    "normalize_score": "score",
    "normalize_placement_score": "score_placement",
    "pre_filter_is_cacheable": "pre_filter",
    "pre_score_is_cacheable": "pre_score",
    "filter_cache_key": "filter",
    "apply_pod_changes": "clone",
    "score_cache_key": "score",
    "make_assumed_pod": "reserve",
    "clone": "pre_filter",
    "pre_bind_pre_flight": "pre_bind",
}
_POSITIONAL: Final = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)


class DefinitionError(TypeError):
    """A class or function that cannot be a plugin; raised while its module is imported."""

    def __init__(self, plugin: str, message: str) -> None:
        super().__init__(f'plugin "{plugin}": {message}')


def validate_plugin(plugin: object) -> list[str]:
    """Return all errors of *plugin*, each in one line; empty if it is valid."""
    if not isinstance(plugin, type):
        decorators = "filter_plugin, score_plugin or per_node_plugin"
        return [f"want a class, or something decorated with {decorators}, got {_describe(plugin)}"]
    errors = [*_validate_name_attribute(plugin), *_validate_extension_points(plugin)]
    for method, parameters in METHOD_PARAMETERS.items():
        if callable(getattr(plugin, method, None)):
            errors += validate_signature(method, bind_method(plugin, method), parameters)
    errors += _validate_method_groups(plugin)
    options = getattr(plugin, "options", None)
    if options is not None:
        errors += validate_options(options)
    return [*errors, *validate_constructor(plugin, has_options=options is not None)]


def validate_name(name: object) -> list[str]:
    """Return the errors of a plugin's *name*."""
    if not isinstance(name, str):
        return [f"its name is {_describe(name)}, want text"]
    if not _NAME_PATTERN.fullmatch(name):
        return [f'its name is "{name}", want letters, digits and, between them, any of . _ - /']
    return []


def validate_signature(
    name: str, function: Callable[..., Any], expected_parameters: Sequence[str], *, ignore_names: bool = False
) -> list[str]:
    """Return the errors of *function*, which is called with *expected_parameters* as positional arguments.

    *function* is a function or a bound method, without the parameter `self`. Its names of unused parameters may start
    with underscores. With *ignore_names*, other names are accepted, but not the expected ones in another order.
    """
    if inspect.iscoroutinefunction(function) or inspect.isasyncgenfunction(function):
        return [f"{name} is async; plugins return at once, so write a plain def"]
    if inspect.isgeneratorfunction(function):
        return [f"{name} is a generator; return the whole result instead of yielding it"]
    try:
        parameters = list(inspect.signature(function).parameters.values())
    except (TypeError, ValueError):
        return []  # functions written in C have no signature
    positional_parameters = [param for param in parameters if param.kind in _POSITIONAL]
    required_count = sum(param.default is param.empty for param in positional_parameters)
    has_varargs = any(param.kind is param.VAR_POSITIONAL for param in parameters)
    has_required_keyword = any(
        param.kind is param.KEYWORD_ONLY and param.default is param.empty for param in parameters
    )
    accepts_arguments = (
        required_count <= len(expected_parameters)
        and (has_varargs or len(positional_parameters) >= len(expected_parameters))
        and not has_required_keyword
    )
    names = [param.name.lstrip("_") for param in positional_parameters[: len(expected_parameters)]]
    names_match = names == list(expected_parameters)[: len(names)]
    if ignore_names:
        names_match = names_match or sorted(names) != sorted(expected_parameters)
    if accepts_arguments and names_match:
        return []
    return [f"{name} takes {_format_parameters(parameters)}, want ({', '.join(expected_parameters)})"]


def _format_parameters(parameters: Sequence[inspect.Parameter]) -> str:
    return str(inspect.Signature([param.replace(annotation=inspect.Parameter.empty) for param in parameters]))


def bind_method(plugin: type[Any], method: str) -> Callable[..., Any]:
    """Return a bound method of *plugin*, so that its signature has no parameter `self`."""
    function = getattr(plugin, method)
    if inspect.isfunction(function) and not isinstance(inspect.getattr_static(plugin, method), staticmethod):
        function = function.__get__(object())
    bound_method: Callable[..., Any] = function
    return bound_method


def _validate_name_attribute(plugin: type[Any]) -> list[str]:
    if getattr(plugin, "name", None) is None:
        return [f'the class {plugin.__name__} has no name; write name: ClassVar[str] = "{plugin.__name__}" in it']
    return validate_name(plugin.name)


def _validate_extension_points(plugin: type[Any]) -> list[str]:
    methods = EXTENSION_POINT_METHODS.values()
    if get_extension_points(plugin):
        return validate_spelling(plugin, (*methods, *METHOD_PARAMETERS))
    own_names = [name for name in vars(plugin) if not name.startswith("_") and name not in METHOD_PARAMETERS]
    suggestion = next((f"; it has {name}{hint}" for name in own_names if (hint := did_you_mean(name, methods))), "")
    return [f"it implements no extension point: it has none of the methods {', '.join(methods)}{suggestion}"]


def validate_spelling(plugin: type[Any], methods: Iterable[str]) -> list[str]:
    """Return an error for each method of *plugin* that differs from one of *methods* only in case and underscores."""
    missing_methods = {_get_letters(method): method for method in methods if not hasattr(plugin, method)}
    return [
        f'it has {name}, which is never called; did you mean "{missing_methods[_get_letters(name)]}"?'
        for name, _ in inspect.getmembers_static(plugin, _is_method)
        if not name.startswith("_") and _get_letters(name) in missing_methods
    ]


def _is_method(member: object) -> bool:
    return inspect.isfunction(member) or isinstance(member, (staticmethod, classmethod))


def _get_letters(name: str) -> str:
    return name.replace("_", "").lower()


def _validate_method_groups(plugin: type[Any]) -> list[str]:
    """Return an error for each method whose required methods or attributes are missing."""
    implemented_methods = {name for name in METHOD_PARAMETERS if callable(getattr(plugin, name, None))}
    errors = []
    for group in _METHOD_GROUPS:
        missing = [name for name in group if name not in implemented_methods]
        if missing and len(missing) < len(group):
            names = ", ".join(name for name in group if name in implemented_methods)
            errors.append(f"it has {names} but not {', '.join(missing)}; write all of them or none")
    errors += [
        f"it has {name} but not {required}"
        for name, required in _REQUIRED_METHODS.items()
        if name in implemented_methods and required not in implemented_methods
    ]
    for key, attribute in (("filter_cache_key", "filter_depends_on"), ("score_cache_key", "score_depends_on")):
        if key in implemented_methods and not isinstance(getattr(plugin, attribute, None), DependsOn):
            declaration = f"{attribute}: ClassVar[DependsOn] = DependsOn.NODE (or DependsOn.NODE_AND_PODS)"
            errors.append(f"it has {key}, so it needs {declaration}")
    return errors


def validate_constructor(plugin: type[Any], *, has_options: bool) -> list[str]:
    """Return the errors of the constructor of *plugin*, which takes the plugin's arguments or nothing."""
    try:
        parameters = list(inspect.signature(plugin).parameters.values())
    except (TypeError, ValueError):
        return []
    required_parameters = [
        param
        for param in parameters
        if param.default is param.empty and param.kind not in (param.VAR_POSITIONAL, param.VAR_KEYWORD)
    ]
    if len(required_parameters) > 1 or any(param.kind is param.KEYWORD_ONLY for param in required_parameters):
        return [f"its constructor takes {_format_parameters(parameters)}, want (args) or nothing"]
    if has_options and not takes_arguments(plugin):
        declaration = "def __init__(self, args: PluginArgs[...])"
        return [f"it has options but its constructor takes nothing; write {declaration}"]
    return []


def validate_options(options: object) -> list[str]:
    """Return the errors of *options* as the type of a plugin's options."""
    if not (isinstance(options, type) and issubclass(options, msgspec.Struct)):
        return [f"its options are {_describe(options)}, want a msgspec Struct class"]
    try:
        msgspec.json.Decoder(options)
    except plugin_exceptions() as error:
        return [f"the types of its options are invalid: {type(error).__name__}: {error}"]
    names = [field.name for field in msgspec.structs.fields(options) if field.required]
    return [f"its options need a default for {', '.join(names)}: a profile may omit them"] if names else []


def _describe(value: object) -> str:
    if isinstance(value, type):
        return f"the class {value.__name__}"
    if inspect.isfunction(value):
        return f"the plain function {value.__name__}"
    return "None" if value is None else f"{type(value).__name__} {str(value)[:60]}"
