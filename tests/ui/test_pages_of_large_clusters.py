"""The pages of clusters with many nodes or long names in a real browser, and a page that arrives in parts."""

import json
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from queue import SimpleQueue
from threading import Thread
from typing import ClassVar

import pytest
from playwright.sync_api import Browser, expect

from tests.ui.conftest import ROOT, OpenPage, run_ui
from tests.ui.test_pages_in_browser import VIEWS, wait_until_drawn


def test_long_names_do_not_widen_a_narrow_page(open_page: OpenPage, tmp_path: Path) -> None:
    name, label, resource = "n" * 253, "z" * 63, f"{'example.' * 31}com/{'r' * 63}"
    meta = {"name": name, "labels": {f"example.com/{label}": label}}
    node = {"metadata": meta, "status": {"allocatable": {"cpu": "1", "pods": "5", resource: "1"}}}
    containers = [{"name": "a", "resources": {"requests": {"cpu": "2"}}}]
    pod = {"metadata": {"name": name, "namespace": label}, "spec": {"containers": containers}}
    items = [{"apiVersion": "v1", "kind": "Node", **node}, {"apiVersion": "v1", "kind": "Pod", **pod}]
    file = tmp_path / "long.json"
    file.write_text(json.dumps({"apiVersion": "v1", "kind": "List", "items": items}))
    with run_ui("-f", str(file)) as address:
        page = open_page(address, viewport={"width": 320, "height": 640})
        of_pod, of_node = f"pods/{label}/{name}", f"nodes/{name}"
        for path in ("", "waiting", of_pod, of_node, f"what-if?add=1&like={name}", "search?q=n"):
            page.goto(f"{address}{path}")
            wait_until_drawn(page)
            assert (path, page.evaluate("document.documentElement.scrollWidth")) == (path, 320)
        page.close()


def test_the_pods_of_a_node_leave_room_for_the_map_on_a_narrow_page(open_page: OpenPage, tmp_path: Path) -> None:
    """Nine names of 253 characters are higher than the window. 40 % of it are scrolled."""
    node = {"metadata": {"name": "n"}, "status": {"allocatable": {"cpu": "1", "pods": "9"}}}
    items: list[dict[str, object]] = [{"apiVersion": "v1", "kind": "Node", **node}]
    for number in range(9):
        meta, spec = {"name": f"{number}".rjust(253, "p")}, {"nodeName": "n", "containers": [{"name": "a"}]}
        items.append({"apiVersion": "v1", "kind": "Pod", "metadata": meta, "spec": spec})
    file = tmp_path / "long.json"
    file.write_text(json.dumps({"apiVersion": "v1", "kind": "List", "items": items}))
    with run_ui("-f", str(file)) as address:
        page = open_page(address, viewport={"width": 360, "height": 700})
        wait_until_drawn(page)
        page.locator("#cells").focus()
        page.keyboard.press("Home")
        expect(page.locator("#selected")).to_contain_text("and 1 more")
        assert page.evaluate("document.getElementById('selected').clientHeight") == 280
        assert page.evaluate("document.getElementById('selected').scrollHeight") > 700
        page.close()


def make_large_recording(folder: Path, node_count: int) -> str:
    """The path of a recording of nodes that are nearly full; every second one is cordoned."""
    resources = {"cpu": "1", "memory": "10Gi", "pods": "5"}
    items: list[dict[str, object]] = []
    for number in range(node_count):
        name = f"node-{number:04}"
        spec = {"unschedulable": True} if number % 2 else {}
        node = {"metadata": {"name": name}, "spec": spec, "status": {"allocatable": resources}}
        containers = [{"name": "a", "resources": {"requests": {"cpu": "900m", "memory": "3Gi"}}}]
        pod = {"metadata": {"name": f"p{number}"}, "spec": {"nodeName": name, "containers": containers}}
        items += [{"apiVersion": "v1", "kind": "Node", **node}, {"apiVersion": "v1", "kind": "Pod", **pod}]
    file = folder / "large.json"
    file.write_text(json.dumps({"apiVersion": "v1", "kind": "List", "items": items}))
    return str(file)


READ_MIDDLE = """(left) => {
    const cells = document.getElementById("cells");
    const scale = cells.width / cells.clientWidth;
    return [...cells.getContext("2d").getImageData((left + 13) * scale, (20 + 13) * scale, 1, 1).data].slice(0, 3);
}"""


