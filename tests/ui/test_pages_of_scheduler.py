"""The pages of a running `extender schedule --ui` in a real browser."""

import json
import os
import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Browser, expect

from tests.ui.conftest import ROOT, OpenPage
from tests.ui.live_scheduler import READER, READER_OPTIONS, LiveScheduler, make_node, make_pod, run_live_scheduler
from tests.ui.sent_events import COUNT_CHANGES, HeldAnswers


@pytest.fixture(scope="module")
def scheduler(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LiveScheduler]:
    """Two nodes, a pod that is bound, one that is too large, one with a gate, and a gang without enough pods."""
    manifests = (
        make_node("n1"),
        make_node("n2"),
        make_pod("web"),
        make_pod("large", cpu="16"),
        make_pod("held", schedulingGates=[{"name": "example.com/quota"}]),
        {
            "apiVersion": "scheduling.k8s.io/v1alpha2",
            "kind": "PodGroup",
            "metadata": {"name": "ring", "namespace": "default"},
            "spec": {"schedulingPolicy": {"gang": {"minCount": 3}}},
        },
        *(make_pod(name, schedulingGroup={"podGroupName": "ring"}) for name in ("ring-0", "ring-1")),
    )
    flags = ("--feature-gates=GenericWorkload=true,GangScheduling=true", "--emulated-version=1.36")
    with run_live_scheduler(tmp_path_factory.mktemp("scheduler"), *manifests, flags=flags) as running:
        running.wait_for("pods/default/web", "is on node n")
        running.wait_for("pods/default/large", "Insufficient cpu")
        yield running


@pytest.fixture(scope="module")
def url(scheduler: LiveScheduler) -> str:
    """The address of the first page of the scheduler, instead of that of the demo's recording."""
    return scheduler.url


PAGES = [
    *("", "waiting", "pods/default/large", "pods/default/web", "pods/default/held", "nodes/n1", "queue", "decisions"),
    "groups/default/ring",
    "what-if?drain=n1",
]


@pytest.mark.parametrize("colour", ["light", "dark"])
@pytest.mark.parametrize("path", PAGES)
def test_a_live_page_is_accessible_and_prints_no_message(open_page: OpenPage, path: str, colour: str) -> None:
    page = open_page(path, bypass_csp=True, color_scheme=colour, **READER_OPTIONS)
    results = Axe().run(page)
    assert [violation["id"] for violation in results.response["violations"]] == []


@pytest.mark.parametrize("path", ["queue", "decisions", "pods/default/large", "groups/default/ring"])
def test_a_narrow_live_page_scrolls_only_down(open_page: OpenPage, path: str) -> None:
    page = open_page(path, viewport={"width": 320, "height": 640}, **READER_OPTIONS)
    expect(page.get_by_role("heading", level=1)).to_be_visible()
    assert page.evaluate("document.documentElement.scrollWidth") <= 320


def test_three_clicks_lead_to_the_reason_why_a_pod_of_the_scheduler_waits(open_page: OpenPage) -> None:
    page = open_page(**READER_OPTIONS)
    page.locator("html[data-ready=true]").wait_for(state="attached")
    page.get_by_role("link", name="pods wait: why?").click()
    page.get_by_role("link", name="default/large").click()
    expect(page.locator(".state")).to_contain_text("fits on none of 2 nodes")
    expect(page.locator(".misses")).to_contain_text("wants 16, but only 4 are free (12 short)")
    assert page.context.cookies() == []


def test_the_page_of_a_member_leads_to_what_its_gang_lacks(open_page: OpenPage) -> None:
    page = open_page("pods/default/ring-0", **READER_OPTIONS)
    page.get_by_role("link", name="default/ring", exact=True).click()
    expect(page.get_by_role("heading", level=1)).to_have_text("Pod group default/ring")
    expect(page.locator(".state")).to_have_text("0 of 2 pods placed; the gang lacks 1 more pod, which must be created")
    expect(page.get_by_role("link", name="default/ring-1")).to_be_visible()


