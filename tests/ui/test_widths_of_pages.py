"""What fits into the width of a page, in a real browser."""

import json
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
