"""A wrong field of a result of a third-party plugin is an error of the plugin that names the field."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from extender.framework.plugin_inputs import protect_inputs
from extender.framework.plugin_runner import PluginError, PluginRunner
from extender.plugin import (
    ALLOW,
    ActionType,
    ApiCall,
    ApiPlan,
    ClusterEvent,
    ClusterEventWithHint,
    Code,
    EventResource,
    PermitResult,
    PostBindResult,
    PostFilterResult,
    PreFilterResult,
    Status,
    UnreserveResult,
)
from tests.build import make_pod

NO = Status(Code.UNSCHEDULABLE, ("no",))
EVENT = ClusterEventWithHint(EventResource.NODE, ActionType.ADD)
MINUTE: Any = np.int64(60)
WANTED_EVENTS = "want a tuple of ClusterEventWithHint(resource, action)"


def make_calls(verb: Any = "patch", name: Any = "a", body: Any = None) -> tuple[ApiCall, ...]:
    return (ApiCall(verb, "Pod", "default", name, {} if body is None else body),)


def call(method: str, result: Any) -> Any:
    """Return what the method of a third-party plugin returns to its caller if the plugin returns *result*."""
    methods = {name: lambda _, *__: result for name in {method, "reserve"}}  # some methods need this one
    wrong: Any = type("Wrong", (), {"name": "Wrong", **methods})
    plugin = protect_inputs(wrong)()
    function: Callable[[], Any] = getattr(plugin, method)
    return PluginRunner().call(plugin, "Point", function)


WRONG: dict[str, tuple[str, Any, str]] = {
    "a code that is a number": ("reserve", Status(3, ("no",)), "Status.code is int 3, want a Code"),  # type: ignore[arg-type]
    "names that are no texts": (
        "pre_filter",
        PreFilterResult(node_names=frozenset((1,))),  # type: ignore[arg-type]
        "PreFilterResult.node_names is frozenset frozenset({1}), want a frozenset of names or None",
    ),
    "no status": (
        "post_filter",
        PostFilterResult(None),  # type: ignore[arg-type]
        "PostFilterResult.status is None, want a Status",
    ),
    "a nominated node that is a number": (
        "post_filter",
        PostFilterResult(NO, 5),  # type: ignore[arg-type]
        "PostFilterResult.nominated_node_name is int 5, want a name or None",
    ),
    "a plan that is text": (
        "post_filter",
        PostFilterResult(NO, plan="evict"),
        "PostFilterResult.plan is str 'evict', want an ApiPlan or None",
    ),
    "a call of a plan": (
        "post_filter",
        PostFilterResult(NO, plan=ApiPlan(make_calls(verb="apply"))),
        "ApiCall.verb is str 'apply', want create, update, patch, delete or bind",
    ),
    "a timeout that is text": (
        "permit",
        PermitResult(Status(Code.WAIT), timeout="5"),  # type: ignore[arg-type]
        "PermitResult.timeout is str '5', want a number of seconds",
    ),
    "a timeout that is no number": (
        "permit",
        PermitResult(Status(Code.WAIT), timeout=float("nan")),
        "PermitResult.timeout is float nan, want a number of seconds",
    ),
    "a uid in place of several": (
        "permit",
        PermitResult(uids_to_allow="uid"),  # type: ignore[arg-type]
        "PermitResult.uids_to_allow is str 'uid', want a tuple of uids",
    ),
    "the name of a pod": (
        "permit",
        PermitResult(pods_to_activate=("a",)),  # type: ignore[arg-type]
        "PermitResult.pods_to_activate is tuple ('a',), want a tuple of Pods",
    ),
    "uids without messages": (
        "permit",
        PermitResult(uids_to_reject=("uid",)),  # type: ignore[arg-type]
        "PermitResult.uids_to_reject is tuple ('uid',), want a mapping of uids to messages",
    ),
    "a uid with a status": (
        "post_filter",
        PostFilterResult(NO, uids_to_reject={"uid": NO}),  # type: ignore[dict-item]
        "PostFilterResult.uids_to_reject is dict {'uid': Status",
    ),
    "a call in a result of unreserve": (
        "unreserve",
        UnreserveResult(make_calls(name=7)),
        "ApiCall.name is int 7, want text",
    ),
    "uids in a result of unreserve": (
        "unreserve",
        UnreserveResult(uids_to_reject="uid"),  # type: ignore[arg-type]
        "UnreserveResult.uids_to_reject is str 'uid', want a mapping of uids to messages",
    ),
    "a pod in place of several": (
        "post_bind",
        PostBindResult(make_pod("a")),  # type: ignore[arg-type]
        "want a tuple of Pods",
    ),
    "a call in place of several": (
        "pre_bind",
        ApiPlan(make_calls()[0]),  # type: ignore[arg-type]
        "want a tuple of ApiCalls",
    ),
    "a name that is a number": ("pre_bind", ApiPlan(make_calls(name=7)), "ApiCall.name is int 7, want text"),
    "a body that is text": ("pre_bind", ApiPlan(make_calls(body="x")), "ApiCall.body is str 'x', want a mapping"),
    "an event that is text": (
        "pre_bind",
        ApiPlan(event="hello"),  # type: ignore[arg-type]
        "ApiPlan.event is str 'hello', want a pair of texts or None",
    ),
    "a status in a plan": (
        "bind",
        ApiPlan(timeout_status="late"),  # type: ignore[arg-type]
        "ApiPlan.timeout_status is str 'late', want a Status",
    ),
    "calls that are none": (
        "unreserve",
        [1],
        "returned list [1], want an UnreserveResult, a tuple of ApiCalls or None",
    ),
    "a call to undo": ("unreserve", make_calls(verb=""), "ApiCall.verb is str '', want create, update, patch, delete"),
    "no events": ("events_to_register", None, f"events_to_register returned None, {WANTED_EVENTS}"),
    "events that are text": ("events_to_register", "Pod", f"events_to_register returned str 'Pod', {WANTED_EVENTS}"),
    "an event in place of several": ("events_to_register", EVENT, WANTED_EVENTS),
    "an event without a hint": (
        "events_to_register",
        (ClusterEvent(EventResource.NODE, ActionType.ADD),),
        WANTED_EVENTS,
    ),
    "the name of a resource": (
        "events_to_register",
        (ClusterEventWithHint("Node", ActionType.ADD),),  # type: ignore[arg-type]
        "ClusterEventWithHint.resource is str 'Node', want an EventResource",
    ),
    "no action": (
        "events_to_register",
        (ClusterEventWithHint(EventResource.NODE, ActionType(0)),),
        "ClusterEventWithHint.action is ActionType <ActionType: 0>, want an ActionType",
    ),
    "a hint that is no function": (
        "events_to_register",
        (ClusterEventWithHint(EventResource.NODE, ActionType.ADD, 5),),  # type: ignore[arg-type]
        "ClusterEventWithHint.hint is int 5, want a function or None",
    ),
}


@pytest.mark.parametrize(("method", "result", "want"), WRONG.values(), ids=WRONG)
def test_a_wrong_field_is_named(method: str, result: Any, want: str) -> None:
    with pytest.raises(PluginError) as error:
        call(method, result)
    assert str(error.value).startswith('running Point plugin "Wrong": ')
    assert want in error.value.detail


@pytest.mark.parametrize(
    ("method", "result"),
    [
        ("reserve", None),
        ("permit", PermitResult(Status(Code.WAIT), timeout=60, uids_to_allow=("uid",))),
        ("permit", PermitResult(Status(Code.WAIT), timeout=MINUTE)),
        ("pre_bind", ApiPlan(make_calls(), timeout=MINUTE, event=("Waiting", "for a disk"))),
        ("pre_bind", ApiPlan(make_calls("create", "", {"metadata": {"generateName": "a-"}}))),
        ("post_filter", PostFilterResult(NO, "one", ApiPlan())),
        ("post_filter", PostFilterResult(NO, uids_to_reject={"uid": "the gang gave up"})),
        ("unreserve", make_calls()),
        ("unreserve", UnreserveResult(make_calls(), {"uid": "the gang gave up"}, (make_pod("a"),))),
        ("post_bind", PostBindResult((make_pod("a"),))),
        ("post_bind", None),
        ("unreserve", None),
    ],
)
def test_a_valid_result_is_returned_as_it_is(method: str, result: Any) -> None:
    assert call(method, result) is result


def test_the_events_of_a_generator_are_registered() -> None:
    assert call("events_to_register", (event for event in [EVENT])) == (EVENT,)


@pytest.mark.parametrize(
    "result", [ALLOW, PostFilterResult(NO), UnreserveResult()], ids=lambda result: type(result).__name__
)
def test_a_result_without_rejections_has_a_hash_and_cannot_be_changed(result: Any) -> None:
    """A plugin that added a uid to the constant ALLOW would reject the pod in all later calls."""
    assert {result: 1}[result] == 1
    with pytest.raises(TypeError, match="read-only"):
        result.uids_to_reject["uid"] = "gave up"
    assert result.uids_to_reject == {}
