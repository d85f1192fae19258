"""What fits into the width of a page, in a real browser."""

import json
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.ui.conftest import OpenPage, run_ui
from tests.ui.live_scheduler import READER_OPTIONS, make_node, make_pod, run_live_scheduler
from tests.ui.test_pages_in_browser import wait_until_drawn

LONG_NODE = "ip-10-0-11-{}.eu-central-1.compute.internal"
"""A name as AWS gives it."""

COUNT_LINES = """(links) => links.map((link) => Math.round(
    link.getBoundingClientRect().height / parseFloat(getComputedStyle(link).lineHeight)
))"""

FIND_CUT_CELLS = """(region) => [...region.querySelectorAll("th, td")]
    .filter((cell) => cell.getBoundingClientRect().right > region.getBoundingClientRect().right + 1)
    .map((cell) => cell.textContent)"""

FIND_CUT_HINTS = """(inputs) => inputs.filter((input) => {
    const hint = new OffscreenCanvas(1, 1).getContext("2d");
    const style = getComputedStyle(input);
    hint.font = style.font;
    const arrow = input.list ? 24 : 0; // Chromium's, of the list of suggestions
    const width = input.clientWidth - parseFloat(style.paddingLeft) - parseFloat(style.paddingRight) - arrow;
    return hint.measureText(input.placeholder).width > width;
}).map((input) => input.placeholder)"""


def test_a_long_name_of_a_node_has_one_line_beside_four_plugins(open_page: OpenPage, tmp_path: Path) -> None:
    taint = {"key": "dedicated", "value": "database", "effect": "NoSchedule"}
    specs: tuple[dict[str, object], ...] = ({}, {"taints": [taint]}, {"unschedulable": True})
    items: list[dict[str, object]] = []
    for number in range(60):
        status = {"allocatable": {"cpu": "1" if number % 2 else "4", "pods": "5"}}
        meta, spec = {"name": LONG_NODE.format(100 + number)}, specs[number % 3]
        items.append({"apiVersion": "v1", "kind": "Node", "metadata": meta, "spec": spec, "status": status})
    pod = make_pod("large", cpu="2", nodeSelector={"disk": "ssd"})
    file = tmp_path / "long.json"
    file.write_text(json.dumps({"apiVersion": "v1", "kind": "List", "items": [*items, pod]}))
    with run_ui("-f", str(file)) as address:
        page = open_page(f"{address}pods/default/large")
        assert page.locator("#matrix thead th").count() == 5
        assert set(page.locator("#matrix th a").evaluate_all(COUNT_LINES)) == {1}
        assert page.get_by_role("region", name="Every plugin").evaluate(FIND_CUT_CELLS) == []
        page.close()


def test_a_decision_with_long_names_has_its_message_on_the_page(open_page: OpenPage, tmp_path: Path) -> None:
    node, pod = LONG_NODE.format(7), make_pod("prometheus-kube-prometheus-operator-7d9f8c6b5d-x2x4z")
    with run_live_scheduler(tmp_path, make_node(node), pod, make_pod("large", cpu="16")) as running:
        running.wait_for("decisions", node)
        running.wait_for("decisions", "Insufficient cpu")
        page = open_page(f"{running.url}decisions", **READER_OPTIONS)
        assert page.get_by_role("region", name="Last attempts").evaluate(FIND_CUT_CELLS) == []
        page.close()


def test_a_name_of_a_node_with_a_hyphen_has_one_line_beside_its_scores(open_page: OpenPage) -> None:
    page = open_page("pods/shop/api-7f4b-g3ypl")
    assert set(page.locator("#scores th a").evaluate_all(COUNT_LINES)) == {1}


@pytest.mark.parametrize("width", [360, 768, 1200, 1920])
def test_no_hint_of_the_form_is_cut(open_page: OpenPage, width: int) -> None:
    page = open_page("what-if", viewport={"width": width, "height": 800})
    assert page.locator("input[placeholder]").evaluate_all(FIND_CUT_HINTS) == []


def test_the_use_of_a_resource_is_seen_on_a_narrow_page(open_page: OpenPage) -> None:
    for path in ("", "nodes/gpu-a1"):
        page = open_page(path, viewport={"width": 360, "height": 800})
        wait_until_drawn(page)
        box = page.locator(".use").first.bounding_box()
        assert box is not None
        assert box["x"] + box["width"] <= 344


FIND_WIDE_LINKS = """(region) => [...region.querySelectorAll("th a")]
    .filter((link) => link.getBoundingClientRect().right > link.closest("th").getBoundingClientRect().right)
    .map((link) => link.textContent)"""

RECORD_TITLES = """
    window.titles = [];
    const fillText = CanvasRenderingContext2D.prototype.fillText;
    CanvasRenderingContext2D.prototype.fillText = function (text, x, y) {
        if (x === 0) window.titles.push([text, this.measureText(text).width]);
        return fillText.call(this, text, x, y);
    };
"""


@pytest.fixture(scope="module")
def long_url(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """Two nodes with the longest possible names and labels, and a pod that fits on one of them."""
    items: list[dict[str, object]] = [make_pod("small", cpu="2")]
    for cpu in ("1", "4", "8"):
        meta = {"name": cpu.rjust(253, "n"), "labels": {"topology.kubernetes.io/zone": "z" * 63}}
        status = {"allocatable": {"cpu": cpu, "pods": "5", f"{'example.' * 30}com/{'r' * 63}": "1"}}
        items.append({"apiVersion": "v1", "kind": "Node", "metadata": meta, "status": status})
    file = tmp_path_factory.mktemp("long") / "long.json"
    file.write_text(json.dumps({"apiVersion": "v1", "kind": "List", "items": items}))
    with run_ui("-f", str(file)) as address:
        yield address


@pytest.mark.parametrize("width", [320, 1200])
@pytest.mark.parametrize("name", ["Scores", "Every plugin on every node"])
def test_the_longest_name_of_a_node_stays_in_its_cell(
    open_page: OpenPage, long_url: str, name: str, width: int
) -> None:
    page = open_page(f"{long_url}pods/default/small", viewport={"width": width, "height": 800})
    region = page.get_by_role("region", name=name)
    assert region.locator("th a").count() >= 2
    assert region.evaluate(FIND_WIDE_LINKS) == []
    cells = region.locator("th:has(a)").evaluate_all("(cells) => cells.map((cell) => cell.clientWidth)")
    assert max(cells) <= width


def test_the_longest_name_of_a_resource_leaves_room_beside_its_list(open_page: OpenPage, long_url: str) -> None:
    page = open_page(long_url)
    wait_until_drawn(page)
    boxes = [page.get_by_label(label).bounding_box() for label in ("Colour by", "Group by", "Find nodes")]
    assert len({round(box["y"] + box["height"] / 2) // 10 for box in boxes if box}) == 1


def test_the_title_of_a_block_has_its_number_of_nodes_on_a_narrow_page(open_page: OpenPage, long_url: str) -> None:
    page = open_page("", viewport={"width": 320, "height": 800})
    page.add_init_script(RECORD_TITLES)
    page.goto(long_url)
    wait_until_drawn(page)
    title, width = page.evaluate("window.titles.at(-1)")
    assert re.fullmatch(r"z+\.\.\. \(3\)", title)
    assert width <= 288
