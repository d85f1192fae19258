"""The client calls for the API calls of plugins and the scheduler."""

import asyncio
from dataclasses import replace
from typing import Any

import pytest

from extender.api.codec import DecodeError
from extender.client.errors import ApiError, ConflictError, FencedError, NotFoundError, ServerError, UnreachableError
from extender.client.events import Event
from extender.client.transport import MERGE_PATCH, STRATEGIC_MERGE_PATCH
from extender.client.writer import BindOutcome
from extender.framework.api_plan import ApiCall
from extender.plugins.default_binder import DefaultBinder
from extender.scheduler.api_writer import ApiWriter, EventRecorder, PodEvent, _get_resource_version
from extender.scheduler.status_patches import make_delete_call, make_nomination_patch
from tests.build import make_cluster, make_pod
from tests.unit.client.virtual_time import run as run_virtually

POD = make_pod("web")
BINDING = DefaultBinder().bind(make_cluster().snapshot().make_pod_info(POD), "n1").calls[0]


class FakeWriter:
    """Records calls of the client's writer and returns a given outcome."""

    def __init__(self, outcome: BindOutcome = BindOutcome.BOUND) -> None:
        self.calls: list[tuple[str, tuple[Any, ...], dict[str, Any]]] = []
        self.outcome = outcome

    def __getattr__(self, name: str) -> Any:
        async def call(*args: Any, **kwargs: Any) -> Any:
            self.calls.append((name, args, kwargs))
            return self.outcome

        return call


def call_writer(
    api_call: ApiCall, outcome: BindOutcome = BindOutcome.BOUND
) -> tuple[str, tuple[Any, ...], dict[str, Any]]:
    writer = FakeWriter(outcome)
    asyncio.run(ApiWriter(writer).call(api_call))  # type: ignore[arg-type]
    return writer.calls[0]


def test_a_binding_names_pod_uid_and_node_and_checks_leadership_last() -> None:
    name, args, kwargs = call_writer(BINDING)

    assert (name, args[:2]) == ("bind", ("default", "web"))
    assert (args[2]["metadata"]["uid"], args[2]["target"]["name"]) == ("uid-default-web", "n1")
    assert kwargs["is_allowed"]() is True


