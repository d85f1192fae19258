"""Count how many more copies of a pod fit into a cluster, find what stops the next copy, and format the result."""

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from typing import Final

import numpy as np

from extender.analysis.permit_simulation import Attempt
from extender.analysis.pod_placer import PodPlacer
from extender.analysis.text_table import format_count, format_table, join_first
from extender.answers.planning import FitCount, StoppingNodes
from extender.answers.reason_codes import list_reason_codes
from extender.api.kinds.pod import Pod
from extender.cache.cache import Cache
from extender.cycle.decision import ScheduleFailure
from extender.cycle.diagnosis import Diagnosis
from extender.planning.departures import make_pending_pod


def count_fitting_copies(
    cache: Cache, pod: Pod, placer: PodPlacer, *, limit: int, progress: Callable[[int], None] | None = None
) -> FitCount:
    """Place copies of *pod* until one does not fit. Then take all copies off their nodes.

    Pods without a node use no resources, except pods that are nominated in *cache*. No pod is evicted.

    Args:
        cache: the cache with the cluster. After the call it has the same pods as before.
        pod: the pod to copy; its node, its status and its uid are ignored.
        placer: a new placer of *cache*, with a profile for the pod's scheduler name.
        limit: the maximum number of copies, at least 1.
        progress: called after each placed copy with the number of copies; None means no call.
    """
    nodes: list[str] = []
    failed_attempt: Attempt | None = None
    names = list(cache.names)
    copies: list[Pod] = []
    while failed_attempt is None and len(nodes) < limit:
        copy = make_copy(pod, len(nodes))
        attempt = placer.place(copy)
        if attempt.node:
            nodes.append(attempt.node)
            copies.append(copy)
            if progress is not None:
                progress(len(nodes))
        else:
            failed_attempt = attempt
    placer.unassign_placed_pods()
    for copy in copies:
        cache.remove_pod(copy.metadata.uid)
    counts = sorted(Counter(nodes).items(), key=lambda item: (-item[1], item[0]))
    return FitCount(
        pod.key,
        len(nodes),
        failed_attempt is None,
        nodes[-1] if nodes else None,
        dict(counts),
        _group_reasons(failed_attempt, names),
        None if failed_attempt is None else failed_attempt.message,
    )


def _group_reasons(failed_attempt: Attempt | None, names: list[str]) -> list[StoppingNodes]:
    if failed_attempt is None:
        return []
    if failed_attempt.failure is None:
        return [make_stopping_nodes(failed_attempt.reasons, (), ())]
    return group_rejecting_nodes(failed_attempt.failure, names)


def make_copy(pod: Pod, number: int) -> Pod:
    """Return a pending copy of *pod* with its own name and uid."""
    name = f"{pod.metadata.name}-{number}"
    return make_pending_pod(pod, name, f"copy-of/{pod.metadata.namespace}/{name}")


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


_MAX_GROUPS: Final = 10


def format_fit(result: FitCount, note: str = "") -> str:
    """Return the report about one pod: the number, *note*, what stops the next copy, and the copies by node."""
    lines = [_format_first_line(result), *([note] if note else [])]
    if result.last is not None:
        lines.append(f"The last copy is on {result.last}.")
    if result.message is not None:
        lines += ["", "What stops the next copy", *format_node_groups(result.stopped_by), "", result.message]
    if result.placed:
        lines += ["", "Copies by node", *_format_copies(result.placed)]
    return "\n".join(lines) + "\n"


def _format_first_line(result: FitCount) -> str:
    key = result.pod
    if result.limit_reached:
        return f"At least {format_copies(result.fits, key)}; the count stopped at the limit."
    if not result.fits:
        return f"No copy of {key} fits."
    return f"{format_copies(result.fits, key)}."


def format_copies(count: int, key: str) -> str:
    """Return a sentence without a full stop: `3 more copies of default/web fit`."""
    return f"1 more copy of {key} fits" if count == 1 else f"{count} more copies of {key} fit"


def format_node_groups(groups: Sequence[StoppingNodes]) -> list[str]:
    """Return one line for each group of nodes: the number of nodes, their reasons, and the first names."""
    rows = [
        (
            format_count(len(group.nodes), "node") if group.nodes else "",
            ", ".join(group.reasons),
            join_first(group.nodes),
        )
        for group in groups[:_MAX_GROUPS]
    ]
    omitted_count = len(groups) - _MAX_GROUPS
    more = [f"  and {format_count(omitted_count, 'group')} more"] if omitted_count > 0 else []
    return format_table(rows, right_aligned=[0]) + more


def _format_copies(copies_by_node: Mapping[str, int]) -> list[str]:
    """Return one line for each number of copies: the nodes with that number."""
    nodes_by_count: dict[int, list[str]] = {}
    for node, count in copies_by_node.items():
        nodes_by_count.setdefault(count, []).append(node)
    rows = [
        (str(count), f"on each of {len(nodes)} nodes" if len(nodes) > 1 else "on 1 node", join_first(nodes))
        for count, nodes in nodes_by_count.items()
    ]
    omitted_count = len(rows) - _MAX_GROUPS
    more = [f"  and {format_count(omitted_count, 'other number')} of copies"] if omitted_count > 0 else []
    return format_table(rows[:_MAX_GROUPS], right_aligned=[0]) + more


def format_fit_table(results: Sequence[FitCount]) -> str:
    """Return a table with one line for each pod: the number of copies, the last node, and the most frequent reason."""
    rows = [("POD", "FITS", "LAST NODE", "STOPPED BY")]
    for result in results:
        first_group = result.stopped_by[0] if result.stopped_by else None
        reason = "the limit" if first_group is None else ", ".join(first_group.reasons)
        if first_group is not None and first_group.nodes:
            reason += f" on {format_count(len(first_group.nodes), 'node')}"
        other_count = len(result.stopped_by) - 1
        if other_count > 0:
            reason += f", and {format_count(other_count, 'other group')} of nodes"
        rows.append((result.pod, str(result.fits), result.last or "-", reason))
    return "\n".join(format_table(rows, right_aligned=[1], indent="")) + "\n"
