"""Group the nodes that reject a pod by their reasons."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from extender.answers.reason_codes import list_reason_codes
from extender.cycle.decision import ScheduleFailure
from extender.cycle.diagnosis import Diagnosis


@dataclass(frozen=True, slots=True)
class NodeGroup:
    """Nodes that reject a pod for the same reasons.

    Attributes:
        reasons: the reasons, in the order of the plugins.
        plugins: the names of the plugins with these reasons, each once.
        nodes: the names of the nodes, in the order of the cluster; empty if the reasons are not about nodes.
    """

    reasons: tuple[str, ...]
    plugins: tuple[str, ...]
    nodes: tuple[str, ...]

    def to_values(self) -> dict[str, Any]:
        """Return the group as plain values."""
        return {
            "reasons": list(self.reasons),
            "reasonCodes": list_reason_codes(self.reasons),
            "plugins": list(self.plugins),
            "count": len(self.nodes),
            "nodes": list(self.nodes),
        }


def group_rejecting_nodes(failure: ScheduleFailure, names: Sequence[str]) -> tuple[NodeGroup, ...]:
    """Return the nodes of a failed attempt in groups of equal reasons, the largest group first.

    If an error ended the attempt, or if PreFilter rejected the pod, there is one group with this reason.

    Args:
        failure: the failed attempt.
        names: the names of all nodes by row.
    """
    diagnosis = failure.diagnosis
    status = diagnosis.error or diagnosis.pre_filter_run.status
    if status is not None and (status.reasons or not diagnosis.rejections):
        plugins = (status.plugin,) if status.plugin else ()
        nodes = tuple(names) if diagnosis.error is None else ()
        return (NodeGroup(status.reasons or (status.message,), plugins, nodes),)
    if diagnosis.node_count == 0:
        return (NodeGroup((failure.message,), (), ()),)
    return tuple(sorted(_group_rows(diagnosis, names), key=lambda group: (-len(group.nodes), group.reasons)))


def _group_rows(diagnosis: Diagnosis, names: Sequence[str]) -> list[NodeGroup]:
    """Return one group for each distinct set of rejections."""
    rejected_rows = np.flatnonzero(~diagnosis.feasible)
    if not len(rejected_rows):
        return []
    masks = np.zeros((max(1, len(diagnosis.rejections)), len(rejected_rows)), dtype=np.bool_)
    for index, rejection in enumerate(diagnosis.rejections):
        masks[index] = rejection.nodes[rejected_rows]
    columns, group_of_column = np.unique(masks, axis=1, return_inverse=True)
    group_of_row = group_of_column.reshape(-1)
    groups = []
    for number in range(columns.shape[1]):
        rejections = [diagnosis.rejections[index] for index in np.flatnonzero(columns[:, number])]
        nodes = tuple(names[row] for row in rejected_rows[group_of_row == number].tolist())
        if rejections:
            plugins = tuple(dict.fromkeys(rejection.plugin for rejection in rejections))
            groups.append(NodeGroup(tuple(rejection.reason.text for rejection in rejections), plugins, nodes))
        else:  # excluded by PreFilter plugins
            run = diagnosis.pre_filter_run
            groups.append(NodeGroup((run.excluded_reason,), run.restricting_plugins, nodes))
    return groups
