"""First paint, size and frames per second of the pages of a large cluster, in Chromium.

    python tests/bench/ui.py [--nodes 5000] [--pods 50000] [--waiting 500]

Prints one JSON line per page: milliseconds from the request to the first paint and to the drawn map, and the bytes of
the document and of everything that the page loads. The last line has the frames per second while the pointer moves over
the map and while a pod's page and the answer of a question scroll.
"""

import argparse
import json
import os
import shutil
import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from playwright.sync_api import Page, sync_playwright

from tests.ui.conftest import PROGRAMS, run_ui

MARKS = """() => {
    const paint = performance.getEntriesByName("first-contentful-paint")[0];
    const resources = performance.getEntriesByType("resource");
    const page = performance.getEntriesByType("navigation")[0];
    return {
        response_ms: Math.round(page.responseEnd),
        first_paint_ms: Math.round(paint.startTime),
        document_bytes: page.decodedBodySize,
        bytes: page.decodedBodySize + resources.reduce((sum, entry) => sum + entry.decodedBodySize, 0),
    };
}"""
COUNT_FRAMES = """() => {
    window.frameTimes = [];
    const count = (time) => { window.frameTimes.push(time); requestAnimationFrame(count); };
    requestAnimationFrame(count);
}"""
FRAMES_PER_SECOND = """() => {
    const times = window.frameTimes;
    const gaps = times.slice(1).map((time, index) => time - times[index]).sort((a, b) => a - b);
    return {
        frames: times.length,
        frames_per_second: Math.round(1000 * (times.length - 1) / (times[times.length - 1] - times[0])),
        p95_frame_ms: Math.round(gaps[Math.floor(gaps.length * 0.95)]),
    };
}"""


def make_recording(nodes: int, pods: int, waiting: int) -> str:
    """A cluster in three zones and ten pools, whose last pods wait, half of them because no node is large enough."""
    return json.dumps(
        {
            "apiVersion": "v1",
            "kind": "List",
            "items": [
                *(make_node(number) for number in range(nodes)),
                *(make_pod(number, f"node-{number * 7919 % nodes:05}") for number in range(pods - waiting)),
                *(make_pod(number, "") for number in range(pods - waiting, pods)),
            ],
        }
    )


def make_node(number: int) -> dict[str, object]:
    labels = {"topology.kubernetes.io/zone": f"zone-{number % 3}", "example.com/pool": f"pool-{number % 10}"}
    taint = {"key": "dedicated", "value": "db", "effect": "NoSchedule"}
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": f"node-{number:05}", "labels": labels},
        "spec": {"taints": [taint]} if number % 10 == 0 else {},
        "status": {"allocatable": {"cpu": "16", "memory": "64Gi", "ephemeral-storage": "100Gi", "pods": "110"}},
    }


def make_pod(number: int, node: str) -> dict[str, object]:
    workload = number // 50
    cpu = f"{200 + number % 9 * 100}m" if node else "20" if workload % 2 else "2"
    owner = {"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": f"app-{workload}", "uid": "u", "controller": True}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "name": f"app-{workload}-{number}",
            "namespace": f"ns-{workload % 20}",
            "labels": {"app": f"app-{workload}"},
            "ownerReferences": [owner],
        },
        "spec": {"nodeName": node, "containers": [{"name": "a", "resources": {"requests": {"cpu": cpu}}}]},
    }


def measure_page(page: Page, address: str, name: str) -> None:
    """Print the marks of one page. The server has explained the pod before only if *name* says so."""
    page.goto(address)
    if page.locator(".map").count():
        page.locator("html[data-ready=true]").wait_for(state="attached")
    page.wait_for_function("performance.getEntriesByName('first-contentful-paint').length")
    drawn_ms = page.evaluate("Math.round(performance.now())")
    print(json.dumps({"page": name, **page.evaluate(MARKS), "drawn_ms": drawn_ms, "load": os.getloadavg()[0]}))


def measure_frames(page: Page, address: str, pod: str) -> None:
    """Print the frames per second while the pointer moves over the map, and while two pages scroll."""
    page.goto(address)
    page.locator("html[data-ready=true]").wait_for(state="attached")
    box = page.locator("#cells").bounding_box()
    assert box is not None
    page.evaluate(COUNT_FRAMES)
    for step in range(300):
        page.mouse.move(box["x"] + (step * 13) % box["width"], box["y"] + 25 + (step * 3) % (box["height"] - 30))
    print(json.dumps({"page": "hovering", **page.evaluate(FRAMES_PER_SECOND), "load": os.getloadavg()[0]}))
    for path, name in ((pod, "scrolling"), ("what-if?drain=node-00001", "scrolling the answer")):
        page.goto(f"{address}{path}")
        page.evaluate(COUNT_FRAMES)
        for step in range(100):
            page.mouse.wheel(0, 60 if step < 50 else -60)
            page.wait_for_timeout(16)
        print(json.dumps({"page": name, **page.evaluate(FRAMES_PER_SECOND), "load": os.getloadavg()[0]}))


def main() -> None:
    """Measure all pages."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--nodes", type=int, default=5000)
    parser.add_argument("--pods", type=int, default=50000)
    parser.add_argument("--waiting", type=int, default=500)
    options = parser.parse_args()
    last = options.pods - 1
    pods = [f"pods/ns-{number // 50 % 20}/app-{number // 50}-{number}" for number in (last, last - 50, 0)]
    with tempfile.TemporaryDirectory() as folder, sync_playwright() as playwright:
        file = Path(folder) / "cluster.json"
        file.write_text(make_recording(options.nodes, options.pods, options.waiting))
        program = next(filter(None, map(shutil.which, PROGRAMS)))
        with run_ui("-f", str(file)) as address:
            browser = playwright.chromium.launch(executable_path=program)
            page = browser.new_page(viewport={"width": 1280, "height": 900})
            names = {
                "": "cluster",
                pods[0]: "pod A",
                pods[1]: "pod B",
                pods[2]: "placed pod",
                "waiting": "waiting pods",
                "nodes/node-00001": "node",
                "what-if?drain=node-00001": "what if",
            }
            for path, name in names.items():
                measure_page(page, address + path, name)
            measure_page(page, f"{address}{pods[0]}?unfold=all", "pod A, everything unfolded")
            measure_frames(page, address, pods[0])
            browser.close()


if __name__ == "__main__":
    main()
