"""Whether a class can be a plugin, found out when it is loaded and not in the middle of a decision.

Looked at are its name, its methods with their parameters, its options and its constructor.
"""

import inspect
import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

import msgspec

from extender.config.nearest import hint
from extender.framework import group_points, points
from extender.framework.registry import METHODS, points_of

_NAME: Final = re.compile(r"[A-Za-z0-9]([A-Za-z0-9._/-]*[A-Za-z0-9])?")
_PROTOCOLS: Final = (
    points.PreEnqueue,
    points.QueueSort,
    points.PreFilter,
    points.KeptPreFilter,
    points.PreFilterExtensions,
    points.ApartFilter,
    points.Filter,
    points.KeptFilter,
    points.PostFilter,
    points.PreScore,
    points.KeptPreScore,
    points.Score,
    points.KeptScore,
    points.NormalizeScore,
    points.Reserve,
    points.Assuming,
    points.Permit,
    group_points.PlacementGenerate,
    group_points.PlacementScore,
    group_points.NormalizePlacementScore,
    points.PreBindPreFlight,
    points.PreBind,
    points.Bind,
    points.PostBind,
    points.EnqueueExtensions,
)
_TOGETHER: Final = (("reserve", "unreserve"), ("clone", "add_pod", "remove_pod"))
_WITH: Final = {
    "normalize": "score",
    "normalize_placement": "placement_score",
    "pre_filter_kept": "pre_filter",
    "pre_score_kept": "pre_score",
    "filter_key": "filter",
    "filter_apart": "clone",
    "score_key": "score",
    "assumed": "reserve",
    "clone": "pre_filter",
    "pre_bind_pre_flight": "pre_bind",
}
_POSITIONAL: Final = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)


def _wanted() -> Mapping[str, tuple[str, ...]]:
    found: dict[str, tuple[str, ...]] = {}
    for protocol in _PROTOCOLS:
        for name, member in vars(protocol).items():
            if inspect.isfunction(member) and not name.startswith("_"):
                found[name] = tuple(inspect.signature(member).parameters)[1:]
    return found


WANTED: Final = _wanted()
"""Every method the engine may call, and the parameters it is called with, `self` left out."""


class DefinitionError(TypeError):
    """A plugin that cannot be one: raised while its module is imported, names the plugin."""

    def __init__(self, plugin: str, message: str) -> None:
        super().__init__(f'plugin "{plugin}": {message}')


def wrong_with(plugin: object) -> list[str]:
    """Everything that keeps *plugin* from being a plugin, each in one line; empty if it can be one."""
    if not isinstance(plugin, type):
        return [
            f"want a class, or something decorated with filter_plugin, score_plugin or row_plugin, got {_kind(plugin)}"
        ]
    faults = [*_wrong_name(plugin), *_wrong_points(plugin)]
    for method, wanted in WANTED.items():
        if callable(getattr(plugin, method, None)):
            faults += wrong_signature(method, _unbound(plugin, method), wanted)
    return [*faults, *_wrong_company(plugin), *_wrong_options(plugin)]


def wrong_name(name: object) -> list[str]:
    """What is wrong with the *name* of a plugin."""
    if not isinstance(name, str):
        return [f"its name is {_kind(name)}, want text"]
    if not _NAME.fullmatch(name):
        return [f'its name is "{name}", want letters, digits and, between them, any of . _ - /']
    return []


def wrong_signature(
    name: str, function: Callable[..., Any], wanted: Sequence[str], *, any_names: bool = False
) -> list[str]:
    """What is wrong with *function*, `self` left out, that is to be called with the positional arguments *wanted*.

    Names may begin with underscores (an argument that is not used). With *any_names* only their number counts.
    """
    if inspect.iscoroutinefunction(function) or inspect.isasyncgenfunction(function):
        return [f"{name} is async; plugins answer at once, so write a plain def"]
    if inspect.isgeneratorfunction(function):
        return [f"{name} is a generator; return the whole answer instead of yielding it"]
    try:
        parameters = list(inspect.signature(function).parameters.values())
    except (TypeError, ValueError):
        return []  # not written in Python, so it cannot be looked into
    positional = [p for p in parameters if p.kind in _POSITIONAL]
    required = sum(p.default is p.empty for p in positional)
    rest = any(p.kind is p.VAR_POSITIONAL for p in parameters)
    unmet = any(p.kind is p.KEYWORD_ONLY and p.default is p.empty for p in parameters)
    fits = required <= len(wanted) and (rest or len(positional) >= len(wanted)) and not unmet
    named = any_names or all(p.name.lstrip("_") == want for p, want in zip(positional, wanted, strict=False))
    if fits and named:
        return []
    return [f"{name} takes {_written(parameters)}, want ({', '.join(wanted)})"]


