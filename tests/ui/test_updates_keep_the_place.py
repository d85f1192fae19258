"""The focus, the open details and the scrolled tables of a page that is updated, in a real browser."""

import re
from collections.abc import Iterator
from typing import Any

import pytest
from playwright.sync_api import Browser, Page, expect

from tests.ui.live_scheduler import LiveScheduler, make_node, make_pod, run_live_scheduler
from tests.ui.sent_events import COUNT_CHANGES, answer_with, open_with_streams, send, send_change


@pytest.fixture(scope="module")
def scheduler(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LiveScheduler]:
    """A node, two pods that are alike, and one that is not; all are too large for the node."""
    pods = [make_pod("alike-1", cpu="16"), make_pod("alike-2", cpu="16"), make_pod("other", cpu="17")]
    with run_live_scheduler(tmp_path_factory.mktemp("scheduler"), make_node("n1"), *pods) as running:
        for pod in pods:
            running.wait_for("waiting", f"default/{pod['metadata']['name']}")
        yield running


def update_to(page: Page, scheduler: LiveScheduler, path: str, old: str, new: str) -> None:
    """Let the page read itself again, with *new* instead of *old*."""
    text = scheduler.get(path)[1]
    assert old in text
    page.unroute_all()
    answer_with(page, f"**/ui/{path}", text.replace(old, new))
    send_change(page)


def test_the_focus_stays_on_the_second_link_to_a_node(browser: Browser, scheduler: LiveScheduler) -> None:
    page = open_with_streams(browser, scheduler, "waiting")
    links = page.get_by_role("link", name="n1", exact=True)
    expect(links).to_have_count(2)
    links.nth(1).focus()
    update_to(page, scheduler, "waiting", "wants 16", "wants 15")
    expect(page.get_by_text("wants 15")).to_be_visible()
    expect(links.nth(1)).to_be_focused()
    page.context.close()


def test_details_stay_open_with_the_focus_when_the_first_pod_of_an_entry_goes(
    browser: Browser, scheduler: LiveScheduler
) -> None:
    page = open_with_streams(browser, scheduler, "waiting")
    summary = page.locator("summary")
    summary.click()
    expect(summary).to_be_focused()
    update_to(page, scheduler, "waiting", "default/alike-1", "default/alike-2")
    expect(page.get_by_role("heading", level=3).first).to_contain_text("default/alike-2")
    assert page.locator("details").evaluate("(details) => details.open")
    expect(summary).to_be_focused()
    page.context.close()


def test_the_details_of_other_pods_are_closed(browser: Browser, scheduler: LiveScheduler) -> None:
    page = open_with_streams(browser, scheduler, "waiting")
    page.locator("summary").click()
    update_to(page, scheduler, "waiting", "default/alike-", "default/unlike-")
    expect(page.get_by_role("heading", level=3).first).to_contain_text("default/unlike-1")
    assert not page.locator("details").evaluate("(details) => details.open")
    page.context.close()


def test_a_table_with_the_focus_keeps_it_and_stays_scrolled(browser: Browser, scheduler: LiveScheduler) -> None:
    page = open_with_streams(browser, scheduler)
    page.set_viewport_size({"width": 320, "height": 640})
    page.locator("html[data-ready=true]").wait_for(state="attached")
    region = page.get_by_role("region", name="Use of resources")
    region.focus()
    region.evaluate("(element) => { element.scrollLeft = 60; }")
    update_to(page, scheduler, "", '<th scope="row">cpu</th>', '<th scope="row">cores</th>')
    expect(region).to_contain_text("cores")
    expect(region).to_be_focused()
    assert region.evaluate("(element) => element.scrollLeft") == 60
    page.context.close()


def test_pods_that_cannot_be_explained_are_announced_once(browser: Browser, scheduler: LiveScheduler) -> None:
    page = open_with_streams(browser, scheduler, "waiting")
    alert = '<div class="state failed"><p>Some pods of this page cannot be explained:</p></div>'
    start = '<div id="failures" role="alert">'
    update_to(page, scheduler, "waiting", start, start + alert)
    expect(page.locator("#failures")).to_be_visible()
    expect(page.locator("#failures")).to_have_role("alert")
    page.evaluate(COUNT_CHANGES, "failures")
    page.evaluate("window.alert = document.getElementById('failures')")
    text = scheduler.get("waiting")[1].replace(start, start + alert)
    page.unroute_all()
    answer_with(page, "**/ui/waiting", text.replace("3 waiting pods", "4 waiting pods"))
    send_change(page)
    expect(page.get_by_role("heading", level=1)).to_have_text("4 waiting pods")
    assert page.evaluate("[window.changeCount, window.alert.isConnected]") == [0, True]
    page.context.close()


def test_the_title_has_the_number_of_pages_of_the_newest_version(browser: Browser, scheduler: LiveScheduler) -> None:
    page = open_with_streams(browser, scheduler, "waiting")
    expect(page).to_have_title("Waiting pods · extender")
    update_to(page, scheduler, "waiting", "<title>Waiting pods", "<title>Waiting pods, page 1 of 2")
    expect(page).to_have_title("Waiting pods, page 1 of 2 · extender")
    page.context.close()


def make_queue(**queues: list[tuple[str, str]]) -> dict[str, Any]:
    """The document of the page Queue: for each queue the names of its pods with the times."""
    rows = {
        name: [
            [{"text": f"default/{pod}", "kind": "pods"}, *({"text": text, "kind": ""} for text in ("0", "1", time, ""))]
            for pod, time in queues.get(name, [])
        ]
        for name in ("active", "backoff", "unschedulable", "gated")
    }
    texts = {name: f"{len(pods)} pods" for name, pods in rows.items()}
    return {"texts": {**texts, "in-flight": "0 pods"}, "rows": rows, "lines": {}, "problems": []}


def test_the_rows_around_the_focus_are_updated(browser: Browser, scheduler: LiveScheduler) -> None:
    page = open_with_streams(browser, scheduler, "queue")
    send(page, make_queue(gated=[("a", "1 s"), ("b", "1 s"), ("c", "1 s")]))
    link = page.get_by_role("link", name="default/b")
    link.focus()
    page.evaluate("window.kept = document.activeElement")
    send(page, make_queue(gated=[("z", "9 s"), ("a", "2 s"), ("b", "2 s"), ("d", "1 s")]))
    rows = page.locator("[data-rows=gated] tr")
    expect(rows).to_have_text(
        [re.compile(f"^{name}") for name in ("default/z.*9 s", "default/a.*2 s", "default/b.*2 s", "default/d")]
    )
    assert page.evaluate("window.kept === document.activeElement")
    page.context.close()


def test_a_row_with_the_focus_stays_and_says_that_its_pod_has_left(browser: Browser, scheduler: LiveScheduler) -> None:
    page = open_with_streams(browser, scheduler, "queue")
    send(page, make_queue(gated=[("a", "1 s"), ("b", "1 s")]))
    page.get_by_role("link", name="default/b").focus()
    send(page, make_queue(gated=[("a", "2 s"), ("c", "1 s")]))
    rows = page.locator("[data-rows=gated] tr")
    expect(rows).to_have_count(3)
    expect(rows.nth(1)).to_have_text(re.compile("^default/b.*no longer in this table$"))
    expect(page.get_by_role("link", name="default/b")).to_be_focused()
    page.get_by_role("link", name="default/a").focus()
    send(page, make_queue(gated=[("a", "3 s"), ("c", "2 s")]))
    expect(rows).to_have_count(2)
    page.context.close()
