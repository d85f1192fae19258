"""Streams of events that a test sends to a page itself, and documents that a test changes."""

import json
import time
from collections.abc import Callable
from typing import Any, Final

from playwright.sync_api import Browser, Page, Route, expect

from tests.ui.live_scheduler import READER_OPTIONS, LiveScheduler

_STREAMS: Final = """
    window.streams = [];
    window.EventSource = class extends EventTarget {
        static CONNECTING = 0;
        static OPEN = 1;
        static CLOSED = 2;
        constructor(address) {
            super();
            this.address = address;
            this.readyState = 0;
            window.streams.push(this);
        }
        close() {
            this.readyState = 2;
        }
        send(data) {
            this.readyState = 1;
            this.dispatchEvent(new MessageEvent("message", { data: JSON.stringify(data) }));
        }
        fail() {
            this.readyState = 0;
            this.dispatchEvent(new Event("error"));
        }
    };
    Object.defineProperty(document, "hidden", { get: () => Boolean(window.isHidden) });
    window.setHidden = (isHidden) => {
        window.isHidden = isHidden;
        document.dispatchEvent(new Event("visibilitychange"));
    };
"""

_SEND_VERSION: Final = """(step) => {
    const version = Number(document.querySelector("[data-version]").dataset.version) + step;
    window.streams.at(-1).send({ version });
}"""

COUNT_CHANGES: Final = """(id) => {
    window.changeCount = 0;
    const observer = new MutationObserver((changes) => { window.changeCount += changes.length; });
    observer.observe(document.getElementById(id), { childList: true, subtree: true, characterData: true });
}"""
"""Counts in `changeCount` what a screen reader announces of an element with the role `status` or `alert`."""


def open_with_streams(browser: Browser, scheduler: LiveScheduler, path: str = "") -> Page:
    """Open a page in a new context. It gets only the events that the test sends, and is hidden if the test says it."""
    page = browser.new_context(**READER_OPTIONS, viewport={"width": 1200, "height": 800}).new_page()
    page.add_init_script(_STREAMS)
    page.goto(scheduler.url + path)
    expect(page.get_by_role("button", name="Pause")).to_be_visible()  # the page has its first stream
    return page


def send_same(page: Page) -> None:
    """Send the page the number of the change that it shows."""
    page.evaluate(_SEND_VERSION, 0)


def send_change(page: Page) -> None:
    """Send the page the number of a later change, so that it reads itself again."""
    page.evaluate(_SEND_VERSION, 1)


def send(page: Page, document: dict[str, Any]) -> None:
    """Send the page a document, as the streams of Queue and Decisions have it."""
    page.evaluate("(document) => window.streams.at(-1).send(document)", document)


def let_time_pass(page: Page, seconds: int) -> None:
    """Let *seconds* pass, a multiple of ten, on a page with `clock.install`, while the stream sends its heartbeats."""
    for _ in range(seconds // 10):
        page.clock.fast_forward(10_000)
        page.evaluate("window.streams.at(-1).dispatchEvent(new Event('alive'))")


def answer_with(page: Page, pattern: str, text: str) -> None:
    """Answer the requests of the page for *pattern* with *text*: a page, or a document if it is JSON."""
    content_type = "application/json" if text.startswith("{") else "text/html"
    page.route(pattern, lambda route: route.fulfill(body=text, content_type=content_type))


class HeldAnswers:
    """The requests of a page that wait for an answer of the test."""

    def __init__(self, page: Page, pattern: str, times: int | None = None) -> None:
        """Hold the requests of *page* for *pattern* from now on; with *times* only so many of them."""
        self._page, self._routes = page, list[Route]()
        page.route(pattern, self._hold, times=times)

    def _hold(self, route: Route) -> None:
        self._routes.append(route)

    def take(self) -> Route:
        """Wait for the next request, and return it. `expect_request` may end before the page's handler has it."""
        deadline = time.monotonic() + 30.0
        while not self._routes:
            assert time.monotonic() < deadline, "no request is held"
            self._page.evaluate("0")  # Playwright calls the handler meanwhile
        return self._routes.pop(0)


def read_cluster(scheduler: LiveScheduler, change: Callable[[dict[str, Any]], object] = lambda _: None) -> str:
    """Return the document of the page Cluster as JSON, after *change* has changed it."""
    document: dict[str, Any] = json.loads(scheduler.get("data/cluster")[1])
    change(document)
    return json.dumps(document)
