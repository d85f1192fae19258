"""The pages Queue and Decisions without a browser."""

import asyncio
import math
from datetime import UTC, datetime

import msgspec
import pytest
from starlette.testclient import TestClient

from extender.app import wiring
from extender.scheduler.attempt_history import AttemptHistory, AttemptRecord
from extender.ui.live_feed import LiveFeed
from extender.ui.page_source import PageSource, RecordedSource
from extender.ui.pages import make_app
from extender.ui.scheduler_pages import (
    LiveCell,
    SchedulerPages,
    SchedulerView,
    make_attempt_row,
    make_line,
)
from tests.build import make_node, make_pod
from tests.unit.scheduler.builders import SchedulerHarness
from tests.unit.ui.test_pages import HOSTILE_TEXTS


class Harness(SchedulerHarness):
    """A scheduler with pages, a bound pod, and a pod in activeQ."""

    def __init__(self) -> None:
        super().__init__(make_node("n1"))
        self.create(make_pod("web"))
        self.run()
        self.create(make_pod("next"))
        history, problems = self.context.attempt_history, ["a lost <watch>"]
        view = SchedulerView(
            self.queue, history, lambda: 0.0, self.clock, lambda: problems, lambda: datetime(2026, 1, 2, 3, tzinfo=UTC)
        )
        self.pages = SchedulerPages(view)
        profiles = self.context.profiles
        source = PageSource("a", self.cache, lambda: profiles, wiring.make_runtime, lambda: 0.0)
        self.client = TestClient(make_app(source, self.pages))


def test_the_pages_show_the_queue_and_the_attempts() -> None:
    harness = Harness()
    queue = harness.client.get("/ui/queue")
    assert '<a href="/ui/pods/default/next">' in queue.text
    assert 'aria-current="page">Queue' in queue.text
    decisions = harness.client.get("/ui/decisions")
    assert '<a href="/ui/nodes/n1">' in decisions.text


@pytest.mark.parametrize("path", ["/ui/queue", "/ui/decisions", "/ui/events/queue"])
def test_without_a_scheduler_there_are_no_such_pages(demo_source: RecordedSource, path: str) -> None:
    client = TestClient(make_app(demo_source))
    assert client.get(path).status_code == 404
    assert "/ui/queue" not in client.get("/ui/").text


def test_a_closed_stream_is_refused() -> None:
    harness = Harness()
    harness.pages.close()
    response = harness.client.get("/ui/events/queue")
    assert response.status_code == 503
    assert "100 live pages are open already." in response.text


def read_event(pages: SchedulerPages, feed: LiveFeed) -> bytes:
    """Return the first event of a stream."""

    async def read() -> bytes:
        response = await feed.respond()
        async for event in response.body_iterator:  # type: ignore[attr-defined]  # of StreamingResponse
            pages.close()
            return bytes(event)
        raise AssertionError

    return asyncio.run(read())


@pytest.mark.parametrize("name", ["queue_feed", "decisions_feed"])
def test_a_stream_has_the_problems_of_the_watches(name: str) -> None:
    """Otherwise a page that is open would seem to show the present state while a watch is lost."""
    pages = Harness().pages
    event = read_event(pages, getattr(pages, name))
    document = msgspec.json.decode(event.removeprefix(b"data: "))
    assert (document["problems"], document["staleTime"]) == (["a lost <watch>"], "2026-01-02T03:00:00+00:00")


def test_markup_and_unprintable_characters_in_a_stream_are_text() -> None:
    harness = Harness()
    for text in HOSTILE_TEXTS:
        harness.context.attempt_history.record(AttemptRecord(1.0, text, "u", "error", text, text, 0.0, 1))
    event = read_event(harness.pages, harness.pages.decisions_feed)
    assert event.startswith(b"data: {")
    assert event.endswith(b"}\n\n")
    assert event.count(b"\n") == 2
    rows = msgspec.json.decode(event.removeprefix(b"data: "))["rows"]["attempts"]
    texts = {cell["text"] for row in rows for cell in row}
    assert "<script>alert(1)</script>" in texts
    assert "a\\u202egpj.exe" in texts
    page = harness.client.get("/ui/decisions").text
    assert "<script>alert" not in page
    assert "\u202e" not in page