def test_the_page_of_a_pod_shows_the_attempts_of_this_scheduler(open_page: OpenPage) -> None:
    page = open_page("pods/default/large", **READER_OPTIONS)
    expect(page.get_by_text(re.compile(r"Waits since .* UTC \(Unschedulable\), for \d+ "))).to_be_visible()
    table = page.get_by_role("region", name="Last attempts of this scheduler")
    expect(table.get_by_role("row").nth(1)).to_contain_text("unschedulable")
    expect(table).to_contain_text("2 Insufficient cpu")


def test_the_pages_follow_the_cluster(open_page: OpenPage, scheduler: LiveScheduler) -> None:
    scheduler.create(make_pod("later"))
    scheduler.wait_for("pods/default/later", "is on node n")
    page = open_page("pods/default/later", **READER_OPTIONS)
    expect(page.locator(".state")).to_contain_text("is on node n")


@pytest.mark.parametrize(("token", "status"), [("", 403), ("wrong", 401), (READER, 200)])
@pytest.mark.parametrize("path", ["", "data/cluster", "static/style.css", "pods/default/web"])
def test_only_an_authorized_reader_gets_the_pages(scheduler: LiveScheduler, path: str, token: str, status: int) -> None:
    assert scheduler.get(path, token)[0] == status


def test_the_queue_is_shown_and_updated(open_page: OpenPage, scheduler: LiveScheduler) -> None:
    page = open_page("queue", **READER_OPTIONS)
    expect(page.locator("[data-rows=gated]")).to_contain_text("default/held")
    expect(page.locator("[data-rows=gated]")).to_contain_text("SchedulingGates")
    expect(page.locator("[data-rows=unschedulable]")).to_contain_text("NodeResourcesFit")
    expect(page.locator("#connection")).to_have_text("Live.")
    expect(page.get_by_role("region", name="activeQ")).to_be_hidden()
    scheduler.create(make_pod("huge", cpu="32"))
    link = page.locator("[data-rows=unschedulable], [data-rows=backoff]").get_by_role("link", name="default/huge")
    expect(link).to_be_visible()
    assert page.evaluate("performance.getEntriesByType('navigation').length") == 1


# All streams get the same documents. When this one has two with the name, that of the page has the first at least.
SECOND_DOCUMENT_WITH = """(name) => new Promise((resolve) => {
    let count = 0;
    const events = new EventSource("/ui/events/decisions");
    events.onmessage = (event) => {
        if (event.data.includes(name) && ++count === 2) {
            events.close();
            resolve();
        }
    };
})"""


def test_a_live_page_shows_a_watch_that_is_lost_meanwhile(open_page: OpenPage, scheduler: LiveScheduler) -> None:
    page = open_page("nodes/n1", **READER_OPTIONS)
    rows: dict[str, list[str]] = {"active": [], "backoff": [], "unschedulable": [], "gated": []}
    document = {"texts": {}, "rows": rows, "lines": {}, "problems": ["the watch of pods is lost"]}
    event = f"retry: 600000\ndata: {json.dumps(document)}\n\n"
    page.route("**/events/queue", lambda route: route.fulfill(body=event, content_type="text/event-stream"))
    page.goto(f"{scheduler.url}queue")
    expect(page.locator("#problems .warning")).to_have_text("the watch of pods is lost")
    expect(page.locator("#problems")).to_have_role("alert")


def test_a_paused_page_is_not_updated(open_page: OpenPage, scheduler: LiveScheduler) -> None:
    page = open_page("decisions", **READER_OPTIONS)
    expect(page.locator("#connection")).to_have_text("Live.")
    page.get_by_role("button", name="Pause").click()
    expect(page.locator("#connection")).to_have_text("Paused.")
    scheduler.create(make_pod("unseen"))
    scheduler.wait_for("decisions", "default/unseen")
    expect(page.get_by_role("link", name="default/unseen")).to_have_count(0)
    page.get_by_role("button", name="Continue").click()
    expect(page.get_by_role("link", name="default/unseen")).to_have_count(1)


