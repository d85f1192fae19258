"""What a page says about its age when answers are late, wrong or missing, in a real browser."""

import re
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from playwright.sync_api import Browser, Page, expect

from tests.ui.live_scheduler import LiveScheduler, make_node, make_pod, run_live_scheduler
from tests.ui.sent_events import (
    HeldAnswers,
    answer_with,
    let_time_pass,
    open_with_streams,
    send,
    send_change,
    send_same,
)

EMPTY_QUEUE: dict[str, Any] = {
    "texts": {},
    "rows": {"active": [], "backoff": [], "unschedulable": [], "gated": []},
    "lines": {},
    "problems": [],
}
LOGIN = "<!doctype html><title>Login</title><h1>Your session has ended</h1>"
READ_AGAIN = re.compile(r"^As of (\d{4}-\d\d-\d\d )?\d\d:\d\d:\d\d UTC\. The page is being read again\.$")
NOT_LIVE = re.compile(r"^Not live, as of (\d{4}-\d\d-\d\d )?\d\d:\d\d:\d\d UTC\. Connecting again\.$")


@pytest.fixture(scope="module")
def scheduler(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LiveScheduler]:
    """A node and a pod that is too large for it."""
    folder = tmp_path_factory.mktemp("scheduler")
    with run_live_scheduler(folder, make_node("n1"), make_pod("large", cpu="16")) as running:
        running.wait_for("waiting", "default/large")
        yield running


def get_made_at(page: Page) -> datetime:
    """The time of the state that the server sent with the page."""
    return datetime.fromisoformat(page.locator("footer").get_attribute("data-made-at") or "")


def format_time(time: datetime, now: datetime) -> str:
    """A time as the pages show it: with the date only if that of *now* is another."""
    return f"{time:%H:%M:%S} UTC" if time.date() == now.date() else f"{time:%Y-%m-%d %H:%M:%S} UTC"


@pytest.mark.parametrize("length", [None, -200])
@pytest.mark.parametrize("path", ["", "waiting"])
def test_a_page_is_not_live_while_a_proxy_answers_instead_of_the_server(
    browser: Browser, scheduler: LiveScheduler, path: str, length: int | None
) -> None:
    """The proxy answers with its login page, or with a page that ends early."""
    page = open_with_streams(browser, scheduler, path)
    send_same(page)
    expect(page.locator("#connection")).to_have_text("Live.")
    text = LOGIN if length is None else scheduler.get(path)[1][:length]
    answer_with(page, f"**/ui/{path}", text)
    send_change(page)
    reason = "The page cannot be read again: the answer is another page, or ends early."
    expect(page.locator("#connection.lost")).to_contain_text(reason)
    page.unroute_all()
    send_change(page)
    expect(page.locator("#connection:not(.lost)")).to_have_text("Live.")
    page.context.close()


def test_a_paused_page_that_is_lost_has_the_time_of_what_it_shows(browser: Browser, scheduler: LiveScheduler) -> None:
    page = open_with_streams(browser, scheduler, "queue")
    made_at = datetime.now(UTC)
    page.clock.set_fixed_time(made_at)
    page.reload()
    send(page, EMPTY_QUEUE)
    page.get_by_role("button", name="Pause").click()
    page.clock.set_fixed_time(made_at + timedelta(hours=1))
    send(page, EMPTY_QUEUE)
    page.evaluate("window.streams.at(-1).fail()")
    shown = format_time(get_made_at(page), get_made_at(page) + timedelta(hours=1))
    expect(page.locator("#connection.lost")).to_have_text(f"Not live, as of {shown}. Connecting again.")
    page.context.close()


