"""Extenders that fail: an ignorable one is skipped, else the attempt fails with the reason."""

from typing import Any

import pytest

from extender.client.extender_transport import MAX_RESPONSE_BYTES
from extender.plugins.default_binder import DefaultBinder
from tests.build import make_node, make_pod
from tests.unit.client.scripted_server import CUT, SILENCE, Reply, Stream
from tests.unit.cycle.fakes import FakeScore, make_profile
from tests.unit.scheduler.builders import SchedulerHarness
from tests.unit.scheduler.extender_harness import FILTER, ExtenderHarness, filter_response, run_with_extenders

HUGE = Stream([b" " * (1 << 20)] * (MAX_RESPONSE_BYTES // (1 << 20) + 1))
DRIP = Stream([step for _ in range(100) for step in (b" ", 1.0)])

FAULTS: dict[str, tuple[Any, str]] = {
    "no answer": (
        SILENCE,
        'Post "{url}": context deadline exceeded (Client.Timeout exceeded while awaiting headers)',
    ),
    "a slow drip": (DRIP, 'Post "{url}": context deadline exceeded (Client.Timeout exceeded while reading body)'),
    "a fault of its own": (Reply(500, {"NodeNames": ["n1"]}), "failed filter with extender at URL {url}, code 500"),
    "not quite 200": (Reply(201, {"NodeNames": ["n1"]}), "failed filter with extender at URL {url}, code 201"),
    "a redirect": (
        Reply(302, {}, {"Location": "/elsewhere/filter"}),
        "failed filter with extender at URL {url}, code 302",
    ),
    "another redirect": (
        Reply(307, {}, {"Location": "/elsewhere/filter"}),
        "failed filter with extender at URL {url}, code 307",
    ),
    "garbage": (Reply(body=b"<html>"), "invalid response: JSON is malformed: invalid character (byte 0)"),
    "nothing": (Reply(body=b""), "invalid response: Input data was truncated"),
    "a wrong type": (
        Reply(body={"NodeNames": "n1"}),
        "invalid response: nodenames: Expected `array`, got `str`",
    ),
    "a body nested without end": (
        Reply(body=b'{"NodeNames": ' + b"[" * 900_000),
        "invalid response: nested too deeply",
    ),
    "a packed body": (
        Reply(body=b"\x1f\x8b\x08", headers={"Content-Encoding": "gzip"}),
        "invalid response: ",
    ),
    "a huge body": (HUGE, f'Post "{{url}}": the response has more than {MAX_RESPONSE_BYTES} bytes'),
    "a connection that breaks": (CUT, 'Post "{url}": '),
    "a name it was not asked about": (
        Reply(body=filter_response("n1", "elsewhere")),
        'extender "{name}" claims a filtered node "elsewhere" which is not found in the input node list',
    ),
    "an error of its own": (Reply(body={"Error": "licence server is down"}), "licence server is down"),
}


def attempt(config: dict[str, Any], answer: Any) -> tuple[SchedulerHarness, str]:
    """Run an attempt with an extender that responds so; return the extender's URL too."""
    harness = SchedulerHarness(make_node("n1"), profile=make_profile(DefaultBinder()))
    harness.create(make_pod("web"))
    name = ""

    async def test(extender_harness: ExtenderHarness) -> None:
        nonlocal name
        name = extender_harness.harness.context.extenders[0].name
        extender_harness.server.respond("POST /a/filter", answer)
        await extender_harness.run_until_idle()
        assert len(extender_harness.server.requests) == 1  # neither repeated nor redirected

    run_with_extenders(harness, [config], test)
    return harness, name


@pytest.mark.parametrize(("answer", "says"), FAULTS.values(), ids=FAULTS)
def test_the_attempt_fails_with_the_reason(answer: Any, says: str) -> None:
    harness, name = attempt(FILTER, answer)
    ((_, reason, note),) = harness.events.recorded
    assert reason == "FailedScheduling"
    assert note.startswith(says.format(name=name, url=f"{name}filter"))
    (patch,) = harness.api.calls_to("status")
    assert patch.body["status"]["conditions"][0]["reason"] == "SchedulerError"
    assert harness.queue.count_pending_pods()["backoff"] == 1


@pytest.mark.parametrize(("answer", "says"), FAULTS.values(), ids=FAULTS)
def test_an_ignorable_extender_is_skipped(answer: Any, says: str) -> None:
    harness, _ = attempt({**FILTER, "ignorable": True}, answer)
    assert [reason for _, reason, _ in harness.events.recorded] == ["Scheduled"]


@pytest.mark.parametrize(
    "answer",
    [b'{"NodeNames": ["n1"]} and more', b'{"nodenames": ["n1"], "NODES": null, "failednodes": null, "new": {}}\n'],
    ids=["text behind the document", "keys in any case, nulls, and some that nobody knows"],
)
def test_json_that_go_accepts_is_accepted(answer: bytes) -> None:
    """Source: pkg/scheduler/extender.go, HTTPExtender.send (1.36)."""
    harness, _ = attempt(FILTER, Reply(body=answer))
    assert [reason for _, reason, _ in harness.events.recorded] == ["Scheduled"]


def test_a_null_response_passes_no_node() -> None:
    harness, _ = attempt(FILTER, Reply(body=b"null"))
    assert [note for _, _, note in harness.events.recorded] == ["0/1 nodes are available:"]


@pytest.mark.parametrize("ignorable", [False, True], ids=["it may not fail", "it may fail"])
@pytest.mark.parametrize(
    "answer",
    [SILENCE, Reply(500), Reply(body=b"[{"), Reply(body={"n1": 1}), Reply(302), DRIP],
    ids=["no answer", "a fault of its own", "garbage", "an object", "a redirect", "a slow drip"],
)
def test_missing_scores_are_ignored(answer: Any, ignorable: bool) -> None:
    """Source: pkg/scheduler/schedule_one.go, prioritizeNodes (1.36)."""
    profile = make_profile(FakeScore("X", {"n1": 1, "n2": 2}), DefaultBinder())
    harness = SchedulerHarness(make_node("n1"), make_node("n2"), profile=profile)
    pod = make_pod("web")
    harness.create(pod)

    async def test(extender_harness: ExtenderHarness) -> None:
        extender_harness.server.respond("POST /a/prioritize", answer)
        await extender_harness.run_until_idle()

    run_with_extenders(harness, [{"prioritize_verb": "prioritize", "weight": 1, "ignorable": ignorable}], test)
    assert harness.node_of(pod) == "n2"


def test_a_timeout_of_zero_means_five_seconds() -> None:
    """Source: pkg/scheduler/extender.go, NewHTTPExtender (1.36)."""
    harness = SchedulerHarness(make_node("n1"), profile=make_profile(DefaultBinder()))
    harness.create(make_pod("web"))

    async def test(extender_harness: ExtenderHarness) -> None:
        extender_harness.server.respond("POST /a/filter", Stream([4.9, b'{"NodeNames": ["n1"]}']), Stream([5.1, b"{}"]))
        await extender_harness.run_until_idle()
        assert [reason for _, reason, _ in harness.events.recorded] == ["Scheduled"]
        harness.create(make_pod("later"))
        await extender_harness.run_until_idle()

    run_with_extenders(harness, [FILTER], test)
    assert [reason for _, reason, _ in harness.events.recorded] == ["Scheduled", "FailedScheduling"]


@pytest.mark.parametrize(
    "answer",
    [{"Error": "\u202e" * 2_000_000}, {"NodeNames": [], "FailedNodes": {"n1": "\u202e" * 2_000_000}}],
    ids=["an error", "a reason"],
)
def test_a_message_that_no_pod_can_have_is_cut(answer: dict[str, Any], caplog: pytest.LogCaptureFixture) -> None:
    """Without a limit, one line of the log takes seconds, and etcd rejects the condition."""
    harness, _ = attempt(FILTER, Reply(body=answer))
    (patch,) = harness.api.calls_to("status")
    assert len(patch.body["status"]["conditions"][0]["message"]) < 1_600_000
    attempt({**FILTER, "ignorable": True}, Reply(body=answer))
    assert all(len(str(vars(record).get("err"))) < 1_600_000 for record in caplog.records)
    assert any("\u202e" in str(vars(record).get("err")) for record in caplog.records) == ("Error" in answer)
