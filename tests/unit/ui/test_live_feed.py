"""Server-sent events: one producer for all streams, at most one event a second."""

import asyncio
import re
from collections.abc import AsyncIterator
from datetime import UTC, datetime
from itertools import chain, repeat

import pytest
from starlette.testclient import TestClient

from extender.app import wiring
from extender.cache.cache import Cache
from extender.ui.live_feed import HEARTBEAT, MAX_STREAMS, STREAM_SECONDS, ChangeFeed, LiveFeed
from extender.ui.page_source import PageSource
from extender.ui.pages import make_app
from tests.build import make_node, make_pod


class Harness:
    """A feed with a clock that only `sleep` of the producer and the tests move; documents are numbers."""

    def __init__(self, seconds_per_document: float = 0.0) -> None:
        self.now, self.count, self.sleeps = 0.0, 0, list[float]()
        self._seconds_per_document = seconds_per_document
        self.turn = asyncio.Event()
        self.feed = LiveFeed(self._make_document, lambda: self.now, self._sleep)

    def _make_document(self) -> bytes:
        self.count += 1
        self.now += self._seconds_per_document
        return str(self.count).encode()

    async def _sleep(self, seconds: float) -> None:
        self.sleeps.append(seconds)
        await self.turn.wait()
        self.turn.clear()
        self.now += seconds


async def let_others_run() -> None:
    for _ in range(10):
        await asyncio.sleep(0)


async def read(stream: AsyncIterator[bytes], events: list[bytes]) -> None:
    async for event in stream:
        events.append(event)  # noqa: PERF401  the test reads the events before the stream ends


def test_all_streams_get_the_documents_of_one_producer() -> None:
    async def main() -> None:
        harness = Harness()
        first, second = list[bytes](), list[bytes]()
        tasks = [asyncio.create_task(read(harness.feed.stream(), events)) for events in (first, second)]
        await let_others_run()
        harness.turn.set()
        await let_others_run()
        assert first == second == [b"data: 1\n\n", b"data: 2\n\n"]
        assert harness.sleeps == [1.0, 1.0]
        harness.feed.close()
        await asyncio.gather(*tasks)

    asyncio.run(main())


def test_no_document_is_made_without_a_stream() -> None:
    async def main() -> None:
        harness = Harness()
        task = asyncio.create_task(read(harness.feed.stream(), []))
        await let_others_run()
        task.cancel()
        await let_others_run()
        assert harness.feed.stream_count == 0
        harness.turn.set()
        await let_others_run()
        assert harness.count == 1
        events: list[bytes] = []
        task = asyncio.create_task(read(harness.feed.stream(), events))
        await let_others_run()
        assert events == [b"data: 2\n\n"]
        harness.feed.close()
        await task

    asyncio.run(main())


def test_documents_that_take_long_are_made_less_often() -> None:
    async def main() -> None:
        harness = Harness(seconds_per_document=0.5)
        task = asyncio.create_task(read(harness.feed.stream(), []))
        await let_others_run()
        assert harness.sleeps == [50.0]
        harness.feed.close()
        await task

    asyncio.run(main())


def test_a_closed_feed_ends_its_streams_and_allows_no_more() -> None:
    async def main() -> None:
        harness = Harness()
        task = asyncio.create_task(read(harness.feed.stream(), []))
        await let_others_run()
        harness.feed.close()
        await asyncio.wait_for(task, 5.0)
        assert harness.feed.is_full

    asyncio.run(main())


def test_a_stream_ends_after_ten_minutes() -> None:
    async def main() -> None:
        harness = Harness()
        task = asyncio.create_task(read(harness.feed.stream(), []))
        await let_others_run()
        harness.now = STREAM_SECONDS
        harness.turn.set()
        await asyncio.wait_for(task, 5.0)

    asyncio.run(main())


