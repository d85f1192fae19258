"""The pages of the demo's recorded cluster in a real browser."""

import json
import os
import re
from pathlib import Path

import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Page, expect

from tests.ui.conftest import ROOT, OpenPage, run_ui

PAGES = {
    "cluster": "",
    "waiting-pods": "waiting",
    "waiting-pod": "pods/shop/frontend-5d8c-k7wzd",
    "pod-that-fits": "pods/shop/api-7f4b-g3ypl",
    "placed-pod": "pods/shop/api-7f4b-c6jd2",
    "gated-pod": "pods/batch/import",
    "node": "nodes/gpu-a1",
    "search": "search?q=api",
    "what-if-form": "what-if",
    "what-if": "what-if?drain=general-a1&add=1&like=gpu-a1&strategy=MostAllocated",
    "what-if-error": "what-if?drain=general-a9",
}
VIEWS: dict[str, dict[str, object]] = {
    "light": {"color_scheme": "light"},
    "dark": {"color_scheme": "dark"},
}
SHOWN_IN_DOCS = {
    ("cluster", "light"),
    ("waiting-pods", "light"),
    ("waiting-pod", "light"),
    ("pod-that-fits", "dark"),
    ("what-if", "light"),
}


def wait_until_drawn(page: Page) -> None:
    """Wait until the map is drawn, if the page has one."""
    if page.locator(".map").count():
        page.locator("html[data-ready=true]").wait_for(state="attached")


@pytest.mark.parametrize("view", VIEWS)
@pytest.mark.parametrize("name", PAGES)
def test_a_page_is_accessible_and_prints_no_message(open_page: OpenPage, name: str, view: str) -> None:
    """Axe checks contrast, names, roles and structure. Its script needs a context without the page's policy."""
    page = open_page(PAGES[name], bypass_csp=True, **VIEWS[view])
    wait_until_drawn(page)
    results = Axe().run(page)
    assert [
        (violation["id"], [node["html"][:200] for node in violation["nodes"]])
        for violation in results.response["violations"]
    ] == []


@pytest.mark.parametrize("name", PAGES)
def test_a_page_works_with_its_own_policy(open_page: OpenPage, name: str) -> None:
    page = open_page(PAGES[name])
    wait_until_drawn(page)
    assert page.evaluate("getComputedStyle(document.querySelector('header')).display") == "flex"
    assert page.context.cookies() == []


@pytest.mark.parametrize("name", PAGES)
def test_a_narrow_page_scrolls_only_down(open_page: OpenPage, name: str) -> None:
    page = open_page(PAGES[name], viewport={"width": 320, "height": 640})
    wait_until_drawn(page)
    assert page.evaluate("document.documentElement.scrollWidth") <= 320


@pytest.mark.parametrize("name", PAGES)
def test_a_printed_page_loses_no_column(open_page: OpenPage, name: str) -> None:
    """Paper of the size A4 has 794 pixels, with margins of 38."""
    page = open_page(PAGES[name], viewport={"width": 718, "height": 1000})
    wait_until_drawn(page)
    page.emulate_media(media="print")
    assert page.evaluate("document.documentElement.scrollWidth") <= 718
    cells = page.evaluate("""() => [...document.querySelectorAll("th, td")].map((cell) => [
        cell.textContent,
        Math.ceil(cell.getBoundingClientRect().right),
    ])""")
    assert [cell for cell in cells if cell[1] > 718] == []


@pytest.mark.parametrize(("path", "colour"), [("", [0x0E, 0x31, 0x56]), ("what-if?drain=general-a1", None)])
def test_a_page_is_printed_in_the_light_scheme(open_page: OpenPage, path: str, colour: list[int] | None) -> None:
    """Paper is white, so text of the dark scheme would be too pale. general-c1 uses 90 % of its CPU."""
    page = open_page(path, color_scheme="dark")
    wait_until_drawn(page)
    page.emulate_media(color_scheme="dark", media="print")
    colours = page.evaluate("[getComputedStyle(document.body).color, getComputedStyle(document.body).backgroundColor]")
    assert colours == ["rgb(26, 32, 44)", "rgb(255, 255, 255)"]
    canvas = page.locator("canvas").first
    title = canvas.evaluate("(canvas) => [...canvas.getContext('2d').getImageData(0, 0, 60, 20).data]")
    assert min(title[index] for index in range(0, len(title), 4) if title[index + 3] == 255) < 64
    if colour:
        assert read_colour(page, 0, 2) == colour