def test_a_page_that_is_not_read_and_then_lost_has_the_time_of_what_it_shows(
    browser: Browser, scheduler: LiveScheduler
) -> None:
    page = open_with_streams(browser, scheduler, "waiting")
    made_at = datetime.now(UTC)
    page.clock.set_fixed_time(made_at)
    page.reload()
    send_same(page)
    page.route("**/ui/waiting", lambda route: route.fulfill(status=403))
    page.clock.set_fixed_time(made_at + timedelta(hours=1))
    send_change(page)
    shown = format_time(get_made_at(page), get_made_at(page) + timedelta(hours=1))
    failure = f"As of {shown}. The page cannot be read again: status 403."
    expect(page.locator("#connection.lost")).to_have_text(failure)
    page.evaluate("window.streams.at(-1).fail()")
    expect(page.locator("#connection.lost")).to_have_text(f"Not live, as of {shown}. Connecting again.")
    page.context.close()


def test_a_page_that_was_lost_on_another_day_has_the_date(browser: Browser, scheduler: LiveScheduler) -> None:
    page = open_with_streams(browser, scheduler, "queue")
    made_at = datetime.now(UTC)
    page.clock.set_fixed_time(made_at)
    page.reload()
    page.clock.set_fixed_time(made_at + timedelta(days=2))
    page.evaluate("window.streams.at(-1).fail()")
    expected = f"Not live, as of {get_made_at(page):%Y-%m-%d %H:%M:%S} UTC. Connecting again."
    expect(page.locator("#connection.lost")).to_have_text(expected)
    page.context.close()


@pytest.mark.parametrize("hours", [-7, 7])
def test_a_wrong_clock_of_the_browser_changes_no_age(browser: Browser, scheduler: LiveScheduler, hours: int) -> None:
    page = open_with_streams(browser, scheduler, "waiting")
    page.clock.set_fixed_time(datetime.now(UTC) + timedelta(hours=hours))
    page.reload()
    page.locator("[data-since]").evaluate("(element) => { element.textContent = ''; }")
    send_change(page)
    expect(page.locator("[data-since]")).to_have_text(re.compile(r"^(\d min )?\d+ s$"))
    since = datetime.fromisoformat(page.locator("[data-since]").get_attribute("data-since") or "")
    expected = (datetime.now(UTC) - since).total_seconds()
    numbers = [int(number) for number in re.findall(r"\d+", page.locator("[data-since]").inner_text())]
    shown = sum(number * factor for number, factor in zip(reversed(numbers), (1, 60), strict=False))
    assert 0 <= expected - shown < 60
    page.context.close()


@pytest.mark.parametrize("path", ["", "waiting"])
def test_a_page_that_is_paused_while_it_is_read_again_stays_the_same(
    browser: Browser, scheduler: LiveScheduler, path: str
) -> None:
    page = open_with_streams(browser, scheduler, path)
    send_same(page)
    heading = page.get_by_role("heading", level=1)
    before = heading.inner_text()
    held = HeldAnswers(page, f"**/ui/{path}")
    send_change(page)
    answer = held.take()
    page.get_by_role("button", name="Pause").click()
    body = scheduler.get(path)[1].replace(f">{before}<", ">7 of another kind<")
    with page.expect_event("requestfinished"):
        answer.fulfill(body=body, content_type="text/html")
    expect(page.locator("#connection")).to_have_text("Paused.")
    assert heading.inner_text() == before
    page.get_by_role("button", name="Continue").click()
    held.take().fulfill(body=body, content_type="text/html")
    expect(heading).to_have_text("7 of another kind")
    page.context.close()


@pytest.mark.parametrize("path", ["", "waiting", "queue"])
def test_a_page_is_not_live_when_the_reader_comes_back_before_it_is_connected(
    browser: Browser, scheduler: LiveScheduler, path: str
) -> None:
    page = open_with_streams(browser, scheduler, path)
    send_newest = (lambda: send(page, EMPTY_QUEUE)) if path == "queue" else (lambda: send_same(page))
    send_newest()
    expect(page.locator("#connection")).to_have_text("Live.")
    page.evaluate("window.setHidden(true)")
    assert page.evaluate("window.streams.map((stream) => stream.readyState)") == [2]
    page.evaluate("window.setHidden(false)")
    expect(page.locator("#connection.lost")).to_have_text(NOT_LIVE)
    send_newest()
    expect(page.locator("#connection:not(.lost)")).to_have_text("Live.")
    page.context.close()


