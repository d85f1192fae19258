"""Format the explanation of a pod as text: rejections and suggestions, or the best nodes with their scores."""

from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Final

from extender.analysis.explanation.assigned_pod import AssignedNode
from extender.analysis.explanation.explain_json import (
    get_preemption_plan,
    list_best_node_names,
    list_feasible_node_names,
)
from extender.analysis.explanation.near_misses import MAX_EXAMINED_NODES, find_near_misses
from extender.analysis.explanation.plain_reasons import summarize_rejections
from extender.analysis.text_table import format_count, format_table, join_first
from extender.api.kinds.meta import find_condition
from extender.api.kinds.pod import Pod
from extender.api.kinds.storage import PersistentVolume, PersistentVolumeClaim, StorageClass
from extender.basics.input_limits import shorten
from extender.cache.snapshot import Snapshot
from extender.cycle.explain_pod import PodExplanation
from extender.cycle.score import Ranking
from extender.preemption.plan import Candidate
from extender.volumes.assume_cache import is_volume_bound_to_claim
from extender.volumes.claims import (
    BIND_COMPLETED,
    NO_PROVISIONER,
    WAIT_FOR_FIRST_CONSUMER,
    get_claim_class,
    get_requested_storage,
    get_volume_capacity,
    get_volume_class,
    is_fully_bound,
    resolve_claim_uses,
)

_MAX_NEAR_MISSES: Final = 5
_MAX_BEST_NODES: Final = 3
_MAX_ALIKE_PODS: Final = 2
_MAX_CANDIDATES: Final = 5
_VOLUME_BINDING: Final = "VolumeBinding"
_START_CONDITIONS: Final = ("Initialized", "ContainersReady", "Ready")
"""The conditions whose messages say what a pod waits for on its node, in the order in which they become true."""

_AVAILABLE: Final = "Available"
_ERROR_LINE: Final = (
    "  is not scheduled: an error ends the attempt; the pod is retried after a while (reason SchedulerError)"
)


def format_explanation(
    explanation: PodExplanation,
    snapshot: Snapshot,
    assigned_node: AssignedNode | None = None,
    *,
    alike_pods: Sequence[str] = (),
    warnings: Sequence[str] = (),
) -> str:
    """Return the explanation as text that ends with a line break.

    Args:
        explanation: the results of all plugins.
        snapshot: the snapshot of the cluster.
        assigned_node: the node of a pod that is placed; None for a pending pod.
        alike_pods: the keys of other pods with the same explanation.
        warnings: the lines about objects that are not recorded.
    """
    diagnosis = explanation.diagnosis
    status = explanation.pre_enqueue_status
    if status is not None:
        lines = [f"  is not enqueued, because of {status.plugin}: {status.message}"]
    elif diagnosis is None or diagnosis.error is not None:
        lines = [_ERROR_LINE, f"  {explanation.message}"]
    elif diagnosis.has_feasible_node:
        lines = _format_feasible_lines(explanation, assigned_node)
    else:
        lines = _format_infeasible_lines(explanation, snapshot)
    if assigned_node is not None:
        lines[:0] = [f"  {line}" for line in assigned_node.format_lines()]
        lines[:0] = _format_not_started(explanation.pod.pod)
    lines[1:1] = [f"  {line}" for line in warnings]
    return "\n".join([_format_title(explanation.pod.key, assigned_node, alike_pods), *lines]) + "\n"


def _format_title(key: str, assigned_node: AssignedNode | None, alike_pods: Sequence[str]) -> str:
    if assigned_node is not None:
        return f"Pod {key} is on node {assigned_node.name}"
    if not alike_pods:
        return f"Pod {key}"
    names = join_first(alike_pods, _MAX_ALIKE_PODS)
    return f"Pod {key} and {format_count(len(alike_pods), 'pod')} like this: {names}"


def _format_infeasible_lines(explanation: PodExplanation, snapshot: Snapshot) -> list[str]:
    summary = summarize_rejections(explanation)
    node_count = format_count(len(explanation.node_names), "node")
    lines = [f"  fits on none of {node_count}" + (f": {summary}" if summary else ""), f"  {explanation.message}"]
    lines += _format_pre_filter_lines(explanation)
    lines += _format_unbound_claim_lines(explanation, snapshot)
    lines += format_preemption_lines(explanation)
    lines += _format_rejection_table(explanation)
    near_misses = find_near_misses(explanation, snapshot, _MAX_NEAR_MISSES)
    if near_misses:
        limit = "" if near_misses[0].is_complete else f" among the {MAX_EXAMINED_NODES} nearest nodes"
        lines += ["", f"  Near misses{limit}, and what they lack"]
        lines += (line for near_miss in near_misses for line in near_miss.format_lines("    "))
    return lines


