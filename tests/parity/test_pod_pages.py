"""The page of a pod shows what `extender explain -o json` prints, for every pod of all recorded scenarios."""

import re
from html import unescape
from pathlib import Path
from typing import Any
from xml.etree import ElementTree as ET

import msgspec
import pytest
from starlette.testclient import TestClient

from extender.analysis.recorded_cluster import read_recording
from extender.app import wiring
from extender.ui.page_source import RecordedSource
from extender.ui.pages import make_app
from tests.explain import explain_pods
from tests.parity import golden
from tests.parity.test_kube_scheduler import CATEGORIES

Values = dict[str, Any]


@pytest.mark.parametrize("name", golden.make_scenario_parameters(*CATEGORIES))
def test_the_page_of_each_pod_agrees_with_the_command_line(name: str, tmp_path: Path) -> None:
    """Compare the document with the output, and the tables of the page with the document."""
    file = tmp_path / f"{name}.json"
    file.write_bytes(golden.read_scenario(name))
    recording = read_recording([str(file)])
    setup = wiring.build_setup_from_document(recording.config, name) if recording.config else wiring.build_setup()
    runtime = wiring.make_runtime()
    names = (setup.first_profile.scheduler_name,)
    printed = {
        report.explanation.pod.key: msgspec.json.decode(msgspec.json.encode(report.to_values()))
        for key in golden.read_results(name)
        for report in explain_pods(recording, [key], setup.profiles, names, runtime)
    }
    client = TestClient(make_app(RecordedSource(recording, setup.profiles, runtime)))

    for key, want in printed.items():
        document = client.get(f"/ui/data/pods/{key}")
        assert document.json()["pods"] == {key: want}
        page = parse_page(client.get(f"/ui/pods/{key}?unfold=all").text)
        assert golden.find_differences(select_shown_values(want), page)[:10] == []


def select_shown_values(values: Values) -> Values:
    """Return the values that the tables of the page show."""
    return {
        "nodes": golden.remove_reason_codes(values["nodes"]),
        "feasible": values["feasible"] if values["nodes"] else [],
        "scores": values["scores"],
        "best": values["best"],
        "message": normalize_spaces(values["message"]) if values["message"] else None,
        "candidates": (values["preemption"] or {}).get("candidates", {}),
    }


def parse_page(html: str) -> Values:
    """Return the values in the tables of a page."""
    xml = re.sub(r"<!doctype html>|<(meta|link|input|wbr|button|/button)\b[^>]*>", "", unescape_spaces(html))
    root = ET.fromstring(xml)  # noqa: S314  our own page
    nodes = parse_matrix(find(root, "matrix"))
    message = find(root, "message")
    return {
        "nodes": dict(sorted(nodes.items())),
        "feasible": sorted(name for name, node in nodes.items() if not node["filters"]),
        **parse_scores(find(root, "scores")),
        "message": None if message is None else normalize_spaces(text_of(message)),
        "candidates": parse_candidates(find(root, "candidates")),
    }


def unescape_spaces(html: str) -> str:
    """Replace the entities that XML does not know."""
    return html.replace("&nbsp;", " ")


def normalize_spaces(text: str) -> str:
    return " ".join(unescape(text).split())


def find(root: ET.Element, identifier: str) -> ET.Element | None:
    return root.find(f".//*[@id='{identifier}']")


def text_of(element: ET.Element) -> str:
    return "".join(element.itertext())


def rows_of(table: ET.Element) -> list[list[ET.Element]]:
    return [list(row) for row in table.findall("tbody/tr")]


def links_of(cell: ET.Element) -> list[str]:
    return [text_of(link) for link in cell.findall(".//a")]


def parse_matrix(table: ET.Element | None) -> dict[str, Values]:
    if table is None:
        return {}
    plugins = [text_of(cell) for cell in table.findall("thead/tr/th")][1:]
    nodes: dict[str, Values] = {}
    for heading, *cells in rows_of(table):
        filters, first_failure = {}, None
        for plugin, cell in zip(plugins, cells, strict=True):
            code = cell.find("span[@class='code']")
            if code is None:
                continue
            reasons = [text_of(item) for item in cell.findall("ul/li")]
            filters[plugin] = {"code": text_of(code), "reasons": reasons}
            if "first" in cell.get("class", "").split():
                deciding = [text_of(item) for item in cell.findall("ol/li")] or reasons
                first_failure = {"code": text_of(code), "plugin": plugin, "reasons": deciding}
        names = links_of(heading)
        assert text_of(heading.findall("span")[0]) == str(len(names))
        nodes |= {name: {"filters": filters, "firstFailure": first_failure} for name in names}
    return nodes


def parse_scores(table: ET.Element | None) -> Values:
    if table is None:
        return {"scores": {}, "best": []}
    plugins = [text_of(cell) for cell in table.findall("thead/tr/th")][3:]
    scores: dict[str, Values] = {}
    best = []
    for row in table.findall("tbody/tr"):
        heading, total, _, *parts = list(row)
        (name,) = links_of(heading)
        scores[name] = {
            "total": int(text_of(total)),
            "plugins": {
                plugin: {key: int(part.get(f"data-{key}", "")) for key in ("raw", "normalized", "weighted")}
                for plugin, part in zip(plugins, parts, strict=True)
            },
        }
        best += [name] if row.get("class") == "best" else []
    return {"scores": scores, "best": sorted(best)}


def parse_candidates(table: ET.Element | None) -> Values:
    if table is None:
        return {}
    return {
        links_of(heading)[0]: {"victims": links_of(victims), "numPDBViolations": int(text_of(violations))}
        for heading, violations, victims in rows_of(table)
    }
