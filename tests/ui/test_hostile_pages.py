"""Markup in objects, and pages of other sites, in a real browser."""

import json
from pathlib import Path

from playwright.sync_api import Browser, expect

from tests.ui.conftest import OpenPage, run_ui
from tests.unit.ui.test_pages import HOSTILE_TEXTS


def make_recording() -> str:
    """A cluster with markup in taints, labels, owners and gates. With a uid, objects are taken as recorded ones."""
    items: list[dict[str, object]] = [
        {
            "apiVersion": "v1",
            "kind": "Node",
            "metadata": {"name": f"n{number:02}", "uid": f"n{number}", "labels": {"pool": text}},
            "spec": {"taints": [{"key": text, "value": text, "effect": "NoSchedule"}]},
            "status": {"allocatable": {"cpu": "1", "pods": "5"}},
        }
        for number, text in enumerate(HOSTILE_TEXTS)
    ]
    items += [
        {
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {
                "name": f"p{number:02}",
                "namespace": "d",
                "uid": f"p{number}",
                "ownerReferences": [{"apiVersion": "v1", "kind": text, "name": text, "uid": "u", "controller": True}],
            },
            "spec": {"schedulingGates": [{"name": text}]} if number % 2 else {"nodeSelector": {"pool": text}},
        }
        for number, text in enumerate(HOSTILE_TEXTS)
    ]
    return json.dumps({"apiVersion": "v1", "kind": "List", "items": items})


def test_markup_in_objects_is_shown_as_text(open_page: OpenPage, tmp_path: Path) -> None:
    """The fixture fails if a script of an object runs, or if the policy blocks one."""
    file = tmp_path / "hostile.json"
    file.write_text(make_recording())
    with run_ui("-f", str(file)) as address:
        page = open_page(address)
        page.locator("html[data-ready=true]").wait_for(state="attached")
        page.get_by_label("Group by").select_option("taints")
        page.mouse.move(*map(float, (30, 500)))
        page.goto(f"{address}waiting")
        expect(page.get_by_text("<script>alert(1)</script>").first).to_be_visible()
        for number in range(len(HOSTILE_TEXTS)):
            page.goto(f"{address}pods/d/p{number:02}")
            expect(page.locator(".state")).to_be_visible()
            page.goto(f"{address}nodes/n{number:02}")
            elements = page.evaluate(
                "document.querySelectorAll('main :is(script, img, iframe, base, svg:not(.use))').length"
            )
            assert elements == 0
        page.goto(f"{address}what-if?add=1&like=n00")
        page.locator("html[data-ready=true]").wait_for(state="attached")
        page.get_by_label("Group by").select_option("taints")
        page.get_by_label("Map of the nodes after the changes").focus()
        page.keyboard.press("Home")
        expect(page.locator("#selected")).to_contain_text("cpu")
        page.close()  # a page that is still loading would report that the server ended


def test_a_long_name_does_not_hide_the_other_columns(open_page: OpenPage, tmp_path: Path) -> None:
    """A cell is at most 40rem wide, 640 pixels, and the name continues on the next line."""
    node = {"metadata": {"name": "n"}, "status": {"allocatable": {"cpu": "1", "pods": "5"}}}
    spec = {"containers": [{"name": "a", "resources": {"requests": {"cpu": "9"}}}]}
    pod = {"metadata": {"name": "p" * 253, "namespace": "n" * 63}, "spec": spec}
    items = [{"apiVersion": "v1", "kind": "Node", **node}, {"apiVersion": "v1", "kind": "Pod", **pod}]
    file = tmp_path / "long.json"
    file.write_text(json.dumps({"apiVersion": "v1", "kind": "List", "items": items}))
    with run_ui("-f", str(file)) as address:
        page = open_page(f"{address}what-if?add=1&like=n")
        page.locator("html[data-ready=true]").wait_for(state="attached")
        page.get_by_text("Waiting before and after (1)").click()
        box = page.get_by_role("region", name="Waiting before and after").locator("td").first.bounding_box()
        assert box is not None
        assert (round(box["width"]), box["height"] > 100) == (640, True)
        page.close()


def test_a_page_of_another_site_cannot_frame_the_pages(browser: Browser, url: str) -> None:
    """The browser replaces the framed page by an error page of its own."""
    page = browser.new_page()
    messages: list[str] = []
    page.on("console", lambda message: messages.append(message.text))
    page.set_content(f'<iframe src="{url}" width="600" height="400"></iframe>')
    page.wait_for_event("console", predicate=lambda message: "frame" in message.text) if not messages else None
    assert any("frame" in message.lower() for message in messages)
    assert "12 nodes" not in page.frames[1].content()
    page.close()