def _format_pre_filter_lines(explanation: PodExplanation) -> list[str]:
    """Return lines about a pod that PreFilter rejects, or about the nodes to which PreFilter restricts the pod."""
    diagnosis = explanation.diagnosis
    if diagnosis is None:
        return []
    if diagnosis.pre_filter_run.status is not None:
        plugin = diagnosis.pre_filter_run.status.plugin
        plugin_text = f" by {plugin}" if plugin else ""
        return ["", f"  Rejected{plugin_text} at PreFilter: {diagnosis.pre_filter_run.status.message}"]
    if diagnosis.pre_filter_run.node_names is not None:
        names = ", ".join(sorted(diagnosis.pre_filter_run.node_names)) or "none"
        return [
            "",
            f"  PreFilter allows only these nodes ({', '.join(diagnosis.pre_filter_run.restricting_plugins)}): {names}",
        ]
    return []


def _format_rejection_table(explanation: PodExplanation) -> list[str]:
    """Return a table of rejections by plugin and reason.

    Its columns are the number of nodes with the reason, and the number of nodes that have no other reason.
    """
    counts: Counter[tuple[str, str]] = Counter()
    only_reason_counts: Counter[tuple[str, str]] = Counter()
    for node_status in explanation.nodes.values():
        for plugin, status in node_status.rejections.items():
            for reason in status.reasons:
                counts[plugin, reason] += 1
                only_reason_counts[plugin, reason] += len(node_status.rejections) == 1 and len(status.reasons) == 1
    if not counts:
        return []
    rows = [("NODES", "ONLY THIS", "PLUGIN", "REASON")]
    for (plugin, reason), count in sorted(counts.items(), key=lambda item: (-item[1], item[0])):
        rows.append((str(count), str(only_reason_counts[plugin, reason]), plugin, reason))
    return [
        "",
        "  Rejections, with every plugin run on every node",
        *format_table(rows, right_aligned=[0, 1], indent="    "),
    ]


def _format_feasible_lines(explanation: PodExplanation, assigned_node: AssignedNode | None) -> list[str]:
    feasible_names, ranking = list_feasible_node_names(explanation), explanation.ranking
    lines = [f"  fits on {len(feasible_names)} of {format_count(len(explanation.node_names), 'node')}"]
    if ranking is None or (ranking.error is not None and len(feasible_names) > 1):
        return [*lines, _ERROR_LINE, f"  {explanation.message}"]
    if len(feasible_names) == 1:
        lines.append(f"  {feasible_names[0]} is the only one, so it is taken whatever its score")
    else:
        lines.append(f"  {_format_best_node_line(explanation, ranking)}")
    if assigned_node is None:
        lines += _format_last_message(explanation.pod.pod)
    if ranking.scores_by_plugin:
        lines += _format_score_table(explanation, ranking, assigned_node.name if assigned_node else "")
    return lines + _format_pre_filter_lines(explanation) + _format_rejection_table(explanation)


def _format_last_message(pod: Pod) -> list[str]:
    """Return a line with the message of a pending pod's condition PodScheduled, such as that of a failed binding."""
    condition = find_condition(pod.status.conditions, "PodScheduled")
    if condition is None or condition.status != "False" or not condition.message:
        return []
    reason, message = (shorten(" ".join(text.split())) for text in (condition.reason, condition.message))
    return [f"  its scheduler's last message{f' ({reason})' if reason else ''}: {message}"]


def _format_not_started(pod: Pod) -> list[str]:
    """Return a line about a pod that has a node and is still pending there; the reason is not one of the scheduler."""
    if pod.status.phase != "Pending":
        return []
    conditions = (find_condition(pod.status.conditions, condition_type) for condition_type in _START_CONDITIONS)
    messages = (condition.message for condition in conditions if condition is not None and condition.status == "False")
    message = shorten(" ".join(next(filter(None, messages), "").split()))
    meta = pod.metadata
    return [
        f"  is Pending although it has a node: the kubelet has not started it{f' ({message})' if message else ''};"
        f" kubectl describe pod {meta.name} -n {meta.namespace} shows why"
    ]