@pytest.mark.parametrize(
    ("outcome", "error", "message"),
    [
        (BindOutcome.ON_OTHER_NODE, ConflictError, "pod default/web is on another node already"),
        (BindOutcome.POD_REPLACED, NotFoundError, "pod default/web was deleted and recreated"),
        (BindOutcome.POD_GONE, NotFoundError, 'pods "web" not found'),
    ],
)
def test_a_pod_that_was_not_bound_here_is_an_error(outcome: BindOutcome, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        call_writer(BINDING, outcome)


def test_a_deletion_is_for_one_pod_only() -> None:
    name, args, kwargs = call_writer(make_delete_call(POD))

    assert (name, args, kwargs["uid"]) == ("delete", ("Pod", "default", "web"), "uid-default-web")


@pytest.mark.parametrize("verb", ["create", "update", "patch", "delete"])
def test_every_write_checks_leadership_last(verb: str) -> None:
    _, args, kwargs = call_writer(ApiCall(verb, "PersistentVolumeClaim", "default", "data", {}))

    is_allowed = kwargs["is_allowed"] if verb == "delete" else kwargs.get("options", args[-1]).is_allowed
    assert is_allowed() is True


def test_pod_status_is_patched_by_strategic_merge_and_other_kinds_by_merge() -> None:
    """A merge patch would replace the list of conditions."""
    status = make_nomination_patch(POD, "n1")
    assert status is not None
    name, args, kwargs = call_writer(status)
    assert (name, args[:3]) == ("patch", ("Pod", "default", "web"))
    assert (kwargs["options"].subresource, kwargs["content_type"]) == ("status", STRATEGIC_MERGE_PATCH)

    claim = ApiCall("patch", "PersistentVolumeClaim", "default", "data", {"metadata": {"annotations": {"a": "b"}}})
    name, args, kwargs = call_writer(claim)
    assert (name, args[:3]) == ("patch", ("PersistentVolumeClaim", "default", "data"))
    assert (kwargs["options"].subresource, kwargs["content_type"]) == ("", MERGE_PATCH)


def test_an_unknown_verb_is_an_error() -> None:
    with pytest.raises(ValueError, match="unknown verb 'paint' in an API call of a plugin"):
        call_writer(ApiCall("paint", "Pod", "default", "web", {}))


class ScriptedWriter:
    """Answers patches and reads of an object with scripted responses; records the methods."""

    def __init__(self, *responses: bytes | ApiError) -> None:
        self.responses, self.methods = list(responses), list[str]()

    async def patch(self, *_: Any, **__: Any) -> bytes:
        return self._respond("patch")

    async def get(self, *_: Any, **__: Any) -> bytes:
        return self._respond("get")

    def _respond(self, method: str) -> bytes:
        self.methods.append(method)
        response = self.responses.pop(0)
        if isinstance(response, ApiError):
            raise response
        return response


LOST = UnreachableError("Server disconnected", maybe_sent=True)
REFUSED = UnreachableError("connection refused", maybe_sent=False)
FENCED = FencedError("the lease is lost")
CONFLICT = ConflictError("the object has been modified", 409)
PAGE = b"<html>502 Bad Gateway</html>"


def make_object(resource_version: str) -> bytes:
    return b'{"metadata":{"name":"gpu","resourceVersion":"%s"}}' % resource_version.encode()


def write_claim(*responses: bytes | ApiError, is_resent: bool = True) -> tuple[list[str], list[str], ApiError | None]:
    """Patch a claim; return the methods that were sent, the versions that were written, and the error."""
    writer, versions, error = ScriptedWriter(*responses), list[str](), None
    api_call = ApiCall(
        "patch", "ResourceClaim", "default", "gpu", {}, "status", on_written=versions.append, is_resent=is_resent
    )
    try:
        run_virtually(ApiWriter(writer).call(api_call))  # type: ignore[arg-type]
    except ApiError as caught:
        error = caught
    assert not writer.responses
    return writer.methods, versions, error


@pytest.mark.parametrize(
    ("responses", "methods", "versions", "error"),
    [
        ([make_object("8")], ["patch"], ["8"], None),
        ([LOST, make_object("8")], ["patch", "patch"], ["8"], None),
        ([LOST, REFUSED, LOST, make_object("8")], ["patch"] * 4, ["8"], None),
        ([PAGE, make_object("8")], ["patch", "patch"], ["8"], None),
        ([ServerError("etcd timed out", 500), make_object("8")], ["patch", "patch"], ["8"], None),
        ([LOST, CONFLICT, make_object("9")], ["patch", "patch", "get"], ["9"], CONFLICT),
        ([LOST, CONFLICT, LOST, CONFLICT, make_object("9")], ["patch", "patch", "get", "patch", "get"], ["9"],
         CONFLICT),
        ([LOST, CONFLICT, ServerError("x", 500), CONFLICT, make_object("9")], ["patch", "patch", "get", "patch", "get"],
         ["9"], CONFLICT),
        ([LOST, FENCED], ["patch", "patch"], [], FENCED),
        ([REFUSED], ["patch"], [], REFUSED),
        ([CONFLICT], ["patch"], [], CONFLICT),
    ],
    ids=["written", "lost once", "lost three times", "a page of a proxy", "an error of the server", "rejected",
         "rejected, then not readable", "rejected, then an error", "the lease is lost", "not sent", "rejected at once"],
)  # fmt: skip
def test_a_write_of_unknown_outcome_is_sent_again_until_the_server_answers(
    responses: list[bytes | ApiError], methods: list[str], versions: list[str], error: ApiError | None
) -> None:
    assert write_claim(*responses) == (methods, versions, error)


def test_a_rejected_write_of_an_object_that_is_gone_has_no_version() -> None:
    gone = NotFoundError("not found", 404)
    assert write_claim(LOST, gone, gone) == (["patch", "patch", "get"], [], gone)


def test_a_write_that_must_not_be_repeated_is_sent_once() -> None:
    assert write_claim(LOST, is_resent=False) == (["patch"], [], LOST)


def write_changed_claim(*responses: bytes | ApiError) -> tuple[list[str], list[str], str]:
    """Patch a claim that was changed meanwhile; return the methods that were sent, the versions, and the error.

    After a conflict another patch is made first. Version 13 is an error.
    """
    writer, versions = ScriptedWriter(*responses), list[str]()
    other_call = ApiCall("patch", "ResourceClaim", "default", "gpu", {}, on_written=versions.append)

    def adapt(current_object: bytes) -> tuple[ApiCall, ...] | str:
        if current_object == PAGE:
            raise DecodeError("", "no JSON")
        return "the claim was allocated" if current_object == make_object("13") else (other_call,)

    api_call = replace(other_call, subresource="status", is_resent=True, on_conflict=adapt)
    message = ""
    try:
        run_virtually(ApiWriter(writer).call(api_call))  # type: ignore[arg-type]
    except ApiError as error:
        message = str(error)
    assert not writer.responses
    return writer.methods, versions, message


RETRY = [make_object("8"), make_object("9")]
AFTER_CONFLICT = "update ResourceClaim default/gpu after conflict: "


@pytest.mark.parametrize(
    ("responses", "methods", "versions", "message"),
    [
        ([CONFLICT, *RETRY, make_object("10")], "patch get patch patch", "9 10", ""),
        ([*[CONFLICT, *RETRY] * 2, make_object("10")], "patch get patch patch get patch patch", "9 9 10", ""),
        ([CONFLICT, *RETRY, LOST, make_object("10")], "patch get patch patch patch", "9 10", ""),
        ([*[CONFLICT, *RETRY] * 4, CONFLICT], "patch get patch " * 4 + "patch", "9 9 9 9", str(CONFLICT)),
        ([CONFLICT, make_object("13")], "patch get", "13", "the claim was allocated"),
        ([CONFLICT, PAGE], "patch get", "", AFTER_CONFLICT + "no JSON"),
        ([CONFLICT, LOST], "patch get", "", AFTER_CONFLICT + str(LOST)),
        ([CONFLICT, make_object("8"), LOST], "patch get patch", "", AFTER_CONFLICT + str(LOST)),
    ],
    ids=["written", "changed twice", "lost", "changed five times", "cannot be written", "no object", "cannot be read",
         "another call fails"],
)  # fmt: skip
def test_a_write_is_adapted_to_the_current_object_after_a_conflict(
    responses: list[bytes | ApiError], methods: str, versions: str, message: str
) -> None:
    assert write_changed_claim(*responses) == (methods.split(), versions.split(), message)


class FakeBroadcaster:
    """Records events."""

    def __init__(self) -> None:
        self.events: list[Event] = []

    def record(self, event: Event) -> None:
        self.events.append(event)


def test_events_are_recorded_for_the_pods_scheduler() -> None:
    default_broadcaster, other_broadcaster = FakeBroadcaster(), FakeBroadcaster()
    recorder = EventRecorder({"default-scheduler": default_broadcaster, "other": other_broadcaster})  # type: ignore[dict-item]

    recorder.event(
        make_pod("web", spec={"schedulerName": "other"}),
        PodEvent("FailedScheduling", "Scheduling", "0/1 ...", warning=True),
    )

    assert default_broadcaster.events == []
    (event,) = other_broadcaster.events
    assert (event.type, event.reason, event.action, event.note) == (
        "Warning",
        "FailedScheduling",
        "Scheduling",
        "0/1 ...",
    )
    assert (event.regarding.kind, event.regarding.name, event.regarding.uid) == ("Pod", "web", "uid-default-web")


def test_an_event_about_a_victim_is_recorded_for_the_preemptors_scheduler() -> None:
    """Source: pkg/scheduler/framework/preemption/executor.go, NewExecutor (1.36)."""
    default_broadcaster, other_broadcaster = FakeBroadcaster(), FakeBroadcaster()
    recorder = EventRecorder({"default-scheduler": default_broadcaster, "other": other_broadcaster})  # type: ignore[dict-item]

    recorder.event(
        make_pod("low", spec={"schedulerName": "other"}),
        PodEvent("Preempted", "Preempting", "...", related=make_pod("high")),
        "default-scheduler",
    )

    (event,) = default_broadcaster.events
    assert event.type == "Normal"
    assert event.related is not None
    assert event.related.name == "high"


def test_the_resource_version_of_an_object_with_deeply_nested_managed_fields_is_read() -> None:
    managed_fields = b"[" * 5_000 + b"]" * 5_000
    assert _get_resource_version(b'{"metadata":{"resourceVersion":"7","managedFields":%b}}' % managed_fields) == "7"