def test_a_silent_stream_has_heartbeats_and_loses_no_document_by_them(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("extender.ui.live_feed.HEARTBEAT_SECONDS", 0.001)

    async def main() -> None:
        harness = Harness()
        stream = harness.feed.stream()
        assert await anext(stream) == b"data: 1\n\n"
        assert await anext(stream) == HEARTBEAT == b"event: alive\ndata: 0\n\n"
        harness.turn.set()
        await let_others_run()
        assert await anext(stream) == b"data: 2\n\n"
        harness.feed.close()

    asyncio.run(main())


def test_an_error_of_the_producer_ends_the_streams() -> None:
    async def main() -> None:
        def fail() -> bytes:
            raise ValueError

        feed = LiveFeed(fail, lambda: 0.0)
        asyncio.get_running_loop().set_exception_handler(lambda *_: None)
        await asyncio.wait_for(read(feed.stream(), []), 5.0)
        assert feed.stream_count == 0

    asyncio.run(main())


def test_the_number_of_streams_is_limited() -> None:
    async def main() -> None:
        harness = Harness()
        tasks = [asyncio.create_task(read(harness.feed.stream(), [])) for _ in range(MAX_STREAMS)]
        await let_others_run()
        assert harness.feed.is_full
        tasks.pop().cancel()
        await let_others_run()
        assert not harness.feed.is_full
        harness.feed.close()
        await asyncio.gather(*tasks)

    asyncio.run(main())


def test_the_requests_of_the_readers_count_for_the_feed() -> None:
    async def main() -> None:
        harness = Harness()
        harness.feed = LiveFeed(lambda: b"1", lambda: harness.now, harness._sleep, take_extra_seconds=lambda: 0.25)
        task = asyncio.create_task(read(harness.feed.stream(), []))
        await let_others_run()
        assert harness.sleeps == [25.0]
        harness.feed.close()
        await task

    asyncio.run(main())


def test_requests_before_the_first_stream_do_not_count_for_the_feed() -> None:
    """A program may request the pages for days, while no browser follows them."""

    async def main() -> None:
        harness, times = Harness(), iter((1000.0, 0.25))
        feed = LiveFeed(lambda: b"1", lambda: harness.now, harness._sleep, take_extra_seconds=lambda: next(times))
        task = asyncio.create_task(read(feed.stream(), []))
        await let_others_run()
        assert harness.sleeps == [25.0]
        feed.close()
        await task

    asyncio.run(main())


def test_documents_take_a_larger_share_of_the_time_where_nothing_else_needs_it() -> None:
    async def main() -> None:
        harness = Harness()
        feed = LiveFeed(lambda: b"1", lambda: harness.now, harness._sleep, lambda: 2.0, max_share=0.5)
        task = asyncio.create_task(read(feed.stream(), []))
        await let_others_run()
        assert harness.sleeps == [4.0]
        feed.close()
        await task

    asyncio.run(main())


def test_a_later_reader_gets_the_last_event_at_once() -> None:
    async def main() -> None:
        harness = Harness()
        tasks = [asyncio.create_task(read(harness.feed.stream(), []))]
        await let_others_run()
        events: list[bytes] = []
        tasks.append(asyncio.create_task(read(harness.feed.stream(), events)))
        await let_others_run()
        assert events == [b"data: 1\n\n"]
        harness.turn.set()
        await let_others_run()
        assert events == [b"data: 1\n\n", b"data: 2\n\n"]
        harness.feed.close()
        await asyncio.gather(*tasks)

    asyncio.run(main())


class Cluster:
    """A cluster whose pages have a feed; time stands still until it is set."""

    def __init__(self) -> None:
        self.cache, self.now = Cache(), 0.0
        self.cache.add_or_update_node(make_node("n1"))
        self.cache.add_or_update_pod(make_pod("large", requests={"cpu": "64"}))
        profiles = wiring.build_setup().profiles
        self.source = PageSource("a", self.cache, lambda: profiles, wiring.make_runtime, lambda: self.now)
        self.changes = ChangeFeed(self.source)
        self.client = TestClient(make_app(self.source, changes=self.changes))


def test_a_proxy_may_not_keep_the_events_of_a_stream() -> None:
    """Source: nginx, ngx_http_proxy_module, proxy_buffering."""
    response = asyncio.run(Cluster().changes.respond())
    assert (response.headers["x-accel-buffering"], response.headers["cache-control"]) == ("no", "no-store")


def test_the_stream_has_the_version_of_the_pages() -> None:
    cluster = Cluster()

    async def read_event() -> bytes:
        response = await cluster.changes.respond()
        async for event in response.body_iterator:  # type: ignore[attr-defined]  # of StreamingResponse
            cluster.changes.close()
            return bytes(event)
        raise AssertionError

    first = cluster.source.get_state().version
    assert asyncio.run(read_event()).decode() == f'data: {{"version":{first}}}\n\n'
    assert f'data-version="{first}"' in cluster.client.get("/ui/").text
    assert f'data-version="{first}"' in cluster.client.get("/ui/waiting").text
    cluster.cache.add_or_update_node(make_node("n2"))
    cluster.now = 5.0
    assert f'data-version="{first + 1}"' in cluster.client.get("/ui/").text
    assert f'data-version="{first + 1}"' in cluster.client.get("/ui/waiting").text
    assert cluster.client.get("/ui/events/changes").status_code == 503


@pytest.mark.parametrize("path", ["/ui/", "/ui/data/cluster", "/ui/waiting"])
def test_the_time_of_the_pages_counts_for_the_feed(monkeypatch: pytest.MonkeyPatch, path: str) -> None:
    feeds: list[object] = []

    def start(*_: object, take_extra_seconds: object, max_share: float) -> None:
        assert max_share == 0.01
        feeds.append(take_extra_seconds)

    monkeypatch.setattr(LiveFeed, "__init__", start)
    cluster = Cluster()
    (take_seconds,) = feeds
    assert callable(take_seconds)
    assert take_seconds() == 0.0
    assert cluster.client.get(path).status_code == 200
    assert take_seconds() > 0.0
    assert take_seconds() == 0.0


@pytest.mark.parametrize("path", ["/ui/pods/default/large", "/ui/nodes/n1"])
def test_a_page_that_does_not_follow_the_cluster_has_its_time(path: str) -> None:
    text = Cluster().client.get(path).text
    assert re.search(r"As of \d{4}-\d\d-\d\d \d\d:\d\d:\d\d UTC\. Reload the page for the current state\.", text)


@pytest.mark.parametrize("path", ["/ui/pods/default/large", "/ui/nodes/n1"])
def test_a_page_is_not_current_while_a_watch_is_lost(path: str) -> None:
    cluster = Cluster()
    cluster.source.get_stale_time = lambda: datetime(2026, 1, 2, 3, 4, 5, 600, tzinfo=UTC)
    text = cluster.client.get(path).text
    assert "Not current: some of the data is as of 2026-01-02 03:04:05 UTC." in text
    assert ("As of" in text, "Reload the page" in text) == (False, False)


def test_a_page_of_waiting_pods_is_made_once_for_all_readers() -> None:
    cluster = Cluster()
    explained: list[str] = []
    describe = cluster.source.describe_waiting_pods
    cluster.source.describe_waiting_pods = lambda pods: explained.append(pods[0].key) or describe(pods)
    for _ in range(3):
        assert "default/large" in cluster.client.get("/ui/waiting").text
    assert explained == ["default/large"]
    cluster.now = 5.0
    cluster.client.get("/ui/waiting")
    assert len(explained) == 2


@pytest.mark.parametrize(("path", "text"), [("/ui/", "2 pods wait"), ("/ui/waiting", "2 waiting pods")])
@pytest.mark.parametrize("call_count", [0, 1, 2, 3, 4, 5, 6])
def test_a_page_has_no_later_version_than_its_pods(
    monkeypatch: pytest.MonkeyPatch, path: str, text: str, call_count: int
) -> None:
    """Five seconds end after some reads of the state. A later version would keep the browser from reading it again."""
    cluster = Cluster()
    first = cluster.source.get_state().version
    cluster.cache.add_or_update_pod(make_pod("larger", requests={"cpu": "65"}))
    times = chain(repeat(4.9, call_count), repeat(5.0))
    monkeypatch.setattr(cluster.source, "_get_time", lambda: next(times))
    page = cluster.client.get(path).text
    assert text in page or f'data-version="{first}"' in page
    monkeypatch.setattr(cluster.source, "_get_time", lambda: 5.0)
    assert f'data-version="{first + 1}"' in cluster.client.get(path).text
