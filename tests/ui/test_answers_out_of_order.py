"""The map of the nodes when answers come late, in another order, or not at all, in a real browser."""

import json
from collections.abc import Iterator
from typing import Any

import pytest
from playwright.sync_api import Browser, Page, expect

from tests.ui.live_scheduler import LiveScheduler, make_node, run_live_scheduler
from tests.ui.sent_events import (
    COUNT_CHANGES,
    HeldAnswers,
    answer_with,
    open_with_streams,
    read_cluster,
    send_change,
    send_same,
)


@pytest.fixture(scope="module")
def scheduler(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LiveScheduler]:
    """Three nodes without pods; n1 and n3 have a label."""
    labelled = [make_node("n1"), make_node("n3")]
    for node in labelled:
        node["metadata"]["labels"] = {"pool": "a"}
    with run_live_scheduler(tmp_path_factory.mktemp("scheduler"), *labelled, make_node("n2")) as running:
        running.wait_for("data/cluster", '"n3"')
        running.wait_for("data/cluster", '"n2"')
        yield running


def open_map(browser: Browser, scheduler: LiveScheduler) -> Page:
    """Open the map; no node is selected."""
    page = open_with_streams(browser, scheduler)
    page.locator("html[data-ready=true]").wait_for(state="attached")
    send_same(page)
    page.locator("#cells").focus()
    return page


def read_again(page: Page, document: str = "") -> None:
    """Let the page read itself again, with another document of the cluster if there is one."""
    if document:
        answer_with(page, "**/data/cluster", document)
    page.locator("#summary").evaluate("(summary) => { summary.dataset.version = 1; }")
    send_change(page)
    expect(page.locator("#summary[data-version='1']")).to_have_count(0)


def keep_only(document: dict[str, Any], name: str) -> None:
    """Remove all other nodes from the document of the page Cluster."""
    document["nodes"] = [name]
    for values in (*document["use"].values(), document["pods"], document["unschedulable"]):
        del values[1:]
    document["groups"] = {key: {"values": ["a"], "index": [0]} for key in document["groups"]}


def make_pods(*names: str) -> str:
    """The document of a node with pods."""
    return json.dumps({"pods": [{"pod": name} for name in names]})


def test_an_old_answer_about_a_node_does_not_replace_a_newer_one(browser: Browser, scheduler: LiveScheduler) -> None:
    page = open_map(browser, scheduler)
    held = HeldAnswers(page, "**/data/nodes/*")
    page.keyboard.press("Home")
    old = held.take()
    read_again(page)
    held.take().fulfill(body=make_pods("default/new"))
    expect(page.locator("#selected")).to_contain_text("default/new")
    page.evaluate(COUNT_CHANGES, "selected")
    with page.expect_event("requestfinished"):
        old.fulfill(body=make_pods("default/old"))
    page.evaluate("fetch('/ui/static/icon.svg').then((response) => response.text())")  # a later answer than that one
    assert page.evaluate("window.changeCount") == 0
    expect(page.locator("#selected")).to_contain_text("default/new")
    page.context.close()


def test_an_old_answer_about_a_node_is_not_shown_when_the_node_is_selected_later(
    browser: Browser, scheduler: LiveScheduler
) -> None:
    page = open_map(browser, scheduler)
    held = HeldAnswers(page, "**/data/nodes/n1")
    page.keyboard.press("Home")
    old = held.take()
    page.keyboard.press("ArrowRight")
    read_again(page)
    with page.expect_event("requestfinished", lambda request: request.url.endswith("/n1")):
        old.fulfill(body=make_pods("default/old"))
    page.keyboard.press("Home")
    held.take().fulfill(body=make_pods("default/new"))
    expect(page.locator("#selected")).to_contain_text("default/new")
    page.context.close()


def test_the_pods_of_the_selected_node_are_read_although_other_nodes_go(
    browser: Browser, scheduler: LiveScheduler
) -> None:
    """The pods are read some time after the selection, when the node may have another position."""
    page = open_map(browser, scheduler)
    page.clock.install()
    page.reload()
    page.locator("html[data-ready=true]").wait_for(state="attached")
    send_same(page)
    page.locator("#cells").focus()
    requested: list[str] = []
    page.on(
        "request",
        lambda request: requested.append(request.url.rpartition("/")[2]) if "/nodes/" in request.url else None,
    )
    page.keyboard.press("End")

    selected = page.locator("#selected a").inner_text()
    with page.expect_request(f"**/data/nodes/{selected}"):
        read_again(page, read_cluster(scheduler, lambda document: keep_only(document, selected)))
    page.clock.fast_forward(200)
    expect(page.locator("#selected a")).to_have_text(selected)
    assert set(requested) == {selected}
    page.context.close()