def test_a_continued_page_shows_the_newest_document_without_waiting_for_the_next(
    open_page: OpenPage, scheduler: LiveScheduler
) -> None:
    page = open_page("decisions", **READER_OPTIONS)
    expect(page.locator("#connection")).to_have_text("Live.")
    page.get_by_role("button", name="Pause").click()
    scheduler.create(make_pod("meanwhile"))
    page.evaluate(SECOND_DOCUMENT_WITH, "default/meanwhile")
    assert (
        page.evaluate("""() => {
        document.getElementById("pause").click();
        return [...document.links].filter((link) => link.textContent === "default/meanwhile").length;
    }""")
        == 1
    )


def test_a_paused_page_that_connects_again_is_still_paused(open_page: OpenPage, scheduler: LiveScheduler) -> None:
    """A stream ends after ten minutes, and when the server is started again."""
    page = open_page("waiting", **READER_OPTIONS)
    held = HeldAnswers(page, "**/events/queue")
    page.goto(f"{scheduler.url}queue")
    page.get_by_role("button", name="Pause").click()
    held.take().fulfill(body="retry: 1\n\n", content_type="text/event-stream")
    again = held.take()
    lost = re.compile(r"^Not live, as of \d\d:\d\d:\d\d UTC\. Connecting again\.$")
    expect(page.locator("#connection.lost")).to_have_text(lost)
    again.continue_()
    expect(page.locator("#connection:not(.lost)")).to_have_text("Paused.")


HIDE = "Object.defineProperty(document, 'hidden', { get: () => !window.isBack });"
COME_BACK = "window.isBack = true; document.dispatchEvent(new Event('visibilitychange'))"


def test_a_page_that_was_hidden_is_read_again_when_the_reader_comes_back(
    open_page: OpenPage, scheduler: LiveScheduler
) -> None:
    page = open_page("nodes/n1", **READER_OPTIONS)
    page.add_init_script(HIDE)
    event = 'retry: 600000\ndata: {"version": 1}\n\n'
    page.route("**/events/changes", lambda route: route.fulfill(body=event, content_type="text/event-stream"))
    page.goto(f"{scheduler.url}waiting")
    expect(page.locator("#connection")).to_have_text("Connecting.")
    with page.expect_response("**/ui/waiting"):
        page.evaluate(COME_BACK)


def test_hidden_tabs_leave_the_connections_of_the_browser_to_the_shown_one(
    open_page: OpenPage, scheduler: LiveScheduler
) -> None:
    """Chromium opens at most six connections to a server; a seventh tab with a stream would never load."""
    first = open_page("nodes/n1", **READER_OPTIONS)
    first.context.add_init_script(HIDE)
    for _ in range(7):
        page = first.context.new_page()
        page.goto(f"{scheduler.url}queue")
        expect(page.locator("#connection")).to_have_text("Connecting.")
    page.evaluate(COME_BACK)
    expect(page.locator("#connection")).to_have_text("Live.")
    page.evaluate("window.isBack = false; document.dispatchEvent(new Event('visibilitychange'))")
    page.evaluate("document.getElementById('connection').textContent = ''")
    page.evaluate(COME_BACK)
    expect(page.locator("#connection")).to_have_text("Live.")


def test_decisions_are_shown_with_their_node_and_time(open_page: OpenPage, scheduler: LiveScheduler) -> None:
    page = open_page("decisions", **READER_OPTIONS)
    expect(page.locator("#connection")).to_have_text("Live.")
    scheduler.create(make_pod("decided"))
    row = page.get_by_role("row").filter(has_text="default/decided")
    expect(row).to_contain_text("scheduled")
    expect(row.get_by_role("link", name="n")).to_have_attribute("href", re.compile("^/ui/nodes/n[12]$"))
    expect(page.locator("[data-line=rate]")).to_have_attribute("points", re.compile(r"^0\.0,"))
    assert int(page.locator("[data-line=rate]").get_attribute("points").count(",")) == 60  # type: ignore[union-attr]
    expect(page.locator("[data-text=cache-age]")).to_contain_text(" s")


def test_the_live_pages_are_read_without_javascript(open_page: OpenPage) -> None:
    page = open_page("queue", java_script_enabled=False, **READER_OPTIONS)
    expect(page.locator("[data-rows=gated]")).to_contain_text("default/held")
    expect(page.locator("#connection")).to_have_text("This page is not updated without JavaScript.")


