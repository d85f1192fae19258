"""What the pages say while a watch of the server is lost, in a real browser."""

import re
from collections.abc import Iterator
from typing import Any

import pytest
from playwright.sync_api import Browser, Page, expect

from tests.ui.live_scheduler import LiveScheduler, make_node, make_pod, run_live_scheduler
from tests.ui.sent_events import answer_with, open_with_streams, send, send_change, send_same

LOST = "the watch of pods is lost"
STALE = "2026-11-20T10:20:30+00:00"
NOT_LIVE = "Not live: some of the data is as of 2026-11-20 10:20:30 UTC."
EMPTY_QUEUE: dict[str, Any] = {
    "texts": {},
    "rows": {"active": [], "backoff": [], "unschedulable": [], "gated": []},
    "lines": {},
    "problems": [],
    "staleTime": "",
}


@pytest.fixture(scope="module")
def scheduler(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LiveScheduler]:
    """A node and a pod that is too large for it."""
    folder = tmp_path_factory.mktemp("scheduler")
    with run_live_scheduler(folder, make_node("n1"), make_pod("large", cpu="16")) as running:
        running.wait_for("waiting", "default/large")
        yield running


def lose_watch(text: str) -> str:
    """Change the text of a page to that of a server whose watch of pods is lost."""
    text, count = re.subn('data-stale-time=""', f'data-stale-time="{STALE}"', text)
    assert count == 1
    start, end = '<div id="problems" role="alert">', "</div>"
    assert start + end in text
    return text.replace(start + end, f'{start}<p class="warning">{LOST}</p>{end}')


@pytest.mark.parametrize("path", ["", "waiting"])
def test_a_page_is_live_only_while_the_watches_are(browser: Browser, scheduler: LiveScheduler, path: str) -> None:
    page = open_with_streams(browser, scheduler, path)
    send_same(page)
    expect(page.locator("#connection:not(.lost)")).to_have_text("Live.")
    answer_with(page, f"**/ui/{path}", lose_watch(scheduler.get(path)[1]))
    send_change(page)
    expect(page.locator("#connection.lost")).to_have_text(NOT_LIVE)
    page.evaluate("window.streams.at(-1).fail()")
    expect(page.locator("#connection.lost")).to_have_text("Not live, as of 2026-11-20 10:20:30 UTC. Connecting again.")
    page.unroute_all()
    send_change(page)
    expect(page.locator("#connection:not(.lost)")).to_have_text("Live.")
    page.context.close()


def test_a_page_that_is_opened_while_a_watch_is_lost_is_not_live(browser: Browser, scheduler: LiveScheduler) -> None:
    page = open_with_streams(browser, scheduler, "waiting")
    answer_with(page, "**/ui/waiting", lose_watch(scheduler.get("waiting")[1]))
    page.reload()
    send_same(page)
    expect(page.locator("#connection.lost")).to_have_text(NOT_LIVE)
    page.context.close()


def test_a_stream_says_that_a_watch_is_lost_and_found(browser: Browser, scheduler: LiveScheduler) -> None:
    page = open_with_streams(browser, scheduler, "queue")
    send(page, {**EMPTY_QUEUE, "problems": [LOST], "staleTime": STALE})
    expect(page.locator("#connection.lost")).to_have_text(NOT_LIVE)
    send(page, EMPTY_QUEUE)
    expect(page.locator("#connection:not(.lost)")).to_have_text("Live.")
    page.context.close()


def get_background(page: Page, selector: str) -> str:
    """The colour behind the text of an element."""
    colour: str = page.locator(selector).evaluate("(element) => getComputedStyle(element).backgroundColor")
    return colour


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_a_warning_is_another_kind_of_line_than_a_state(
    browser: Browser, scheduler: LiveScheduler, scheme: str
) -> None:
    """Its word is for readers who do not see the colours, and for printed pages."""
    page = open_with_streams(browser, scheduler)
    page.emulate_media(color_scheme="dark" if scheme == "dark" else "light")
    answer_with(page, "**/ui/", lose_watch(scheduler.get()[1]))
    page.reload()
    colours = [get_background(page, selector) for selector in ("body", ".state", "#problems .warning")]
    assert len(set(colours)) == 3
    tree = page.locator("#problems").aria_snapshot()
    assert tree == f'- alert:\n  - paragraph: "Warning: {LOST}"'
    page.context.close()
