"""What plugins and the loop want written, as the calls it becomes."""

import asyncio
from typing import Any

import pytest

from extender.client.errors import ConflictError, NotFoundError
from extender.client.events import Event
from extender.client.transport import MERGE_PATCH, STRATEGIC_MERGE_PATCH
from extender.client.writes import Bound
from extender.framework.points import Write
from extender.loop.api_server import ApiServer, Voice
from extender.loop.conditions import eviction, nominated_only
from extender.loop.outside import Always
from extender.plugins.default_binder import DefaultBinder
from tests.build import a_cluster, a_pod

POD = a_pod("web")
BINDING = DefaultBinder().bind(a_cluster().snapshot().query(POD), "n1").writes[0]


class Calls:
    """Stands for the client's writer: writes down what it is asked, and answers as told."""

    def __init__(self, bound: Bound = Bound.HERE) -> None:
        self.made: list[tuple[str, tuple[Any, ...], dict[str, Any]]] = []
        self.bound = bound

    def __getattr__(self, name: str) -> Any:
        async def call(*args: Any, **given: Any) -> Any:
            self.made.append((name, args, given))
            return self.bound

        return call


def carried_out(write: Write, bound: Bound = Bound.HERE) -> tuple[str, tuple[Any, ...], dict[str, Any]]:
    calls = Calls(bound)
    asyncio.run(ApiServer(calls, Always()).carry_out(write))  # type: ignore[arg-type]
    return calls.made[0]


def test_a_binding_names_pod_uid_and_node_and_asks_for_leave_last() -> None:
    name, args, given = carried_out(BINDING)

    assert (name, args) == ("bind", ("default", "web", "uid-default-web", "n1"))
    assert given["may_act"]() is True


@pytest.mark.parametrize(
    ("bound", "error"),
    [(Bound.ELSEWHERE, ConflictError), (Bound.REPLACED, NotFoundError), (Bound.GONE, NotFoundError)],
)
def test_a_pod_that_was_not_bound_here_is_an_error(bound: Bound, error: type[Exception]) -> None:
    with pytest.raises(error, match="pod default/web"):
        carried_out(BINDING, bound)


def test_a_deletion_is_for_one_pod_only() -> None:
    name, args, given = carried_out(eviction(POD))

    assert (name, args, given["uid"]) == ("delete", ("Pod", "default", "web"), "uid-default-web")


@pytest.mark.parametrize("verb", ["create", "update", "patch", "delete"])
def test_whatever_is_written_asks_for_leave_last(verb: str) -> None:
    _, _, given = carried_out(Write(verb, "PersistentVolumeClaim", "default", "data", {}))

    assert given["allowed"]() is True


def test_pod_status_is_patched_by_strategic_merge_and_other_kinds_by_merge() -> None:
    """Conditions are a list with a key, which a plain merge would replace whole."""
    status = nominated_only(POD, "n1")
    assert status is not None
    name, args, given = carried_out(status)
    assert (name, args[:3]) == ("patch", ("Pod", "default", "web"))
    assert (given["subresource"], given["content_type"]) == ("status", STRATEGIC_MERGE_PATCH)

    claim = Write("patch", "PersistentVolumeClaim", "default", "data", {"metadata": {"annotations": {"a": "b"}}})
    name, args, given = carried_out(claim)
    assert (name, args[:3]) == ("patch", ("PersistentVolumeClaim", "default", "data"))
    assert (given["subresource"], given["content_type"]) == ("", MERGE_PATCH)


def test_an_unknown_verb_is_the_plugins_fault() -> None:
    with pytest.raises(ValueError, match="a plugin asks for the unknown verb 'paint'"):
        carried_out(Write("paint", "Pod", "default", "web", {}))


class Heard:
    """Stands for the client's recorder."""

    def __init__(self) -> None:
        self.events: list[Event] = []

    def record(self, event: Event) -> None:
        self.events.append(event)


def test_events_are_told_in_the_name_of_the_pods_scheduler() -> None:
    ours, theirs = Heard(), Heard()
    voice = Voice({"default-scheduler": ours, "other": theirs})  # type: ignore[dict-item]

    voice.event(
        a_pod("web", spec={"schedulerName": "other"}),
        warning=True, reason="FailedScheduling", action="Scheduling", note="0/1 ...",
    )  # fmt: skip

    assert ours.events == []
    (event,) = theirs.events
    assert (event.type, event.reason, event.action, event.note) == (
        "Warning",
        "FailedScheduling",
        "Scheduling",
        "0/1 ...",
    )
    assert (event.regarding.kind, event.regarding.name, event.regarding.uid) == ("Pod", "web", "uid-default-web")


def test_an_event_about_a_victim_is_told_in_the_name_of_the_preemptors_scheduler() -> None:
    """Source: H055."""
    ours, theirs = Heard(), Heard()
    voice = Voice({"default-scheduler": ours, "other": theirs})  # type: ignore[dict-item]

    voice.event(
        a_pod("low", spec={"schedulerName": "other"}),
        warning=False, reason="Preempted", action="Preempting", note="...", related=a_pod("high"),
        scheduler="default-scheduler",
    )  # fmt: skip

    (event,) = ours.events
    assert event.type == "Normal"
    assert event.related is not None
    assert event.related.name == "high"
