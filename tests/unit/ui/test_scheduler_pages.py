"""The pages Queue and Decisions without a browser."""

import asyncio

import msgspec
import pytest
from starlette.testclient import TestClient

from extender.app import wiring
from extender.scheduler.attempt_history import AttemptRecord
from extender.ui.live_document import SchedulerView
from extender.ui.page_source import PageSource
from extender.ui.pages import make_app
from extender.ui.recorded_source import RecordedSource
from extender.ui.scheduler_pages import SchedulerPages
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
        view = SchedulerView(self.queue, self.context.attempt_history, lambda: 0.0, self.clock)
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


def test_markup_and_unprintable_characters_in_a_stream_are_text() -> None:
    harness = Harness()
    for text in HOSTILE_TEXTS:
        harness.context.attempt_history.record(AttemptRecord(1.0, text, "u", "error", text, text, 0.0, 1))

    async def read_event() -> bytes:
        response = await harness.pages.stream_decisions()
        async for event in response.body_iterator:  # type: ignore[attr-defined]  # of StreamingResponse
            harness.pages.close()
            return bytes(event)
        raise AssertionError

    event = asyncio.run(read_event())
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
    assert "Attempts of this scheduler" in page
    assert "y" * 300 in page
    assert page.index("01:01:01") < page.index("<td>unschedulable</td>")
    harness.create(make_pod("later"))
    assert "Attempts of this scheduler" not in harness.client.get("/ui/pods/default/later").text