def test_a_page_that_connects_again_is_live_only_after_it_is_read_again(
    browser: Browser, scheduler: LiveScheduler
) -> None:
    page = open_with_streams(browser, scheduler, "waiting")
    send_same(page)
    page.evaluate("window.streams.at(-1).fail()")
    expect(page.locator("#connection.lost")).to_have_text(NOT_LIVE)
    held = HeldAnswers(page, "**/ui/waiting")
    send_change(page)
    answer = held.take()
    expect(page.locator("#connection.lost")).to_have_text(READ_AGAIN)
    answer.continue_()
    expect(page.locator("#connection:not(.lost)")).to_have_text("Live.")
    page.context.close()


@pytest.mark.parametrize("pattern", ["**/ui/", "**/data/cluster"])
def test_a_page_says_that_an_answer_does_not_come_and_asks_again(
    browser: Browser, scheduler: LiveScheduler, pattern: str
) -> None:
    page = open_with_streams(browser, scheduler)
    page.clock.install()
    page.reload()
    page.locator("html[data-ready=true]").wait_for(state="attached")
    send_same(page)
    expect(page.locator("#connection")).to_have_text("Live.")
    held = HeldAnswers(page, pattern)
    send_change(page)
    held.take()
    page.clock.fast_forward(10_000)
    expect(page.locator("#connection.lost")).to_have_text(READ_AGAIN)
    let_time_pass(page, 110)
    failed = "The page cannot be read again: no answer for 120 s."
    expect(page.locator("#connection.lost")).to_contain_text(failed)
    page.unroute_all()
    send_change(page)
    expect(page.locator("#connection:not(.lost)")).to_have_text("Live.")
    page.context.close()


def test_a_page_without_its_first_document_is_not_live(browser: Browser, scheduler: LiveScheduler) -> None:
    page = open_with_streams(browser, scheduler)
    page.route("**/data/cluster", lambda route: route.fulfill(status=401))
    page.reload()
    expect(page.locator("#selected")).to_contain_text("The nodes cannot be read: status 401.")
    expect(page.locator("#connection")).to_have_text("Not live.")
    page.context.close()


@pytest.mark.parametrize("path", ["", "queue"])
def test_a_page_is_not_live_while_a_proxy_keeps_its_stream(
    browser: Browser, scheduler: LiveScheduler, path: str
) -> None:
    """Nothing of the answer arrives, and the browser would wait for it without an end."""
    page = open_with_streams(browser, scheduler, path)
    page.clock.install()
    page.reload()
    expect(page.locator("#connection")).to_have_text("Connecting.")
    page.clock.fast_forward(41_000)
    expect(page.locator("#connection.lost")).to_have_text(NOT_LIVE)
    assert page.evaluate("window.streams.map((stream) => stream.readyState)") == [2, 0]
    page.context.close()


def test_a_page_without_heartbeats_is_not_live_and_connects_again(browser: Browser, scheduler: LiveScheduler) -> None:
    """The server sends a heartbeat every ten seconds."""
    page = open_with_streams(browser, scheduler, "queue")
    page.clock.install()
    page.reload()
    send(page, EMPTY_QUEUE)
    let_time_pass(page, 60)
    expect(page.locator("#connection")).to_have_text("Live.")
    assert page.evaluate("window.streams.length") == 1
    page.clock.fast_forward(41_000)
    expect(page.locator("#connection.lost")).to_have_text(NOT_LIVE)
    assert page.evaluate("window.streams.map((stream) => stream.readyState)") == [2, 0]
    send(page, EMPTY_QUEUE)
    expect(page.locator("#connection:not(.lost)")).to_have_text("Live.")
    page.context.close()