@pytest.mark.parametrize(("name", "view"), sorted(SHOWN_IN_DOCS))
def test_the_documentation_shows_the_pages(open_page: OpenPage, name: str, view: str, tmp_path: Path) -> None:
    """With UI_SCREENSHOTS set, as `make screenshots` does, the pictures of the documentation are written."""
    height = 1300 if name == "what-if" else 800  # with both maps below the form
    page = open_page(PAGES[name], viewport={"width": 1200, "height": height}, **VIEWS[view])
    wait_until_drawn(page)
    folder = ROOT / "docs" / "ui" if os.environ.get("UI_SCREENSHOTS") else tmp_path
    picture = page.screenshot(path=folder / f"{name}.png")
    assert picture.startswith(b"\x89PNG")
    assert (ROOT / "docs" / "ui" / f"{name}.png").exists()


def test_two_clicks_lead_from_the_first_page_to_the_reason_why_a_pod_waits(open_page: OpenPage) -> None:
    page = open_page()
    page.get_by_role("link", name="8 pods wait: why?").click()
    page.get_by_role("link", name="shop/frontend-5d8c-k7wzd").click()
    expect(page.get_by_role("heading", level=1)).to_have_text("Pod shop/frontend-5d8c-k7wzd")
    expect(page.locator(".state")).to_contain_text("6 nodes would break its topology spread")
    expect(page.locator(".misses")).to_contain_text("wants 500m, but only 400m are free (100m short)")


def test_the_list_of_reasons_leads_to_the_pods_with_a_reason(open_page: OpenPage) -> None:
    page = open_page("waiting")
    reasons = page.get_by_role("navigation", name="Reasons")
    assert reasons.inner_text().split("\n")[0].startswith("a node fits now 2")
    reasons.get_by_role("link", name="not enqueued (SchedulingGates)").click()
    expect(page.get_by_role("link", name="batch/import")).to_be_in_viewport(ratio=1)


CELL_WIDTH = 166
"""The width of a cell: seven of them fill the map of a page with 1,200 pixels."""


def cell_point(page: Page, column: int, row: int) -> tuple[float, float]:
    """A point of a cell in the page: blocks of four nodes in cells of 40 pixels, below titles of 20 pixels."""
    box = page.locator("#cells").bounding_box()
    assert box is not None
    return box["x"] + column * CELL_WIDTH + 14, box["y"] + 20 + row * (40 + 20 + 10) + 14


def test_hovering_shows_what_is_on_a_node_and_a_click_opens_it(open_page: OpenPage) -> None:
    page = open_page()
    wait_until_drawn(page)
    page.mouse.move(*cell_point(page, 0, 0))
    expect(page.locator("#selected")).to_contain_text("general-a1: cpu")
    expect(page.locator("#selected")).to_contain_text("shop/api-7f4b-c6jd2")
    page.mouse.click(*cell_point(page, 3, 1))
    page.wait_for_url("**/ui/nodes/gpu-b1")
    expect(page.get_by_role("heading", level=1)).to_have_text("Node gpu-b1")


def test_the_map_is_used_with_the_keyboard(open_page: OpenPage) -> None:
    page = open_page()
    wait_until_drawn(page)
    page.locator("#cells").focus()
    page.keyboard.press("ArrowRight")
    expect(page.locator("#selected")).to_contain_text("general-a1:")
    page.keyboard.press("ArrowRight")
    expect(page.locator("#selected")).to_contain_text("general-a2:")
    page.keyboard.press("End")
    expect(page.locator("#selected")).to_contain_text("highmem-c1:")
    page.keyboard.press("Enter")
    page.wait_for_url("**/ui/nodes/highmem-c1")


def read_colour(page: Page, column: int, row: int) -> list[int]:
    """The red, green and blue of the corner of a cell, from the canvas."""
    colour: list[int] = page.evaluate(
        """([x, y]) => {
            const canvas = document.createElement("canvas");
            const context = canvas.getContext("2d", { willReadFrequently: true });
            context.drawImage(document.getElementById("cells"), -x, -y);
            return [...context.getImageData(0, 0, 1, 1).data].slice(0, 3);
        }""",
        [column * CELL_WIDTH + 2, 20 + row * 70 + 2],
    )
    return colour


def test_escape_closes_the_line_of_the_selected_node(open_page: OpenPage) -> None:
    """The focus goes from the link of the line back to the map. A pointer selects a node without the focus."""
    page = open_page()
    wait_until_drawn(page)
    page.locator("#cells").focus()
    page.keyboard.press("Home")
    page.locator("#selected a").focus()
    page.keyboard.press("Escape")
    expect(page.locator("#selected")).to_be_empty()
    expect(page.locator("#cells")).to_be_focused()
    page.locator("#find").focus()
    page.locator("#cells").hover(position={"x": 5, "y": 25})
    expect(page.locator("#selected")).to_contain_text("general-a1:")
    page.keyboard.press("Escape")
    expect(page.locator("#selected")).to_be_empty()