def _written(parameters: Sequence[inspect.Parameter]) -> str:
    return str(inspect.Signature([p.replace(annotation=inspect.Parameter.empty) for p in parameters]))


def _unbound(plugin: type[Any], method: str) -> Callable[..., Any]:
    """The method as it is called on an instance: without `self`."""
    found = getattr(plugin, method)
    if inspect.isfunction(found) and not isinstance(inspect.getattr_static(plugin, method), staticmethod):
        found = found.__get__(object())
    bound: Callable[..., Any] = found
    return bound


def _wrong_name(plugin: type[Any]) -> list[str]:
    if getattr(plugin, "name", None) is None:
        return [f'the class {plugin.__name__} has no name; write name: ClassVar[str] = "{plugin.__name__}" in it']
    return wrong_name(plugin.name)


def _wrong_points(plugin: type[Any]) -> list[str]:
    if points_of(plugin):
        return []
    own = [name for name in vars(plugin) if not name.startswith("_") and name not in WANTED]
    meant = next((f"{name}{found}" for name in own if (found := hint(name, METHODS.values()))), "")
    close = f"; it has {meant}" if meant else ""
    return [f"it stands at no extension point: it has none of the methods {', '.join(METHODS.values())}{close}"]


def _wrong_company(plugin: type[Any]) -> list[str]:
    """Methods and attributes that only make sense together."""
    has = {name for name in WANTED if callable(getattr(plugin, name, None))}
    faults = []
    for group in _TOGETHER:
        missing = [name for name in group if name not in has]
        if missing and len(missing) < len(group):
            there = ", ".join(name for name in group if name in has)
            faults.append(f"it has {there} but not {', '.join(missing)}; they belong together")
    faults += [f"it has {name} but not {other}" for name, other in _WITH.items() if name in has and other not in has]
    for key, reads in (("filter_key", "filter_reads"), ("score_key", "score_reads")):
        if key in has and not isinstance(getattr(plugin, reads, None), points.Reads):
            faults.append(f"it has {key}, so it needs {reads}: ClassVar[Reads] = Reads.NODE (or Reads.PODS)")
    return faults


def _wrong_options(plugin: type[Any]) -> list[str]:
    options = getattr(plugin, "options", None)
    faults = [] if options is None else wrong_options(options)
    try:
        parameters = list(inspect.signature(plugin).parameters.values())
    except (TypeError, ValueError):
        return faults
    required = [p for p in parameters if p.default is p.empty and p.kind not in (p.VAR_POSITIONAL, p.VAR_KEYWORD)]
    if len(required) > 1 or any(p.kind is p.KEYWORD_ONLY for p in required):
        faults.append(f"its constructor takes {_written(parameters)}, want (setup) or nothing")
    elif options is not None and not parameters:
        faults.append("it has options but its constructor takes nothing; write def __init__(self, setup: Setup[...])")
    return faults


def wrong_options(options: object) -> list[str]:
    """What is wrong with *options* as the type of a plugin's options."""
    if not (isinstance(options, type) and issubclass(options, msgspec.Struct)):
        return [f"its options are {_kind(options)}, want a msgspec Struct class"]
    bare = [field.name for field in msgspec.structs.fields(options) if field.required]
    return [f"its options need a default for {', '.join(bare)}: a profile may leave them out"] if bare else []


def _kind(thing: object) -> str:
    if isinstance(thing, type):
        return f"the class {thing.__name__}"
    if inspect.isfunction(thing):
        return f"the plain function {thing.__name__}"
    return "None" if thing is None else f"{type(thing).__name__} {str(thing)[:60]}"