def test_the_page_of_a_pod_shows_its_attempts_newest_first() -> None:
    harness = Harness()
    pod = make_pod("large", requests={"cpu": "99"})
    harness.create(pod)
    harness.run()
    harness.context.attempt_history.record(
        AttemptRecord(3661.0, pod.key, pod.metadata.uid, "error", "", "y" * 300, 0.002, 2)
    )
    page = harness.client.get("/ui/pods/default/large").text
    assert "Last attempts of this scheduler" in page
    assert "y" * 300 in page
    assert page.index("01:01:01") < page.index("<td>unschedulable</td>")
    assert page.index("Every plugin on every node") < page.index("Last attempts of this scheduler")
    for number in range(3, 20):
        record = AttemptRecord(9.0, pod.key, pod.metadata.uid, "error", "", "", 0.002, number)
        harness.context.attempt_history.record(record)
    page = harness.client.get("/ui/pods/default/large").text
    assert page.count("<td>error</td>") == 10
    harness.create(make_pod("later"))
    assert "Last attempts of this scheduler" not in harness.client.get("/ui/pods/default/later").text


def make_harness() -> SchedulerHarness:
    """A scheduler whose queue has a pod in each part, and a pod that it bound."""
    harness = SchedulerHarness(make_node("n1", allocatable={"cpu": "2", "pods": "10"}))
    harness.create(make_pod("web", requests={"cpu": "1"}))
    harness.create(make_pod("large", requests={"cpu": "8"}))
    harness.run()
    harness.clock.seconds += 20.0
    return harness


def make_view(harness: SchedulerHarness, cache_age: float = 2.0) -> SchedulerView:
    return SchedulerView(harness.queue, harness.context.attempt_history, lambda: cache_age, harness.clock)


def test_each_part_of_the_queue_has_its_pods_and_their_number() -> None:
    harness = make_harness()
    harness.create(make_pod("low"), make_pod("high", priority=5))
    document = SchedulerPages(make_view(harness)).make_queue_document()
    assert [row[0] for row in document.rows["active"]] == [
        LiveCell("default/high", "pods"),
        LiveCell("default/low", "pods"),
    ]
    (large,) = document.rows["unschedulable"]
    assert [cell.text for cell in large] == ["default/large", "0", "1", "20 s", "NodeResourcesFit"]
    assert document.rows["backoff"] == document.rows["gated"] == []
    assert document.texts == {
        "active": "2 pods",
        "backoff": "0 pods",
        "unschedulable": "1 pod",
        "gated": "0 pods",
        "in-flight": "0 pods",
    }


def test_a_long_time_in_a_queue_is_readable_and_an_attempt_has_its_date() -> None:
    harness = make_harness()
    harness.clock.seconds += 2 * 3600
    view = make_view(harness)
    (large,) = SchedulerPages(view).make_queue_document().rows["unschedulable"]
    assert large[3].text == "2 h 0 min"
    attempt = AttemptRecord(1_780_000_000.0, "a/b", "u", "error", "", "", 0.01, 1)
    assert make_attempt_row(attempt, with_pod=True)[0].text == "2026-05-28 20:26:40"


def test_pods_in_backoff_and_gated_pods_are_apart_from_unschedulable_pods() -> None:
    harness = make_harness()
    harness.clock.seconds -= 20.0  # the backoff of the pod has not ended
    harness.create(make_pod("held", spec={"schedulingGates": [{"name": "example.com/quota"}]}))
    harness.dispatcher.on_add(make_node("n2", allocatable={"cpu": "9", "pods": "10"}))
    document = SchedulerPages(make_view(harness)).make_queue_document()
    assert [row[0].text for row in document.rows["backoff"]] == ["default/large"]
    assert [(row[0].text, row[4].text) for row in document.rows["gated"]] == [("default/held", "SchedulingGates")]
    assert document.rows["unschedulable"] == []


def test_a_long_queue_shows_its_first_pods() -> None:
    harness = SchedulerHarness(make_node("n1"))
    harness.create(*(make_pod(f"p{number:02}", priority=number) for number in range(60)))
    document = SchedulerPages(make_view(harness)).make_queue_document()
    assert document.texts["active"] == "60 pods; the first 50 are shown"
    keys = [row[0].text for row in document.rows["active"]]
    assert (len(keys), keys[0], keys[-1]) == (50, "default/p59", "default/p10")