def test_an_open_stream_does_not_delay_the_end_of_the_process(tmp_path: Path, browser: Browser) -> None:
    with run_live_scheduler(tmp_path, make_node("n1")) as running:
        page = browser.new_page(**READER_OPTIONS)
        page.goto(f"{running.url}queue")
        expect(page.locator("#connection")).to_have_text("Live.")
        assert running.process.stop() == 0
        page.close()
    assert "timeout graceful shutdown exceeded" not in running.process.output()  # uvicorn ended no stream by force


def test_the_pages_cluster_and_waiting_pods_follow_the_cluster(open_page: OpenPage, tmp_path: Path) -> None:
    """The page is not loaded again: its content is replaced, and the link with the focus keeps it."""
    with run_live_scheduler(tmp_path, make_node("n1"), make_pod("large", cpu="16")) as running:
        running.wait_for("waiting", "default/large")
        waiting = open_page(f"{running.url}waiting", **READER_OPTIONS)
        cluster = open_page(running.url, **READER_OPTIONS)
        expect(waiting.locator("#connection")).to_have_text("Live.")
        expect(cluster.locator("#connection")).to_have_text("Live.")
        waiting.get_by_role("link", name="default/large").focus()
        cluster.get_by_label("Colour by").select_option("memory")
        running.create(make_node("n2"), make_pod("huge", cpu="32"))
        expect(waiting.get_by_role("link", name="default/huge")).to_be_visible()
        expect(waiting.get_by_role("link", name="default/large")).to_be_focused()
        expect(waiting.locator("[data-since]").first).to_contain_text(" s")
        expect(cluster.get_by_role("heading", level=1)).to_have_text("2 nodes")
        assert cluster.get_by_label("Colour by").input_value() == "memory"
        for page in (waiting, cluster):
            assert page.evaluate("performance.getEntriesByType('navigation').length") == 1
            page.close()


def test_the_pages_cluster_and_waiting_pods_are_paused(open_page: OpenPage, tmp_path: Path) -> None:
    """The document that a stream gets after the change has reached the paused pages, too."""
    with run_live_scheduler(tmp_path, make_node("n1"), make_pod("large", cpu="16")) as running:
        running.wait_for("waiting", "default/large")
        waiting = open_page(f"{running.url}waiting", **READER_OPTIONS)
        cluster = open_page(running.url, **READER_OPTIONS)
        for page in (waiting, cluster):
            expect(page.locator("#connection")).to_have_text("Live.")
            page.get_by_role("button", name="Pause").click()
            expect(page.locator("#connection")).to_have_text("Paused.")
        running.create(make_pod("huge", cpu="32"))
        other = open_page(f"{running.url}waiting", **READER_OPTIONS)
        expect(other.get_by_role("heading", level=1)).to_have_text("2 waiting pods")
        expect(other.locator("#connection")).to_have_text("Live.")
        expect(waiting.get_by_role("heading", level=1)).to_have_text("1 waiting pod")
        expect(cluster.get_by_role("link", name="1 pod waits")).to_be_visible()
        for page in (waiting, cluster):
            page.get_by_role("button", name="Continue").click()
        expect(waiting.get_by_role("heading", level=1)).to_have_text("2 waiting pods")
        expect(cluster.get_by_role("link", name="2 pods wait")).to_be_visible()
        for page in (waiting, cluster, other):
            page.close()


def test_a_change_is_announced_only_where_something_changed(open_page: OpenPage, tmp_path: Path) -> None:
    """A screen reader announces each change inside of an element with the role status, also of the same text."""
    with run_live_scheduler(tmp_path, make_node("n1"), make_pod("web")) as running:
        running.wait_for("pods/default/web", "is on node n1")
        page = open_page(running.url, **READER_OPTIONS)
        expect(page.get_by_role("heading", level=1)).to_have_text("1 node")  # the first document may be older
        expect(page.locator("#connection")).to_have_text("Live.")
        page.locator("#cells").focus()
        page.keyboard.press("Home")
        expect(page.locator("#selected")).to_contain_text(re.compile(r"; 1 pod\b"))
        expect(page.locator("#selected")).to_contain_text("default/web")
        page.locator("#selected a").focus()
        page.evaluate(COUNT_CHANGES, "selected")
        page.evaluate("() => { window.problems = document.getElementById('problems'); }")
        running.create(make_pod("large", cpu="16"))
        with page.expect_response("**/data/nodes/n1"):
            expect(page.get_by_role("link", name="1 pod waits")).to_be_visible()
        assert page.evaluate("[window.changeCount, window.problems.isConnected]") == [0, True]
        running.create(make_pod("later"))
        expect(page.locator("#selected")).to_contain_text("; 2 pods")
        expect(page.locator("#selected a")).to_be_focused()
        page.close()


