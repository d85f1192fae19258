"""The answers about pods: why a pod waits, and why it is on its node."""

from collections import Counter
from collections.abc import Iterator, Sequence

from extender.analysis.explain import PodReport
from extender.analysis.text_table import format_count
from extender.answers.reason_codes import list_reason_codes
from extender.api.kinds.pod import Pod
from extender.cli.mcp.answer_pages import QuestionError, format_footer
from extender.cli.mcp.loaded_cluster import LoadedCluster
from extender.config.documents import dump_yaml

_GROUPS_PER_PAGE = 8
_MAX_MESSAGE = 300


def answer_why_waiting(loaded: LoadedCluster, pod: str, namespace: str, *, full: bool) -> str:
    """Return why the pending pod, or the pending pods of a workload, have no node.

    Raises:
        InputError: there is no such pod.
        QuestionError: the pods have nodes.
    """
    pending_pods = [found for found in loaded.find_pods(pod, namespace) if not found.spec.node_name]
    if not pending_pods:
        raise QuestionError(f"{pod} has a node, it does not wait; ask why_here")
    keys = {pod.key for pod in pending_pods}
    groups = [[pod for pod in group if pod.key in keys] for group in loaded.explainer.groups]
    return _format_reports(loaded, [group for group in groups if group], full=full)


def answer_why_here(loaded: LoadedCluster, pod: str, namespace: str, *, full: bool) -> str:
    """Return why the pod, or the pods of a workload, are on their nodes, and where they would go now.

    Raises:
        InputError: there is no such pod.
        QuestionError: the pods have no nodes.
    """
    placed_pods = [found for found in loaded.find_pods(pod, namespace) if found.spec.node_name]
    if not placed_pods:
        raise QuestionError(f"{pod} has no node; ask why_waiting")
    return _format_reports(loaded, [[placed] for placed in placed_pods], full=full)


def _format_reports(loaded: LoadedCluster, groups: Sequence[Sequence[Pod]], *, full: bool) -> str:
    reports = (loaded.report_group(group) for group in groups)
    if full:
        return dump_yaml({report.explanation.pod.key: report.to_values() for report in reports})
    return "\n".join(report.to_text() + _format_codes(report) for report in reports)


def _format_codes(report: PodReport) -> str:
    """Return a line with the codes of the reasons and their numbers of nodes; empty without a rejection."""
    counts = count_reason_codes(report)
    if not counts:
        return ""
    texts = (f"{code} ({format_count(count, 'node')})" if count else code for code, count in counts.items())
    return f"  reason codes: {', '.join(texts)}\n"


def count_reason_codes(report: PodReport) -> dict[str, int]:
    """Return the codes of the reasons with their numbers of nodes, the largest first; 0 for reasons about the pod."""
    explanation = report.explanation
    if explanation.pre_enqueue_status is not None:
        return dict.fromkeys(list_reason_codes(explanation.pre_enqueue_status.reasons), 0)
    diagnosis = explanation.diagnosis
    status = diagnosis.pre_filter_run.status if diagnosis is not None else None
    if status is not None:
        return dict.fromkeys(list_reason_codes(status.reasons), 0)
    failures = [node.first_failure for node in explanation.nodes.values() if node.first_failure is not None]
    counts = Counter(code for failure in failures for code in dict.fromkeys(list_reason_codes(failure.reasons)))
    return dict(sorted(counts.items(), key=lambda item: (-item[1], item[0])))


def answer_all_waiting(loaded: LoadedCluster, namespace: str, page: int) -> str:
    """Return one page of all pending pods in groups of alike pods, in the order of the cluster.

    Raises:
        QuestionError: there is no such page.
    """
    groups = [group for group in loaded.explainer.groups if not namespace or group[0].metadata.namespace == namespace]
    where = f" in namespace {namespace}" if namespace else ""
    if not groups:
        return f"No pod waits{where}.\n"
    footer = format_footer(page, -(-len(groups) // _GROUPS_PER_PAGE))
    pod_count = sum(map(len, groups))
    lines = [f"{format_count(pod_count, 'pod')} waiting{where}, in {format_count(len(groups), 'group')} of alike pods"]
    for group in groups[(page - 1) * _GROUPS_PER_PAGE : page * _GROUPS_PER_PAGE]:
        lines += _format_group(loaded, group)
    return "\n".join([*lines, footer])


def _format_group(loaded: LoadedCluster, group: Sequence[Pod]) -> Iterator[str]:
    report = loaded.report_group(group)
    others = f" and {len(group) - 1} more like it" if len(group) > 1 else ""
    yield ""
    yield f"{group[0].key}{others}"
    if report.fits:
        yield "  would fit now"
        return
    status = report.explanation.pre_enqueue_status
    message = status.message if status is not None else report.explanation.message or ""
    yield f"  {message[:_MAX_MESSAGE]}{'...' if len(message) > _MAX_MESSAGE else ''}"
    yield f"  reason codes: {', '.join(count_reason_codes(report))}"
