"""Group the nodes that reject a pod by their reasons."""

from collections.abc import Sequence

import numpy as np

from extender.answers.planning import StoppingNodes
from extender.answers.reason_codes import list_reason_codes
from extender.cycle.decision import ScheduleFailure
from extender.cycle.diagnosis import Diagnosis


def make_stopping_nodes(reasons: Sequence[str], plugins: Sequence[str], nodes: Sequence[str]) -> StoppingNodes:
    """Return the nodes that reject a pod for the same reasons, with the codes of the reasons."""
    return StoppingNodes(list(reasons), list_reason_codes(reasons), list(plugins), len(nodes), list(nodes))


def group_rejecting_nodes(failure: ScheduleFailure, names: Sequence[str]) -> list[StoppingNodes]:
    """Return the nodes of a failed attempt in groups of equal reasons, the largest group first.

    If an error ended the attempt, or if PreFilter rejected the pod, there is one group with this reason.

    *names* are those of all nodes by row.
    """
    diagnosis = failure.diagnosis
    status = diagnosis.error or diagnosis.pre_filter_run.status
    if status is not None and (status.reasons or not diagnosis.rejections):
        plugins = (status.plugin,) if status.plugin else ()
        nodes = names if diagnosis.error is None else ()
        return [make_stopping_nodes(status.reasons or (status.message,), plugins, nodes)]
    if diagnosis.node_count == 0:
        return [make_stopping_nodes((failure.message,), (), ())]
    return sorted(_group_rows(diagnosis, names), key=lambda group: (-group.count, group.reasons))


def _group_rows(diagnosis: Diagnosis, names: Sequence[str]) -> list[StoppingNodes]:
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
        nodes = [names[row] for row in rejected_rows[group_of_row == number].tolist()]
        if rejections:
            plugins = tuple(dict.fromkeys(rejection.plugin for rejection in rejections))
            groups.append(make_stopping_nodes([rejection.reason.text for rejection in rejections], plugins, nodes))
        else:  # excluded by PreFilter plugins
            run = diagnosis.pre_filter_run
            groups.append(make_stopping_nodes((run.excluded_reason,), run.restricting_plugins, nodes))
    return groups