def _sort_positions_by_score(explanation: PodExplanation, ranking: Ranking) -> list[int]:
    """Return the positions in the ranking by descending total, then by node name."""
    totals = ranking.totals.tolist()
    rows = ranking.rows.tolist()
    return sorted(range(len(rows)), key=lambda position: (-totals[position], explanation.node_names[rows[position]]))


def _format_best_node_line(explanation: PodExplanation, ranking: Ranking) -> str:
    """Return a line with the best nodes, and the plugins whose scores differ for the best and the next node."""
    best_nodes = list_best_node_names(explanation)
    positions = _sort_positions_by_score(explanation, ranking)
    totals = ranking.totals.tolist()
    best_total = totals[positions[0]]
    if len(best_nodes) == len(positions):
        return f"all are equally good (total {best_total}); one of them is taken at random"
    best_position, next_position = positions[0], positions[len(best_nodes)]
    next_node = explanation.node_names[int(ranking.rows[next_position])]
    if len(best_nodes) == 1:
        summary = (
            f"{best_nodes[0]} is best (total {best_total}), {best_total - totals[next_position]} ahead of {next_node}"
        )
    else:
        names_text = join_first(best_nodes, _MAX_BEST_NODES)
        margin = best_total - totals[next_position]
        summary = (
            f"{names_text} are equally good (total {best_total}), {margin} ahead of {next_node}; one is taken at random"
        )
    gains = {
        name: int(scores.normalized[best_position] - scores.normalized[next_position]) * scores.weight
        for name, scores in ranking.scores_by_plugin.items()
    }
    gain_texts = [f"{name} {gain:+d}" for name, gain in sorted(gains.items(), key=lambda item: -item[1]) if gain]
    return f"{summary}: {', '.join(gain_texts)}" if gain_texts else summary


def _format_score_table(explanation: PodExplanation, ranking: Ranking, assigned_node: str) -> list[str]:
    """Return a table of the raw, normalized and weighted score of every plugin, for the best nodes.

    The node *assigned_node* is the last column if it is not one of the best nodes.
    """
    all_positions = _sort_positions_by_score(explanation, ranking)
    positions = all_positions[:_MAX_BEST_NODES]
    positions += [
        position
        for position in all_positions[_MAX_BEST_NODES:]
        if explanation.node_names[int(ranking.rows[position])] == assigned_node
    ]
    title = "Scores" if len(positions) == len(ranking.rows) else f"Scores of the best {_MAX_BEST_NODES} nodes"
    title += f" and of {assigned_node}" if len(positions) > _MAX_BEST_NODES else ""
    return ["", f"  {title}", *format_score_table(explanation, ranking, positions)]


def format_score_table(explanation: PodExplanation, ranking: Ranking, positions: Sequence[int]) -> list[str]:
    """Return a table of the weighted score of every plugin, with the raw score in parentheses, and of the totals.

    *positions* are those of the nodes in the ranking, one for each column.
    """
    names = [explanation.node_names[int(ranking.rows[position])] for position in positions]
    rows = [("WEIGHTED SCORE (RAW)", "WEIGHT", *names)]
    for plugin, scores in ranking.scores_by_plugin.items():
        weighted = [scores.normalized.item(position) * scores.weight for position in positions]
        raw = [scores.raw.item(position) for position in positions]
        rows.append((plugin, str(scores.weight), *map("{} ({})".format, weighted, raw)))
    rows.append(("total", "", *(str(ranking.totals.item(position)) for position in positions)))
    return format_table(rows, right_aligned=range(1, len(names) + 2), indent="    ")


