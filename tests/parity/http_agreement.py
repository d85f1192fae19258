"""Compare the verbs over HTTP with expected results for a recorded cluster."""

from collections.abc import Mapping
from dataclasses import replace
from itertools import pairwise
from typing import Any

import httpx2
import msgspec

from extender.analysis.pending_pods import nominate_pending_pods
from extender.analysis.recorded_cluster import Recording, load_cache
from extender.api.kinds.node import Node
from extender.app import wiring
from extender.app.options import ServeOptions
from extender.app.serve_backend import make_recorded_backend
from extender.config.feature_gates import FeatureGates
from extender.config.releases import Release
from extender.extender_api.score_scaling import ScoreRange
from extender.serving.serving_options import ServingOptions

Json = Mapping[str, Any]

_UNRESOLVABLE = "UnschedulableAndUnresolvable"


def _make_clients(recording: Recording, release: Release) -> tuple[httpx2.AsyncClient, httpx2.AsyncClient]:
    """Return clients of two applications that serve *recording* as *release*: scores up to ten, and totals."""
    gates = FeatureGates(release=release)
    if recording.config is None:
        setup = wiring.build_setup(gates=gates)
    else:
        setup = wiring.build_setup_from_document(recording.config, recording.config_location, gates)
    cache = load_cache(recording, gates)
    for profile in setup.profiles.values():
        nominate_pending_pods(cache, profile, wiring.make_runtime())
    options = ServeOptions(setup, cache, ServingOptions())
    ten, raw = (
        httpx2.AsyncClient(
            transport=httpx2.ASGITransport(make_recorded_backend(replace(options, score_range=score_range)).app),
            base_url="http://extender",
        )
        for score_range in (ScoreRange.TEN, ScoreRange.RAW)
    )
    return ten, raw


async def find_differences(recording: Recording, scenario: Json, golden: Json, release: Release) -> list[str]:
    """Return one line per difference between the verbs and *golden*, for every pod in it.

    Args:
        recording: the scenario.
        scenario: the same as plain values; its pods are pods_by_key.
        golden: the expected results, in the format of `extender explain -o json`.
        release: the release of the expected results.
    """
    names = [item.metadata.name for item in recording.objects if isinstance(item, Node)]
    pods = {f"{i['metadata']['namespace']}/{i['metadata']['name']}": i for i in scenario["items"] if i["kind"] == "Pod"}
    nodes = [item for item in scenario["items"] if item["kind"] == "Node"]
    without_nodes = replace(recording, objects=tuple(item for item in recording.objects if not isinstance(item, Node)))
    known_nodes, unknown_nodes = _make_clients(recording, release), _make_clients(without_nodes, release)
    lines: list[str] = []
    for key, expected in golden["pods"].items():
        by_names = {"Pod": pods[key], "Nodes": None, "NodeNames": names}
        by_nodes = {"Pod": pods[key], "Nodes": {"metadata": {}, "items": nodes}, "NodeNames": None}
        for form, body, (client, raw_client) in (
            ("names", by_names, known_nodes),
            ("nodes", by_nodes, known_nodes),
            ("unknown nodes", by_nodes, unknown_nodes),
        ):
            prefix = f"{key} by {form}"
            filter_lines = _compare_filter(await _post(client, "/filter", body), expected, names)
            lines += [f"{prefix}: filter: {line}" for line in filter_lines]
            has_error = (expected["message"] or "").startswith('running "')  # then prioritize has no result either
            if not has_error and (expected["scores"] or not expected["feasible"]):
                totals = {node: scores["total"] for node, scores in expected["scores"].items()}
                score_lines = _compare_totals(await _post(raw_client, "/prioritize", body), totals, names)
                score_lines += _compare_order(await _post(client, "/prioritize", body), totals)
                lines += [f"{prefix}: {line}" for line in score_lines]
    return lines


async def _post(client: httpx2.AsyncClient, path: str, body: Json) -> Any:
    response = await client.post(path, content=msgspec.json.encode(body))
    assert response.status_code == 200, f"{path}: {response.status_code} {response.text}"
    return msgspec.json.decode(response.content)


def _compare_filter(response: Json, expected: Json, names: list[str]) -> list[str]:
    if _is_error(expected):
        return [] if response["Error"] else ["want an Error"]
    feasible = response["NodeNames"]
    if feasible is None:
        feasible = [node["metadata"]["name"] for node in response["Nodes"]["items"]]
    lines = []
    if sorted(feasible) != expected["feasible"]:
        lines.append(f"feasible {sorted(feasible)}, want {expected['feasible']}")
    for name in names:
        want = _expected_rejection(expected, name)
        got = _reported_rejection(response, name)
        if got != want:
            lines.append(f"{name}: {got}, want {want}")
    return lines


def _is_error(expected: Json) -> bool:
    statuses = [expected["preFilter"]["status"]] if expected["preFilter"] else []
    statuses += [node["firstFailure"] for node in expected["nodes"].values()]
    return any(status and status["code"] == "Error" for status in statuses)


def _expected_rejection(expected: Json, name: str) -> tuple[bool, list[str]] | None:
    """Return whether the rejection is unresolvable, and its reasons; None for a feasible node."""
    if expected["preEnqueue"] is not None:
        return True, sorted(expected["preEnqueue"]["reasons"])
    pre_filter = expected["preFilter"]
    if pre_filter["status"] is not None:
        return pre_filter["status"]["code"] == _UNRESOLVABLE, sorted(pre_filter["status"]["reasons"])
    if name not in expected["nodes"]:
        return True, ["excluded by PreFilter"]
    failure = expected["nodes"][name]["firstFailure"]
    return None if failure is None else (failure["code"] == _UNRESOLVABLE, sorted(failure["reasons"]))


def _reported_rejection(response: Json, name: str) -> tuple[bool, list[str]] | None:
    for unresolvable, key in ((True, "FailedAndUnresolvableNodes"), (False, "FailedNodes")):
        text = response[key].get(name)
        if text is not None:
            by_pre_filter = text.startswith("node(s) didn't satisfy plugin(s) [")
            return unresolvable, ["excluded by PreFilter"] if by_pre_filter else sorted(text.split(", "))
    return None


def _compare_totals(response: list[Json], totals: Mapping[str, int], names: list[str]) -> list[str]:
    got = {item["Host"]: item["Score"] for item in response}
    want = {name: totals.get(name, 0) for name in names}
    return [] if got == want else [f"totals {got}, want {want}"]


def _compare_order(response: list[Json], totals: Mapping[str, int]) -> list[str]:
    """Compare the order of scores with that of totals: best first, ties stay ties, nodes without a total last."""
    scores = {item["Host"]: item["Score"] for item in response}
    host_totals = [totals.get(item["Host"], -1) for item in response]
    lines = [] if host_totals == sorted(host_totals, reverse=True) else [f"order {host_totals}, want best first"]
    ranked = sorted(totals, key=totals.__getitem__)
    for lower, higher in pairwise(ranked):
        tied = totals[lower] == totals[higher]
        if scores[lower] > scores[higher] or (tied and scores[lower] != scores[higher]):
            lines.append(f"{lower} has {scores[lower]}, {higher} has {scores[higher]}, want the order of their totals")
    if any(not 0 <= score <= 10 for score in scores.values()):
        lines.append(f"scores out of range: {scores}")
    return lines
