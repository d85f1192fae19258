"""A plain sentence that says why a pod fits on no node, to be read before kube-scheduler's own message."""

from collections import Counter
from typing import Final

from extender.analysis.explanation.suggestions import INSUFFICIENT_PREFIX
from extender.analysis.text_table import format_count
from extender.cycle.diagnosis import Diagnosis
from extender.cycle.explain_pod import NodeFilterStatus, PodExplanation

_MAX_REASONS: Final = 4

_PHRASES: Final = {
    "Too many pods": ("has no room for another pod", "have no room for another pod"),
    "NodeUnschedulable": ("is cordoned", "are cordoned"),
    "TaintToleration": ("has a taint that it does not tolerate", "have taints that it does not tolerate"),
    "NodeAffinity": ("does not match its node selector or affinity", "do not match its node selector or affinity"),
    "NodeName": ("is not the node that it names", "are not the node that it names"),
    "NodePorts": ("has its host port in use", "have its host port in use"),
    "PodTopologySpread": ("would break its topology spread", "would break its topology spread"),
    "InterPodAffinity": ("conflicts with its pod affinity", "conflict with its pod affinity"),
    "VolumeBinding": ("cannot have its volumes", "cannot have its volumes"),
    "VolumeZone": ("is in another zone than its volumes", "are in another zone than its volumes"),
    "VolumeRestrictions": ("has its volume in use", "have its volume in use"),
    "NodeVolumeLimits": ("can attach no more volumes", "can attach no more volumes"),
    "DynamicResources": ("has no free device for it", "have no free device for it"),
}
"""The phrase for one node and the phrase for several nodes, by reason or by plugin."""


def summarize_rejections(explanation: PodExplanation) -> str:
    """Return a sentence such as `2 nodes have too little cpu, 1 node is cordoned`; empty if no plugin rejects a node.

    Each node counts once, for the first reason of the first plugin that rejects it. If Filter rejects no node, the
    sentence is about PreFilter.
    """
    counts = Counter(
        _get_first_reason(node_status)
        for node_status in explanation.nodes.values()
        if node_status.first_failure is not None
    )
    sorted_counts = sorted(counts.items(), key=lambda item: (-item[1], item[0]))
    texts = [_format_reason(*key, count) for key, count in sorted_counts[:_MAX_REASONS]]
    if len(sorted_counts) > _MAX_REASONS:
        remaining_count = sum(count for _, count in sorted_counts[_MAX_REASONS:])
        texts.append(f"{format_count(remaining_count, 'node')} for other reasons")
    return ", ".join(texts) or _summarize_pre_filter(explanation.diagnosis)


def _summarize_pre_filter(diagnosis: Diagnosis | None) -> str:
    """Return why PreFilter allows no node, or not all nodes; empty if it allows all."""
    if diagnosis is None:
        return ""
    pre_filter_run = diagnosis.pre_filter_run
    if pre_filter_run.status is not None:
        return pre_filter_run.status.message
    plugins = ", ".join(pre_filter_run.restricting_plugins)
    return f"{plugins} allows only other nodes" if plugins else ""


def _get_first_reason(node_status: NodeFilterStatus) -> tuple[str, str]:
    """Return the plugin, and its reason if the plugin has several."""
    status = node_status.first_failure
    if status is None:
        return "", ""
    reason = status.reasons[0] if status.reasons else ""
    return status.plugin, reason if status.plugin == "NodeResourcesFit" or status.plugin not in _PHRASES else ""


def _format_reason(plugin: str, reason: str, count: int) -> str:
    nodes = format_count(count, "node")
    if reason.startswith(INSUFFICIENT_PREFIX):
        return f"{nodes} {'has' if count == 1 else 'have'} too little {reason.removeprefix(INSUFFICIENT_PREFIX)}"
    phrases = _PHRASES.get(reason) or _PHRASES.get(plugin)
    if phrases is not None:
        return f"{nodes} {phrases[0] if count == 1 else phrases[1]}"
    return f"{nodes}: {reason or plugin}"