def format_preemption_lines(explanation: PodExplanation) -> list[str]:
    """Return lines about the nominated node, its victims and the other candidates, or no lines if there is no plan."""
    plan = get_preemption_plan(explanation.post_filter_run)
    if plan is None:
        return []
    best_candidate = plan.best_candidate
    ties_text = f", one of {len(plan.tied_nodes)} equally good nodes" if len(plan.tied_nodes) > 1 else ""
    other_candidates = sorted(
        (candidate for candidate in plan.candidates if candidate.node_name != best_candidate.node_name),
        key=lambda candidate: (candidate.num_pdb_violations, len(candidate.victims), candidate.node_name),
    )
    rows = [
        ("NODE", "EVICTED", "PDB VIOLATIONS", "VICTIMS"),
        *map(_make_candidate_row, (best_candidate, *other_candidates[: _MAX_CANDIDATES - 1])),
    ]
    omitted_count = len(other_candidates) - (_MAX_CANDIDATES - 1)
    victim_count = format_count(len(best_candidate.victims), "pod")
    return [
        "",
        f"  Preemption on {best_candidate.node_name}{ties_text}: {victim_count} evicted, and this pod is nominated",
        *format_table(rows, right_aligned=[1, 2], indent="    "),
        *([f"    also possible on {format_count(omitted_count, 'other node')}"] if omitted_count > 0 else []),
    ]


def _make_candidate_row(candidate: Candidate) -> tuple[str, ...]:
    names = [victim.key for victim in candidate.victims]
    return candidate.node_name, str(len(names)), str(candidate.num_pdb_violations), join_first(names)


def _format_unbound_claim_lines(explanation: PodExplanation, snapshot: Snapshot) -> list[str]:
    """Return a line for each reason why a claim cannot be bound, or no lines if VolumeBinding accepts the pod."""
    if not _is_rejected_by_volume_binding(explanation):
        return []
    pod = explanation.pod
    lines: list[str] = []
    for _, _, key in resolve_claim_uses(pod.pod, pod.signature.volume_uses.claims):
        claim = snapshot.get_object(PersistentVolumeClaim, key)
        if claim is not None and not is_fully_bound(claim):
            lines += [f"    {key}: {obstacle}" for obstacle in _describe_obstacles(claim, snapshot)]
    return ["", "  Claims without a volume", *lines] if lines else []


def _is_rejected_by_volume_binding(explanation: PodExplanation) -> bool:
    status = explanation.diagnosis.pre_filter_run.status if explanation.diagnosis else None
    if status is not None:
        return status.plugin == _VOLUME_BINDING
    return any(_VOLUME_BINDING in node_status.rejections for node_status in explanation.nodes.values())


def _describe_obstacles(claim: PersistentVolumeClaim, snapshot: Snapshot) -> Iterator[str]:
    if claim.spec.volume_name:
        yield f"names {claim.spec.volume_name}, but is not marked as bound; annotate the claim with {BIND_COMPLETED}"
        return
    name = get_claim_class(claim)
    storage_class = snapshot.get_object(StorageClass, name) if name else None
    if storage_class is None:
        yield f'there is no StorageClass "{name}"' if name else "it has no StorageClass, so it must be bound beforehand"
    elif storage_class.volume_binding_mode != WAIT_FOR_FIRST_CONSUMER:
        meta = claim.metadata
        yield (
            f'its StorageClass "{name}" binds claims immediately, but this claim is not bound;'
            f" kubectl describe pvc {meta.name} -n {meta.namespace} shows why"
        )
    else:
        volumes = [it for it in snapshot.objects(PersistentVolume).values() if get_volume_class(it) == name]
        free_volumes = [it for it in volumes if it.spec.claim_ref is None or is_volume_bound_to_claim(it, claim)]
        for volume in free_volumes:
            if volume.spec.claim_ref is None and volume.status.phase != _AVAILABLE:
                phase = volume.status.phase
                phase_text = f"is {phase}" if phase else "has no status.phase"
                yield f"volume {volume.metadata.name} {phase_text}, but only {_AVAILABLE} volumes are bound"
        if storage_class.provisioner in {"", NO_PROVISIONER} and (lack := _describe_lack(claim, volumes, free_volumes)):
            yield f'its StorageClass "{name}" creates no volumes, and {lack}'


def _describe_lack(
    claim: PersistentVolumeClaim, volumes: Sequence[PersistentVolume], free_volumes: Sequence[PersistentVolume]
) -> str:
    """Return why none of the *volumes* of its class can be bound to *claim*; empty if the nodes decide it."""
    if not free_volumes:
        return "all volumes of the class are taken" if volumes else "no volume has the class"
    request = get_requested_storage(claim)
    if request is not None and all(request.exceeds(get_volume_capacity(volume)) for volume in free_volumes):
        return f"all free volumes are smaller than {claim.spec.resources.requests['storage']}"
    return ""
