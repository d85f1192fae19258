"""Check the fields of the results of third-party plugins. `plugin_runner` checks the type of the whole result."""

from collections.abc import Callable, Iterable, Mapping
from math import isnan
from numbers import Real
from typing import Any, Final

from extender.api.kinds.pod import Pod
from extender.framework.api_plan import ApiCall, ApiPlan
from extender.framework.binding_points import PermitResult, PostBindResult, UnreserveResult
from extender.framework.events import ActionType, ClusterEventWithHint, EventResource
from extender.framework.extension_points import PostFilterResult, PreFilterResult, PreScoreResult
from extender.framework.plugin_errors import describe_value, is_own_module
from extender.framework.status import Code, Status

_API_VERBS: Final = ("create", "update", "patch", "delete", "bind")

_FieldCheck = tuple[str, Callable[[Any], bool], str]
"""The name of a field, a function that returns whether a value is valid, and what is wanted."""


def _is_a(*types: type) -> Callable[[Any], bool]:
    return lambda value: isinstance(value, types)


def _is_sequence_of(item_type: type) -> Callable[[Any], bool]:
    return lambda value: isinstance(value, tuple | list) and all(isinstance(item, item_type) for item in value)


def _is_seconds(value: Any) -> bool:
    return not isinstance(value, bool) and isinstance(value, Real) and not isnan(value)


def _is_event(value: Any) -> bool:
    return value is None or (isinstance(value, tuple) and len(value) == 2 and all(isinstance(it, str) for it in value))


def _is_action(value: Any) -> bool:
    return isinstance(value, ActionType) and bool(value)


def _are_messages(value: Any) -> bool:
    return isinstance(value, Mapping) and all(isinstance(text, str) for item in value.items() for text in item)


_NONE: Final = type(None)
_STATUS: Final = ("status", _is_a(Status, _NONE), "a Status or None")
_TIMEOUT: Final = ("timeout", _is_seconds, "a number of seconds")
_PODS_TO_ACTIVATE: Final = (
    "pods_to_activate",
    lambda value: isinstance(value, tuple) and _is_sequence_of(Pod)(value),
    "a tuple of Pods",
)
_UIDS_TO_REJECT: Final = ("uids_to_reject", _are_messages, "a mapping of uids to messages")

_CHECKS: Final[Mapping[type, tuple[_FieldCheck, ...]]] = {
    Status: (
        ("code", _is_a(Code), "a Code"),
        ("reasons", lambda value: isinstance(value, tuple) and _is_sequence_of(str)(value), "a tuple of texts"),
    ),
    PreFilterResult: (
        _STATUS,
        (
            "node_names",
            lambda value: value is None or (isinstance(value, frozenset) and all(isinstance(it, str) for it in value)),
            "a frozenset of names or None",
        ),
    ),
    PreScoreResult: (_STATUS,),
    PostFilterResult: (
        ("status", _is_a(Status), "a Status"),
        ("nominated_node_name", _is_a(str, _NONE), "a name or None"),
        ("plan", lambda value: value is None or is_own_module(type(value).__module__), "an ApiPlan or None"),
        _UIDS_TO_REJECT,
    ),
    PermitResult: (
        _STATUS,
        _TIMEOUT,
        ("uids_to_allow", _is_sequence_of(str), "a tuple of uids"),
        _PODS_TO_ACTIVATE,
        _UIDS_TO_REJECT,
    ),
    UnreserveResult: (
        ("api_calls", _is_sequence_of(ApiCall), "a tuple of ApiCalls"),
        _PODS_TO_ACTIVATE,
        _UIDS_TO_REJECT,
    ),
    PostBindResult: (_PODS_TO_ACTIVATE,),
    ApiPlan: (
        ("calls", _is_sequence_of(ApiCall), "a tuple of ApiCalls"),
        ("wait_condition", lambda value: value is None or callable(value), "a function or None"),
        _TIMEOUT,
        ("timeout_status", _is_a(Status), "a Status"),
        ("event", _is_event, "a pair of texts or None"),
    ),
    ApiCall: (
        ("verb", _API_VERBS.__contains__, "create, update, patch, delete or bind"),
        ("kind", _is_a(str), "text"),
        ("namespace", _is_a(str), "text"),
        ("name", _is_a(str), "text"),
        ("body", _is_a(Mapping), "a mapping"),
    ),
    ClusterEventWithHint: (
        ("resource", _is_a(EventResource), "an EventResource"),
        ("action", _is_action, "an ActionType"),
        ("hint", lambda value: value is None or callable(value), "a function or None"),
        ("pre_hint", lambda value: value is None or callable(value), "a function or None"),
        ("find_concerned", lambda value: value is None or callable(value), "a function or None"),
    ),
}


def check_result_fields(result: Any) -> Any:
    """Return *result* of an extension point if its fields, and the fields of their values, have the right types.

    Raises:
        ValueError: a field has another type.
    """
    for name, is_valid, wanted in _CHECKS.get(type(result), ()):
        value = getattr(result, name)
        if not is_valid(value):
            raise ValueError(f"{type(result).__name__}.{name} is {describe_value(value)}, want {wanted}")
        for item in value if isinstance(value, tuple | list) else (value,):
            check_result_fields(item)
    return result


def check_events(result: Any) -> tuple[ClusterEventWithHint, ...]:
    """Return *result* of `events_to_register` as a tuple.

    Raises:
        ValueError: it is no iterable of events, or a field of an event has a wrong type.
    """
    is_iterable = isinstance(result, Iterable) and not isinstance(result, str)
    events = tuple(result) if is_iterable else (result,)
    if not is_iterable or not all(isinstance(event, ClusterEventWithHint) for event in events):
        wanted = "a tuple of ClusterEventWithHint(resource, action)"
        raise ValueError(f"events_to_register returned {describe_value(result)}, want {wanted}")
    for event in events:
        check_result_fields(event)
    return events


def check_unreserve_result(result: Any) -> Any:
    """Return *result* of `unreserve`.

    Raises:
        ValueError: it is neither None, an `UnreserveResult` nor a sequence of API calls, or a field has a wrong type.
    """
    if result is None or isinstance(result, UnreserveResult):
        return check_result_fields(result)
    if not _is_sequence_of(ApiCall)(result):
        raise ValueError(f"returned {describe_value(result)}, want an UnreserveResult, a tuple of ApiCalls or None")
    for api_call in result:
        check_result_fields(api_call)
    return result