def test_a_page_connects_again_after_an_error_of_a_proxy(browser: Browser, scheduler: LiveScheduler) -> None:
    page = browser.new_page(**READER_OPTIONS)
    page.clock.install()
    page.route("**/events/changes", lambda route: route.fulfill(status=502), times=1)
    page.goto(f"{scheduler.url}waiting")
    expect(page.locator("#connection.lost")).to_contain_text("Connecting again.")
    page.clock.fast_forward(10_000)
    expect(page.locator("#connection:not(.lost)")).to_have_text("Live.")
    page.close()


def test_a_page_that_cannot_be_read_again_says_so_once(browser: Browser, scheduler: LiveScheduler) -> None:
    """It has the time of what it shows, and is not live for a moment at each event."""
    page = browser.new_page(**READER_OPTIONS)
    page.goto(f"{scheduler.url}waiting")
    expect(page.locator("#connection")).to_have_text("Live.")
    page.route("**/ui/waiting", lambda route: route.fulfill(status=500))
    scheduler.create(make_pod("unread", cpu="64"))
    lost = re.compile(r"^As of \d\d:\d\d:\d\d UTC\. The page cannot be read again: status 500\.$")
    expect(page.locator("#connection.lost")).to_have_text(lost)
    page.evaluate(COUNT_CHANGES, "connection")
    with page.expect_response("**/ui/waiting"):
        pass
    expect(page.locator("#connection.lost")).to_have_text(lost)
    assert page.evaluate("window.changeCount") == 0
    page.unroute_all()
    expect(page.locator("#connection")).to_have_text("Live.")
    expect(page.get_by_role("link", name="default/unread")).to_be_visible()
    page.close()


def test_a_question_is_answered_beside_the_scheduler(open_page: OpenPage, scheduler: LiveScheduler) -> None:
    page = open_page("what-if?add=1&like=n1", **READER_OPTIONS)
    page.locator("html[data-ready=true]").wait_for(state="attached")
    expect(page.locator("#command")).to_have_text("extender what-if --add 1 --like n1")
    expect(page.get_by_role("region", name="Totals").get_by_role("row").nth(1)).to_contain_text("2")
    expect(page.locator("main")).to_contain_text("the same question within 30 seconds has the same answer")
    assert scheduler.get("data/cluster")[1].count("n1-new-1") == 0


def test_the_time_of_each_plugin_is_shown(open_page: OpenPage, scheduler: LiveScheduler) -> None:
    scheduler.create(make_pod("timed"))
    page = open_page("decisions", **READER_OPTIONS)
    row = page.get_by_role("row").filter(has_text="default/timed")
    expect(row).to_contain_text(re.compile(r"[A-Z][A-Za-z]+ \d+\.\d\d ms"))
    expect(page.get_by_role("region", name="Time per plugin")).to_contain_text("NodeResourcesFit")


def test_the_documentation_shows_the_decisions(open_page: OpenPage, scheduler: LiveScheduler, tmp_path: Path) -> None:
    """With UI_SCREENSHOTS set, as `make screenshots` does, the picture of the documentation is written."""
    scheduler.create(*(make_pod(f"shown-{number}", cpu="10m") for number in range(6)))
    scheduler.wait_for("decisions", "default/shown-5")
    page = open_page("decisions", **READER_OPTIONS)
    expect(page.locator("#connection")).to_have_text("Live.")
    folder = ROOT / "docs" / "ui" if os.environ.get("UI_SCREENSHOTS") else tmp_path
    assert page.screenshot(path=folder / "decisions.png").startswith(b"\x89PNG")
    assert (ROOT / "docs" / "ui" / "decisions.png").exists()