def test_decisions_have_the_result_the_time_and_the_message() -> None:
    harness = make_harness()
    document = SchedulerPages(make_view(harness)).make_decisions_document()
    web, large = document.rows["attempts"]
    assert [cell.text for cell in web[1:4]] == ["default/web", "scheduled", "n1"]
    assert web[3].kind == "nodes"
    assert large[7].text.startswith("0/1 nodes are available: 1 Insufficient cpu.")
    assert document.texts["cache-age"] == "2.0 s"


def test_a_long_message_is_shortened() -> None:
    harness = make_harness()
    view = make_view(harness)
    view.attempt_history.record(AttemptRecord(0.0, "a/b", "u", "unschedulable", "", "x" * 500, 0.002, 3))
    row = SchedulerPages(view).make_decisions_document().rows["attempts"][0]
    assert row[7].text == "x" * 200 + "..."
    assert [cell.text for cell in row[4:7]] == ["2.0 ms", "", "3"]


def test_rates_and_durations_are_those_of_the_last_minute() -> None:
    harness = make_harness()
    view, now = make_view(harness), harness.clock.now()
    for age, result in ((1.0, "scheduled"), (1.0, "error"), (30.0, "scheduled"), (100.0, "scheduled")):
        view.attempt_history.record(AttemptRecord(math.floor(now) - age, "a/b", "u", result, "", "", 0.01, 1))
    document = SchedulerPages(view).make_decisions_document()
    assert document.texts["rate"].startswith("1 in the last second, ")
    assert document.lines["rate"].split()[-1] == "240.0,0.5"


def test_without_a_response_of_the_api_server_the_cache_has_no_age() -> None:
    document = SchedulerPages(make_view(make_harness(), math.inf)).make_decisions_document()
    assert (document.texts["cache-age"], document.lines["cache-age"]) == ("no response yet", "")


@pytest.mark.parametrize(
    ("values", "line"),
    [([], ""), ([3.0], "240.0,0.5"), ([0.0, 0.0], "235.9,39.5 240.0,39.5"), ([1.0, 2.0], "235.9,20.0 240.0,0.5")],
)
def test_a_line_ends_at_the_right_and_its_largest_value_is_at_the_top(values: list[float], line: str) -> None:
    assert make_line(values) == line


def test_the_time_of_each_plugin_is_that_of_the_last_minute_per_attempt() -> None:
    harness = make_harness()
    view, now = make_view(harness), math.floor(harness.clock.now())
    view.attempt_history = AttemptHistory()
    for age, seconds in ((1, {"A": 0.003, "B": 0.001}), (2, {"B": 0.004}), (99, {"C": 1.0})):
        view.attempt_history.record(AttemptRecord(now - age, "a/b", "u", "error", "", "", 0.01, 1, seconds))
    document = SchedulerPages(view).make_decisions_document()
    rows = [[cell.text for cell in row] for row in document.rows["plugins"]]
    assert rows == [["B", "2.500 ms", "62%"], ["A", "1.500 ms", "38%"]]
    assert document.texts["plugins"] == "in the last minute, per attempt"
    assert [row[5].text for row in document.rows["attempts"]] == ["C 1000.00 ms", "B 4.00 ms", "A 3.00 ms, B 1.00 ms"]


def test_an_attempt_names_its_three_slowest_plugins() -> None:
    seconds = {"A": 0.001, "B": 0.004, "C": 0.002, "D": 0.003}
    row = make_attempt_row(AttemptRecord(0.0, "a/b", "u", "error", "", "", 0.01, 1, seconds), with_pod=True)
    assert row[5].text == "B 4.00 ms, D 3.00 ms, C 2.00 ms"


def test_plots_have_their_largest_value_as_text() -> None:
    harness = make_harness()
    view, now = make_view(harness), math.floor(harness.clock.now())
    view.attempt_history = AttemptHistory()
    for _ in range(3):
        view.attempt_history.record(AttemptRecord(now - 9, "a/b", "u", "scheduled", "", "", 0.01, 1))
    texts = SchedulerPages(view).make_decisions_document().texts
    assert (texts["rate-top"], texts["duration-top"], texts["cache-age-top"]) == ("3", "10.0 ms", "2.0 s")