def test_pods_that_cannot_be_read_again_are_not_shown_any_more(browser: Browser, scheduler: LiveScheduler) -> None:
    page = open_map(browser, scheduler)
    answer_with(page, "**/data/nodes/*", make_pods("default/old"))
    page.keyboard.press("Home")
    expect(page.locator("#selected")).to_contain_text("default/old")
    page.unroute_all()
    page.route("**/data/nodes/*", lambda route: route.fulfill(status=403))
    read_again(page)
    expect(page.locator("#selected")).to_contain_text("The pods cannot be read: status 403.")
    expect(page.locator("#selected")).not_to_contain_text("default/old")
    page.context.close()


def test_the_number_of_found_nodes_is_announced_only_when_it_changes(
    browser: Browser, scheduler: LiveScheduler
) -> None:
    page = open_map(browser, scheduler)
    page.get_by_label("Find nodes").fill("n1")
    expect(page.locator("#found")).to_have_text("1 found")
    page.evaluate(COUNT_CHANGES, "found")
    read_again(page)
    page.set_viewport_size({"width": 900, "height": 700})
    page.emulate_media(color_scheme="dark")
    page.get_by_label("Find nodes").fill("n")
    expect(page.locator("#found")).to_have_text("3 found")
    assert page.evaluate("window.changeCount") == 1
    page.context.close()


def test_the_pods_of_a_node_are_added_to_what_is_announced(browser: Browser, scheduler: LiveScheduler) -> None:
    """The use of the node, which a screen reader has read already, stays the same."""
    page = open_map(browser, scheduler)
    held = HeldAnswers(page, "**/data/nodes/*")
    page.keyboard.press("Home")
    answer = held.take()
    page.evaluate("window.link = document.querySelector('#selected a')")
    answer.fulfill(body=make_pods("default/web"))
    expect(page.locator("#selected")).to_contain_text("default/web")
    assert page.evaluate("window.link.isConnected")
    expect(page.locator("#selected")).to_have_attribute("aria-atomic", "false")
    page.context.close()


def test_a_list_of_choices_stays_open_when_it_does_not_change(browser: Browser, scheduler: LiveScheduler) -> None:
    """Chromium closes an open list when its choices are replaced."""
    page = open_map(browser, scheduler)
    page.evaluate("window.kept = [...document.querySelectorAll('#options option')]")
    read_again(page)
    assert page.evaluate("window.kept.every((option) => option.isConnected)")
    page.context.close()


def test_a_choice_comes_back_after_a_document_without_it(browser: Browser, scheduler: LiveScheduler) -> None:
    """A server that starts again may have no node yet."""
    page = open_map(browser, scheduler)
    page.get_by_label("Colour by").select_option("memory")
    page.get_by_label("Group by").select_option("pool")
    empty: dict[str, Any] = {"nodes": [], "use": {}, "pods": [], "unschedulable": [], "totals": []}
    empty["groups"] = {"taints": {"values": [], "index": []}}
    read_again(page, json.dumps(empty))
    expect(page.get_by_label("Group by").locator("option")).to_have_text(["taints", "nothing"])
    page.unroute_all()
    read_again(page)
    assert page.get_by_label("Colour by").input_value() == "memory"
    assert page.get_by_label("Group by").input_value() == "pool"
    page.context.close()


def test_the_focus_goes_to_the_map_when_the_selected_node_is_removed(
    browser: Browser, scheduler: LiveScheduler
) -> None:
    page = open_map(browser, scheduler)
    page.keyboard.press("Home")
    page.locator("#selected a").focus()

    def rename(document: dict[str, Any]) -> None:
        document["nodes"][document["nodes"].index("n1")] = "n9"

    read_again(page, read_cluster(scheduler, rename))
    expect(page.locator("#selected")).to_be_empty()
    expect(page.locator("#cells")).to_be_focused()
    page.context.close()