@pytest.mark.parametrize(("view", "line"), [("light", [255, 255, 255]), ("dark", [0, 0, 0])])
def test_the_line_through_a_cordoned_node_is_seen_on_every_colour(
    open_page: OpenPage, tmp_path: Path, view: str, line: list[int]
) -> None:
    """The cells have 28 pixels. The nodes are almost full, which is the darkest colour, or the brightest one."""
    with run_ui("-f", make_large_recording(tmp_path, 200)) as address:
        page = open_page(address, **VIEWS[view])
        wait_until_drawn(page)
        assert page.evaluate(READ_MIDDLE, 28) == line
        page.close()


def test_a_node_is_named_and_shown_on_a_map_that_is_higher_than_the_window(open_page: OpenPage, tmp_path: Path) -> None:
    with run_ui("-f", make_large_recording(tmp_path, 1500)) as address:
        page = open_page(address, viewport={"width": 720, "height": 450})  # 1,440 pixels at 200 %
        wait_until_drawn(page)
        page.locator("#cells").hover(position={"x": 5, "y": 25})
        expect(page.locator("#selected")).to_contain_text("node-0000: cpu 90%")
        expect(page.locator("#selected")).to_be_in_viewport(ratio=1)
        page.locator("#cells").focus()
        page.evaluate("scrollTo(0, 0)")
        page.keyboard.press("End")
        expect(page.locator("#selected")).to_contain_text("node-1499: cpu 90%")
        bottom, panel = page.evaluate("""() => [
            document.getElementById("cells").getBoundingClientRect().bottom,
            document.getElementById("selected").getBoundingClientRect().top,
        ]""")
        assert bottom - 10 <= panel + 1  # a gap of 10 pixels is below the last cell
        page.keyboard.press("Home")
        assert page.evaluate("document.getElementById('cells').getBoundingClientRect().top") >= -21
        page.close()


def test_a_row_of_5000_nodes_is_unfolded(open_page: OpenPage, tmp_path: Path) -> None:
    """In one line of text, the layout of so many links takes Chromium minutes, and the page does not load."""
    node = {"apiVersion": "v1", "kind": "Node", "status": {"allocatable": {"cpu": "1", "pods": "5"}}}
    items: list[dict[str, object]] = [{**node, "metadata": {"name": f"node-{number:04}"}} for number in range(5000)]
    containers = [{"name": "a", "resources": {"requests": {"cpu": "2"}}}]
    meta = {"name": "large", "namespace": "d"}
    items.append({"apiVersion": "v1", "kind": "Pod", "metadata": meta, "spec": {"containers": containers}})
    file = tmp_path / "large.json"
    file.write_text(json.dumps({"apiVersion": "v1", "kind": "List", "items": items}))
    with run_ui("-f", str(file)) as address:
        page = open_page(f"{address}pods/d/large")
        page.get_by_role("link", name="and 4994 more").click()
        expect(page.get_by_role("link", name="node-4999")).to_be_attached()
        page.close()  # a page that is still loading would report that the server ended


class PartsHandler(BaseHTTPRequestHandler):
    """Serves the style sheet, and a page in parts: each part is sent when the test releases it."""

    parts = (
        "<!doctype html><link rel=stylesheet href=style.css><main><h1>8 waiting pods</h1>",
        "<p class=progress>1 of 2</p>",
        "<p class=progress>2 of 2</p>",
        "<div>All</div></main>",
    )
    released: ClassVar[SimpleQueue[None]] = SimpleQueue()

    def do_GET(self) -> None:
        self.send_response(200)
        self.send_header("Content-Type", "text/css" if self.path == "/style.css" else "text/html")
        self.end_headers()
        if self.path == "/style.css":
            self.wfile.write((ROOT / "extender/ui/static/style.css").read_bytes())
        elif self.path == "/":
            for part in self.parts:
                self.wfile.write(part.encode())
                self.wfile.flush()
                self.released.get()

    def log_message(self, *_: object) -> None:
        """Print nothing."""


def test_the_progress_of_a_page_is_shown_until_the_rest_arrives(browser: Browser) -> None:
    """A browser applies some selectors, such as `:last-child`, only after the end of the page."""
    with ThreadingHTTPServer(("127.0.0.1", 0), PartsHandler) as server:
        Thread(target=server.serve_forever).start()
        page = browser.new_page()
        page.goto(f"http://127.0.0.1:{server.server_port}/", wait_until="commit")
        release = PartsHandler.released.put
        release(None)
        expect(page.get_by_text("1 of 2")).to_be_visible()
        release(None)
        expect(page.get_by_text("2 of 2")).to_be_visible()
        expect(page.get_by_text("1 of 2")).to_be_hidden()
        release(None)
        release(None)
        expect(page.get_by_text("All")).to_be_visible()
        expect(page.get_by_text("2 of 2")).to_be_hidden()
        page.close()
        server.shutdown()
