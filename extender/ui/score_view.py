"""The scores of the feasible nodes of a pod as stacked bars, and the plugins that decided between the best nodes."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

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