def test_escape_closes_the_line_of_a_node_before_and_after(open_page: OpenPage) -> None:
    page = open_page("what-if?drain=general-a1")
    wait_until_drawn(page)
    page.get_by_label("Map of the nodes after the changes").focus()
    page.keyboard.press("Home")
    page.locator("#selected a").focus()
    page.keyboard.press("Escape")
    expect(page.locator("#selected")).to_be_empty()
    expect(page.get_by_label("Map of the nodes before the changes")).to_be_focused()


@pytest.mark.parametrize("path", ["", "what-if?preempt=on"])
def test_a_cluster_without_nodes_has_no_map(open_page: OpenPage, tmp_path: Path, path: str) -> None:
    pod = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p"}, "spec": {"containers": [{"name": "a"}]}}
    file = tmp_path / "pods.json"
    file.write_text(json.dumps({"apiVersion": "v1", "kind": "List", "items": [pod]}))
    with run_ui("-f", str(file)) as address:
        page = open_page(f"{address}{path}")
        wait_until_drawn(page)
        expect(page.locator("#map-help")).to_be_attached()
        for part in ("#map-help", "#options", "#legend", "canvas"):
            assert [each.is_visible() for each in page.locator(part).all()].count(True) == 0, part
        page.close()


def test_cells_have_the_colour_of_the_use_of_the_chosen_resource(open_page: OpenPage) -> None:
    """general-c1 uses 90 % of its CPU; general-a1 has no GPU, and both GPUs of gpu-a1 are in use."""
    page = open_page(color_scheme="light")
    wait_until_drawn(page)
    assert read_colour(page, 0, 2) == [0x0E, 0x31, 0x56]
    page.get_by_label("Colour by").select_option("nvidia.com/gpu")
    assert read_colour(page, 0, 0) == [0x8B, 0x93, 0x9E]
    assert read_colour(page, 3, 0) == [0xB7, 0x41, 0x0E]


def test_the_address_has_the_options_of_the_map(open_page: OpenPage) -> None:
    page = open_page()
    wait_until_drawn(page)
    page.get_by_label("Colour by").select_option("memory")
    page.get_by_label("Group by").select_option("taints")
    page.get_by_label("Find nodes").fill("gpu")
    expect(page).to_have_url(re.compile("find=gpu$"))
    expect(page.get_by_role("status").filter(has_text="2 found")).to_be_visible()
    shared = open_page(page.url)
    wait_until_drawn(shared)
    assert shared.get_by_label("Colour by").input_value() == "memory"
    assert shared.get_by_label("Group by").input_value() == "taints"
    assert shared.get_by_label("Find nodes").input_value() == "gpu"


def test_a_map_that_cannot_be_read_says_why(open_page: OpenPage) -> None:
    page = open_page("waiting")
    page.route("**/data/cluster", lambda route: route.fulfill(body="<html>", content_type="text/html"))
    page.get_by_role("link", name="Cluster").click()
    expect(page.locator("#selected")).to_have_text(
        "The nodes cannot be read: the answer (text/html) is not JSON. Reload the page to try again."
    )


def test_the_search_finds_pods_and_nodes_from_every_page(open_page: OpenPage) -> None:
    page = open_page("waiting")
    page.get_by_role("searchbox", name="Name of a pod or node").fill("GPU-A")
    page.keyboard.press("Enter")
    page.get_by_role("link", name="gpu-a1").click()
    expect(page.get_by_role("heading", level=1)).to_have_text("Node gpu-a1")
    page.get_by_role("searchbox", name="Name of a pod or node").fill("GPU-B1")
    page.keyboard.press("Enter")
    expect(page.get_by_role("heading", level=1)).to_have_text("Node gpu-b1")


def test_the_first_key_leads_to_the_content(open_page: OpenPage) -> None:
    page = open_page("waiting")
    page.keyboard.press("Tab")
    expect(page.get_by_role("link", name="Skip to the content")).to_be_focused()
    page.keyboard.press("Enter")
    expect(page.locator("main")).to_be_focused()


def test_pods_are_explained_without_javascript(open_page: OpenPage) -> None:
    page = open_page(java_script_enabled=False)
    expect(page.get_by_label("Colour by")).to_be_hidden()
    expect(page.get_by_text("The arrow keys move between nodes")).to_be_hidden()
    page.get_by_role("link", name="8 pods wait: why?").click()
    page.get_by_role("link", name="batch/month-end").click()
    expect(page.locator("#matrix")).to_contain_text("Insufficient memory")


