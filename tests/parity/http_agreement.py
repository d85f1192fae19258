"""Whether the verbs over HTTP say of a recorded cluster what is known to be right: differences, one line each."""

from collections.abc import Mapping
from dataclasses import replace
from itertools import pairwise
from typing import Any

import msgspec
from starlette.testclient import TestClient

from extender import wiring
from extender.objects.node import Node
from extender.offline.capture import Capture, load_state
from extender.offline.waiting import nominate_waiting
from extender.process.backing import recorded
from extender.web.scaling import ScoreRange

Json = Mapping[str, Any]

_FINAL = "UnschedulableAndUnresolvable"


def client_for(capture: Capture, score_range: ScoreRange = ScoreRange.TEN) -> TestClient:
    """A client of an application that serves *capture* with the configuration it carries."""
    if capture.config is None:
        scheduling = wiring.scheduling()
    else:
        scheduling = wiring.from_builtins(capture.config, capture.config_place)
    state = load_state(capture)
    for profile in scheduling.profiles.values():
        nominate_waiting(state, profile, wiring.engine())
    return TestClient(recorded(scheduling, state, score_range).app)


def disagreements(capture: Capture, scenario: Json, golden: Json) -> list[str]:
    """What the verbs answer differently from *golden*, about every pod in it.

    Args:
        capture: the scenario, read.
        scenario: the same as plain values, for the pods as they are sent.
        golden: what is right, in the shape that `extender explain -o json` prints.
    """
    names = [thing.metadata.name for thing in capture.objects if isinstance(thing, Node)]
    sent = {f"{i['metadata']['namespace']}/{i['metadata']['name']}": i for i in scenario["items"] if i["kind"] == "Pod"}
    nodes = [item for item in scenario["items"] if item["kind"] == "Node"]
    elsewhere = replace(capture, objects=tuple(thing for thing in capture.objects if not isinstance(thing, Node)))
    known = client_for(capture), client_for(capture, ScoreRange.RAW)
    unknown = client_for(elsewhere), client_for(elsewhere, ScoreRange.RAW)
    found: list[str] = []
    for key, right in golden["pods"].items():
        by_names = {"Pod": sent[key], "Nodes": None, "NodeNames": names}
        by_nodes = {"Pod": sent[key], "Nodes": {"metadata": {}, "items": nodes}, "NodeNames": None}
        for form, body, (ten, raw) in (
            ("names", by_names, known),
            ("nodes", by_nodes, known),
            ("nodes that are unknown", by_nodes, unknown),
        ):
            where = f"{key} by {form}"
            found += [f"{where}: filter: {line}" for line in _filter(_post(ten, "/filter", body), right, names)]
            broke = (right["message"] or "").startswith('running "')  # then prioritize has no answer either
            if not broke and (right["scores"] or not right["feasible"]):
                totals = {node: scores["total"] for node, scores in right["scores"].items()}
                found += [f"{where}: {line}" for line in _totals(_post(raw, "/prioritize", body), totals, names)]
                found += [f"{where}: {line}" for line in _order(_post(ten, "/prioritize", body), totals)]
    return found


def _post(client: TestClient, path: str, body: Json) -> Any:
    response = client.post(path, content=msgspec.json.encode(body))
    assert response.status_code == 200, f"{path}: {response.status_code} {response.text}"
    return msgspec.json.decode(response.content)


def _filter(answer: Json, right: Json, names: list[str]) -> list[str]:
    if _is_error(right):
        return [] if answer["Error"] else ["want an Error"]
    kept = answer["NodeNames"]
    if kept is None:
        kept = [node["metadata"]["name"] for node in answer["Nodes"]["items"]]
    lines = [] if sorted(kept) == right["feasible"] else [f"feasible {sorted(kept)}, want {right['feasible']}"]
    for name in names:
        want = _refusal(right, name)
        got = _told(answer, name)
        if got != want:
            lines.append(f"{name}: {got}, want {want}")
    return lines


def _is_error(right: Json) -> bool:
    statuses = [right["preFilter"]["status"]] if right["preFilter"] else []
    statuses += [node["firstFailure"] for node in right["nodes"].values()]
    return any(status and status["code"] == "Error" for status in statuses)


def _refusal(right: Json, name: str) -> tuple[bool, list[str]] | None:
    """Whether a node is refused for good, and why; None for a feasible node."""
    if right["preEnqueue"] is not None:
        return True, sorted(right["preEnqueue"]["reasons"])
    before = right["preFilter"]
    if before["status"] is not None:
        return before["status"]["code"] == _FINAL, sorted(before["status"]["reasons"])
    if name not in right["nodes"]:
        return True, ["left out by PreFilter"]
    failure = right["nodes"][name]["firstFailure"]
    return None if failure is None else (failure["code"] == _FINAL, sorted(failure["reasons"]))


def _told(answer: Json, name: str) -> tuple[bool, list[str]] | None:
    for final, key in ((True, "FailedAndUnresolvableNodes"), (False, "FailedNodes")):
        text = answer[key].get(name)
        if text is not None:
            left_out = text.startswith("node(s) didn't satisfy plugin(s) [")
            return final, ["left out by PreFilter"] if left_out else sorted(text.split(", "))
    return None


def _totals(answer: list[Json], totals: Mapping[str, int], names: list[str]) -> list[str]:
    got = {each["Host"]: each["Score"] for each in answer}
    want = {name: totals.get(name, 0) for name in names}
    return [] if got == want else [f"totals {got}, want {want}"]


def _order(answer: list[Json], totals: Mapping[str, int]) -> list[str]:
    """No order turned round, no tie broken, best first, and nodes without a total below all others."""
    scores = {each["Host"]: each["Score"] for each in answer}
    listed = [totals.get(each["Host"], -1) for each in answer]
    lines = [] if listed == sorted(listed, reverse=True) else [f"listed in the order {listed}, want best first"]
    ranked = sorted(totals, key=totals.__getitem__)
    for lower, higher in pairwise(ranked):
        tied = totals[lower] == totals[higher]
        if scores[lower] > scores[higher] or (tied and scores[lower] != scores[higher]):
            lines.append(f"{lower} has {scores[lower]}, {higher} has {scores[higher]}, want the order of their totals")
    if any(not 0 <= score <= 10 for score in scores.values()):
        lines.append(f"scores out of range: {scores}")
    return lines
