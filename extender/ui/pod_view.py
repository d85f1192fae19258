"""The contents of the page of a pod, made from the values that `extender explain -o json` prints."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from textwrap import dedent
from typing import Any

import msgspec

from extender.analysis.explain import PodReport
from extender.analysis.explanation.near_misses import MAX_EXAMINED_NODES, NearMiss, find_near_misses
from extender.analysis.explanation.node_text import format_node_lines
from extender.analysis.explanation.plain_reasons import summarize_rejections
from extender.analysis.text_table import format_count
from extender.api.kinds.pod import Pod
from extender.config.did_you_mean import did_you_mean
from extender.ui.waiting_view import find_waiting_start, format_owner

BAR_WIDTH = 1000
"""The width of the highest total, in units of the drawing."""

_SHOWN_NODES = 10
_MAX_SHOWN_NODES = 500
"""A page with more nodes would be larger than a megabyte."""


@dataclass(frozen=True, slots=True)
class Segment:
    """The weighted score of one plugin on one node, as a part of the bar.

    Attributes:
        number: the position of the plugin among the plugins, which selects the colour.
        raw: the score of the plugin.
        normalized: the score from 0 to 100.
        weighted: the normalized score times the weight.
        start: where the segment begins, in units of the drawing.
        width: the width in these units.
    """

    plugin: str
    number: int
    raw: int
    normalized: int
    weighted: int
    start: float
    width: float


@dataclass(frozen=True, slots=True)
class ScoredNode:
    """A feasible node with its total score and the segments of its bar.

    Attributes:
        total: the sum of the weighted scores.
        is_best: whether no node has a higher total.
        is_assigned: whether the pod is on this node.
        segments: one segment per plugin.
    """

    name: str
    total: int
    is_best: bool
    is_assigned: bool
    segments: tuple[Segment, ...]


@dataclass(frozen=True, slots=True)
class Gain:
    """The lead of the best node over the next node in the scores of one plugin."""

    plugin: str
    weighted: int


@dataclass(frozen=True, slots=True)
class ScoreView:
    """The scores of the shown nodes.

    Attributes:
        nodes: the nodes, the highest total first.
        best: the nodes with the highest total.
        next_node: the first node with a lower total; empty if all totals are equal.
        margin: the highest total minus the total of `next_node`; 0 if `next_node` is empty.
        gains: the plugins that made the difference, the largest gain first.
    """

    plugins: tuple[str, ...]
    nodes: tuple[ScoredNode, ...]
    feasible_count: int
    best: tuple[str, ...]
    next_node: str
    margin: int
    gains: tuple[Gain, ...]


def make_score_view(values: Mapping[str, Any], *, show_all: bool) -> ScoreView | None:
    """Return the scores in the *values* of an explanation; None if no node has a score.

    *values* are those that `extender explain -o json` prints. With *show_all* the best 500 nodes are shown, instead of
    the best ten. The pod's own node is always shown.
    """
    scores = values["scores"]
    if not scores:
        return None
    best = tuple(values["best"])
    assigned = values["assigned"]["node"] if values["assigned"] else ""
    names = sorted(scores, key=lambda name: (-scores[name]["total"], name))
    shown_names = names[: _MAX_SHOWN_NODES if show_all else _SHOWN_NODES]
    if assigned in scores and assigned not in shown_names:
        shown_names = [*shown_names, assigned]
    scale = BAR_WIDTH / max(scores[names[0]]["total"], 1)
    next_node = next((name for name in names if scores[name]["total"] < scores[names[0]]["total"]), "")
    return ScoreView(
        tuple(scores[names[0]]["plugins"]),
        tuple(
            ScoredNode(name, scores[name]["total"], name in best, name == assigned, _make_segments(scores[name], scale))
            for name in shown_names
        ),
        len(scores),
        best,
        next_node,
        scores[names[0]]["total"] - scores[next_node]["total"] if next_node else 0,
        _list_gains(scores[names[0]], scores[next_node]) if next_node else (),
    )


def _make_segments(score: Mapping[str, Any], scale: float) -> tuple[Segment, ...]:
    segments = []
    start = 0.0
    for number, (plugin, parts) in enumerate(score["plugins"].items()):
        width = round(max(parts["weighted"], 0) * scale, 1)
        segments.append(
            Segment(plugin, number, parts["raw"], parts["normalized"], parts["weighted"], round(start, 1), width)
        )
        start += width
    return tuple(segments)


def _list_gains(best: Mapping[str, Any], other: Mapping[str, Any]) -> tuple[Gain, ...]:
    gains = [
        Gain(plugin, parts["weighted"] - other["plugins"][plugin]["weighted"])
        for plugin, parts in best["plugins"].items()
    ]
    return tuple(sorted((gain for gain in gains if gain.weighted), key=lambda gain: -gain.weighted))


MAX_NAMES = 6
"""The number of nodes of a group that the page names before it is unfolded."""

_MAX_NEAR_MISSES = 5
_SHOWN_CANDIDATES = 20
_MAX_SHOWN_CANDIDATES = 1000


@dataclass(frozen=True, slots=True)
class Cell:
    """The result of one plugin for the nodes of a group.

    Attributes:
        code: the code of the rejection; empty if the plugin accepts the nodes.
        is_first: whether this plugin decides the status of the nodes, because it is the first that rejects them.
        deciding_reasons: the reasons in this status, if they differ from `reasons`, as for an error.
    """

    plugin: str
    code: str = ""
    reasons: tuple[str, ...] = ()
    is_first: bool = False
    deciding_reasons: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class NodeRow:
    """Nodes with the same results of all plugins: a row of the matrix.

    Attributes:
        number: the position of the row, from 0.
        names: the names of the shown nodes.
        cells: one cell per column.
        is_feasible: whether no plugin rejects the nodes.
    """

    number: int
    count: int
    names: tuple[str, ...]
    cells: tuple[Cell, ...]
    is_feasible: bool


@dataclass(frozen=True, slots=True)
class PodView:
    """The contents of the page of a pod.

    Attributes:
        key: `namespace/name`.
        values: the values that `extender explain -o json` prints for the pod.
        state: `placed`, `fits`, `gated`, `failed` or `waits`.
        headline: one sentence about the state.
        plugins: the columns of the matrix: the plugins that reject a node.
        rows: the rows of the matrix, the nodes with the fewest rejections first.
        near_misses: the rejected nodes that are closest to being feasible.
        examined_count: the number of nodes among which they were found; 0 if these are all rejected nodes.
        scores: the scores of the feasible nodes; None if there are none.
        candidates: the shown candidates of preemption by node, the best first.
        is_unfolded: whether everything was requested, up to the limits of a page.
        node: the node whose results are shown apart; empty without one.
        node_text: all results of this node, or that it does not exist.
        text: the output of `extender explain` for the pod.
        owner: the kind and the name of the controller; empty without one.
        since: since when the pod waits; None if it is placed, or if the object does not have a time.
        event: what happened at that time.
    """

    key: str
    pod: Pod
    values: Mapping[str, Any]
    state: str
    headline: str
    plugins: tuple[str, ...]
    rows: tuple[NodeRow, ...]
    near_misses: tuple[NearMiss, ...]
    examined_count: int
    scores: ScoreView | None
    candidates: Mapping[str, Mapping[str, Any]]
    is_unfolded: bool
    node: str
    node_text: str
    text: str
    owner: str
    since: datetime | None
    event: str


def make_pod_view(report: PodReport, pod: Pod, *, unfold: str = "", node: str = "") -> PodView:
    """Return the contents of the page of a pod.

    Args:
        report: the explanation.
        pod: the object.
        unfold: the number of the row whose nodes are all shown; `all` shows all nodes, and more scores and candidates.
        node: the node whose results are shown apart; empty without one.
    """
    values = report.to_values()
    plugins = tuple(dict.fromkeys(plugin for node in values["nodes"].values() for plugin in node["filters"]))
    near_misses = find_near_misses(report.explanation, report.snapshot, _MAX_NEAR_MISSES)
    state = _get_state(report, values)
    return PodView(
        pod.key,
        pod,
        values,
        state,
        _make_headline(report, values, state),
        plugins,
        _make_rows(values["nodes"], plugins, unfold),
        tuple(near_misses) if state == "waits" else (),
        0 if all(near_miss.is_complete for near_miss in near_misses) else MAX_EXAMINED_NODES,
        make_score_view(values, show_all=unfold == "all"),
        _select_candidates(values["preemption"], _MAX_SHOWN_CANDIDATES if unfold == "all" else _SHOWN_CANDIDATES),
        unfold == "all",
        node,
        _format_node(report, node),
        report.to_text(),
        format_owner(pod),
        *((None, "") if state == "placed" else find_waiting_start([pod])),
    )


def _format_node(report: PodReport, node: str) -> str:
    if node and node not in report.snapshot.names:
        return f"There is no node {node}{did_you_mean(node, report.snapshot.names)}"
    return dedent("\n".join(format_node_lines(report.explanation, report.snapshot, node))) if node else ""


def _select_candidates(preemption: Mapping[str, Any] | None, count: int) -> dict[str, Mapping[str, Any]]:
    """Return the first candidates: the nominated node, then the others by name."""
    if preemption is None:
        return {}
    candidates = preemption["candidates"]
    names = sorted(candidates, key=lambda name: (name != preemption["nominatedNode"], name))
    return {name: candidates[name] for name in names[:count]}


def _make_rows(nodes: Mapping[str, Mapping[str, Any]], plugins: Sequence[str], unfold: str) -> tuple[NodeRow, ...]:
    groups: dict[bytes, list[str]] = {}
    for name, node in nodes.items():
        groups.setdefault(msgspec.json.encode(node), []).append(name)
    sorted_groups = sorted(groups.values(), key=lambda names: (len(nodes[names[0]]["filters"]), -len(names), names[0]))
    return tuple(
        NodeRow(
            number,
            len(names),
            tuple(names if unfold in ("all", str(number)) else names[:MAX_NAMES]),
            tuple(_make_cell(nodes[names[0]], plugin) for plugin in plugins),
            not nodes[names[0]]["filters"],
        )
        for number, names in enumerate(sorted_groups)
    )


def _make_cell(node: Mapping[str, Any], plugin: str) -> Cell:
    rejection = node["filters"].get(plugin)
    if rejection is None:
        return Cell(plugin)
    first_failure, reasons = node["firstFailure"], tuple(rejection["reasons"])
    if first_failure is None or first_failure["plugin"] != plugin:
        return Cell(plugin, rejection["code"], reasons)
    deciding_reasons = tuple(first_failure["reasons"])
    return Cell(
        plugin,
        rejection["code"],
        reasons,
        is_first=True,
        deciding_reasons=() if deciding_reasons == reasons else deciding_reasons,
    )


def _get_state(report: PodReport, values: Mapping[str, Any]) -> str:
    if values["assigned"] is not None:
        return "placed"
    if values["preEnqueue"] is not None:
        return "gated"
    if report.has_error:
        return "failed"
    return "fits" if report.fits else "waits"


def _make_headline(report: PodReport, values: Mapping[str, Any], state: str) -> str:
    node_count = format_count(len(report.explanation.node_names), "node")
    match state:
        case "placed":
            lines = report.assigned_node.format_lines() if report.assigned_node is not None else []
            return "; ".join([f"is on node {values['assigned']['node']}", *lines])
        case "gated":
            return f"is not enqueued, because of {values['preEnqueue']['plugin']}"
        case "failed":
            return "is not scheduled: an error ends the attempt"
        case "fits":
            count = len(values["feasible"])
            return f"fits on {count} of {node_count}" + ("; it only has to be scheduled" if count else "")
    if values["feasible"]:
        return f"fits on {len(values['feasible'])} of {node_count}, but its pod group waits"
    summary = summarize_rejections(report.explanation)
    return f"fits on none of {node_count}" + (f": {summary}" if summary else "")