def test_the_form_leads_to_an_answer_with_an_address(open_page: OpenPage) -> None:
    page = open_page("nodes/general-a1")
    page.get_by_role("link", name="this node is drained").click()
    page.wait_for_url("**/ui/what-if?drain=general-a1#result")
    page.locator("html[data-ready=true]").wait_for(state="attached")  # the script removes empty fields
    page.get_by_label("Add nodes").fill("2")
    page.get_by_label("like the node").fill("gpu-a1")
    page.get_by_role("button", name="Answer").click()
    page.locator("html[data-ready=true]").wait_for(state="attached")
    expect(page).to_have_url(re.compile(r"/ui/what-if\?drain=general-a1&add=2&like=gpu-a1#result$"))
    expect(page.locator(".state")).to_contain_text("2 pods move")
    command = "extender what-if -f docs/examples/demo/cluster.yaml --drain general-a1 --add 2 --like gpu-a1"
    expect(page.locator("#command")).to_have_text(command)
    expect(page.get_by_role("region", name="Moves (2)")).to_contain_text("kube-system/coredns-7db6-5zklp")
    assert open_page(page.url).locator(".state").inner_text() == page.locator(".state").inner_text()


def test_the_maps_show_a_node_before_and_after(open_page: OpenPage) -> None:
    page = open_page("what-if?drain=general-a1&add=1&like=gpu-a1")
    page.locator("html[data-ready=true]").wait_for(state="attached")
    after = page.get_by_label("Map of the nodes after the changes")
    after.hover(position={"x": 20, "y": 30})
    expect(page.locator("#selected")).to_contain_text("general-a1: cpu 60% \u2192 0%")
    after.focus()
    page.keyboard.press("ArrowRight")
    page.keyboard.press("ArrowRight")
    page.keyboard.press("End")
    expect(page.locator("#selected")).not_to_contain_text("general-a1:")
    page.keyboard.press("Home")
    page.keyboard.press("Enter")
    page.wait_for_url("**/ui/nodes/general-a1")


def test_the_command_line_is_copied(open_page: OpenPage) -> None:
    page = open_page("what-if?drain=general-a1", permissions=["clipboard-read", "clipboard-write"])
    page.locator("html[data-ready=true]").wait_for(state="attached")
    page.get_by_role("button", name="Copy").click()
    expect(page.get_by_role("button", name="Copied")).to_be_visible()
    text = page.evaluate("navigator.clipboard.readText()")
    assert text == "extender what-if -f docs/examples/demo/cluster.yaml --drain general-a1"


def test_the_command_line_of_a_pod_is_copied(open_page: OpenPage) -> None:
    page = open_page("pods/batch/import", permissions=["clipboard-read", "clipboard-write"])
    page.get_by_role("button", name="Copy").click()
    expect(page.get_by_role("button", name="Copied")).to_be_visible()
    assert page.evaluate("navigator.clipboard.readText()") == (
        "extender explain -f docs/examples/demo/cluster.yaml batch/import"
    )


@pytest.mark.parametrize("width", [360, 1200])
def test_an_answer_is_seen_without_scrolling(open_page: OpenPage, width: int) -> None:
    """The form alone is higher than the window of a telephone."""
    page = open_page("nodes/general-a1", viewport={"width": width, "height": 800})
    page.get_by_role("link", name="this node is drained").click()
    expect(page.locator(".state")).to_be_in_viewport(ratio=1)
    page.locator("html[data-ready=true]").wait_for(state="attached")  # the script removes empty fields
    page.get_by_label("Add nodes").fill("1")
    page.get_by_label("like the node").fill("gpu-a1")
    page.get_by_role("button", name="Answer").click()
    page.wait_for_url("**like=gpu-a1#result")
    expect(page.locator(".state")).to_be_in_viewport(ratio=1)
    page.go_back()
    expect(page.get_by_label("Drain nodes")).to_have_value("general-a1")
    expect(page.get_by_label("like the node")).to_have_value("")


def test_a_question_is_answered_without_javascript(open_page: OpenPage) -> None:
    page = open_page("what-if", java_script_enabled=False)
    page.get_by_label("Lose all nodes with the label").fill("topology.kubernetes.io/zone=eu-1a")
    page.get_by_role("button", name="Answer").click()
    expect(page.locator(".state")).to_contain_text("left without a node")
    expect(page.get_by_role("row").filter(has_text="nodes").first).to_contain_text("12")
    expect(page.get_by_label("Colour by")).to_be_hidden()
