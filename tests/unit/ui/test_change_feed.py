"""Pages about a cluster that changes are read again after a change."""

import asyncio
import re

import pytest
from starlette.testclient import TestClient

from extender.app import wiring
from extender.cache.cache import Cache
from extender.ui import change_feed
from extender.ui.change_feed import ChangeFeed
from extender.ui.live_feed import LiveFeed
from extender.ui.page_source import PageSource
from extender.ui.pages import make_app
from tests.build import make_node, make_pod


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


def test_the_stream_has_the_version_of_the_pages() -> None:
    cluster = Cluster()

    async def read_event() -> bytes:
        response = await cluster.changes.stream()
        async for event in response.body_iterator:  # type: ignore[attr-defined]  # of StreamingResponse
            cluster.changes.close()
            return bytes(event)
        raise AssertionError

    first = cluster.source.get_version()
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

    def make_feed(*_: object, take_extra_seconds: object, max_share: float) -> LiveFeed:
        assert max_share == 0.01
        feeds.append(take_extra_seconds)
        return LiveFeed(lambda: b"", lambda: 0.0)

    monkeypatch.setattr(change_feed, "LiveFeed", make_feed)
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


def test_a_page_of_waiting_pods_is_made_once_for_all_readers() -> None:
    cluster = Cluster()
    explained: list[str] = []
    describe = cluster.source.describe_waiting_pods
    cluster.source.describe_waiting_pods = lambda pods: explained.append(pods[0].key) or describe(pods)  # type: ignore[method-assign]  # counts the calls
    for _ in range(3):
        assert "default/large" in cluster.client.get("/ui/waiting").text
    assert explained == ["default/large"]
    cluster.now = 5.0
    cluster.client.get("/ui/waiting")
    assert len(explained) == 2
