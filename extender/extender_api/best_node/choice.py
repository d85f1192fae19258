"""Choose the best of the requested nodes for a pod, as the scheduling cycle does.

A caller that gets only one node from filter neither scores nodes nor calls prioritize.

Source: pkg/scheduler/schedule_one.go, Scheduler.schedulePod (1.36).
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum
from random import Random
from typing import Any, NamedTuple

import numpy as np

from extender.cache.pod_info import PodInfo
from extender.cycle.diagnosis import find_nodes_that_pass_filters
from extender.cycle.pre_enqueue import run_pre_enqueue_plugins
from extender.cycle.score import prioritize_nodes, select_index
from extender.extender_api.requested_nodes import RequestedNodes
from extender.framework.profiles import Profile
from extender.framework.status import Status


class FilterAnswer(Enum):
    """The nodes in the answer of filter."""

    FEASIBLE = "feasible"
    """All nodes that fit the pod."""
    BEST = "best"
    """The one node that the profile would select."""


class PluginScore(NamedTuple):
    """One plugin's score of one node.

    Attributes:
        normalized: the score after NormalizeScore, 0 to 100.
        weight: the weight of the plugin in the profile.
    """

    raw: int
    normalized: int
    weight: int


@dataclass(frozen=True, slots=True)
class NodeChoice:
    """The chosen node. It has no reference to a snapshot.

    Attributes:
        position: its position in the request.
        feasible_count: number of requested nodes that fit the pod.
        best_count: number of these nodes with the highest total; 1 if only one node fits.
        total: the sum of the weighted scores of the node; None if only one node fits, because it is not scored.
        scores_by_plugin: the scores of the node by plugin name.
        cycle_state: the state of PreFilter by plugin name.
    """

    node_name: str
    position: int
    feasible_count: int
    best_count: int = 1
    total: int | None = None
    scores_by_plugin: Mapping[str, PluginScore] = field(default_factory=dict)
    cycle_state: dict[str, Any] = field(default_factory=dict)


def choose_node(
    pod: PodInfo, profile: Profile, requested_nodes: RequestedNodes, rng: Random
) -> NodeChoice | Status | None:
    """Return the requested node with the highest total for *pod*; *rng* breaks ties.

    Returns:
        None if no requested node fits the pod; the status of an error if a plugin failed.
    """
    snapshot, runtime = requested_nodes.snapshot, requested_nodes.runtime
    if run_pre_enqueue_plugins(pod, snapshot, profile, runtime) is not None:
        return None
    diagnosis = find_nodes_that_pass_filters(pod, snapshot, profile, runtime)
    if diagnosis.error is not None:
        return diagnosis.error
    feasible = requested_nodes.make_row_mask()
    feasible &= diagnosis.feasible
    rows = feasible.nonzero()[0]
    if not len(rows):
        return None
    cycle_state = dict(diagnosis.pre_filter_run.cycle_state)
    if len(rows) == 1:
        row = rows.item()
        return NodeChoice(snapshot.names[row], _find_position(requested_nodes, row), 1, cycle_state=cycle_state)
    ranking = prioritize_nodes(pod, snapshot, profile, runtime, feasible, diagnosis.pre_filter_run)
    if ranking.error is not None:
        return ranking.error
    best_rows = ranking.find_best_rows()
    row = best_rows.item(select_index(len(best_rows), rng))
    index = int(ranking.rows.searchsorted(row))
    scores = ranking.node_scores.get_row(row) if ranking.node_scores is not None else {}
    return NodeChoice(
        snapshot.names[row],
        _find_position(requested_nodes, row),
        len(rows),
        len(best_rows),
        ranking.totals.item(index),
        {name: PluginScore(*values) for name, values in scores.items()},
        cycle_state,
    )


def _find_position(requested_nodes: RequestedNodes, row: int) -> int:
    return int(np.argmax(requested_nodes.rows == row))
