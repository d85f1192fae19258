"""Queueing hints of InterPodAffinity.

Source: pkg/scheduler/framework/plugins/interpodaffinity/plugin.go, InterPodAffinity.EventsToRegister (1.36).
"""

from extender.api.kinds.node import Node
from extender.api.kinds.pod import Pod
from extender.cache.pod_affinity import PodAffinityTerms, compile_pod_affinity_terms
from extender.cache.pod_info import PodInfo
from extender.cache.tables.affinity_terms import AffinityTerm
from extender.framework.events import ClusterEvent, QueueingHint


def _matches_all_terms(terms: tuple[AffinityTerm, ...], pod: Pod) -> bool:
    """Return whether *terms* is not empty and *pod* matches all. Namespace labels count as empty, as upstream."""
    meta = pod.metadata
    return bool(terms) and all(term.pod_selector.matches(meta.namespace, meta.labels, {}) for term in terms)


def _is_pending(pod: Pod | None) -> bool:
    return pod is not None and not pod.spec.node_name and not pod.status.nominated_node_name


def is_schedulable_after_pod_change(pod: PodInfo, event: ClusterEvent) -> QueueingHint:
    """Queue *pod* if the changed pod may satisfy one of its terms.

    Source: pkg/scheduler/framework/plugins/interpodaffinity/plugin.go, InterPodAffinity.isSchedulableAfterPodChange
    (1.36).
    """
    old_pod: Pod | None = event.old
    new_pod: Pod | None = event.new
    if old_pod is not None and new_pod is not None and new_pod.metadata.uid == pod.pod.metadata.uid:
        return QueueingHint.QUEUE
    if _is_pending(old_pod) or _is_pending(new_pod):
        return QueueingHint.SKIP
    terms = pod.signature.affinity
    return (
        QueueingHint.QUEUE
        if terms.error is not None or _pod_change_may_help(terms, pod.pod, old_pod, new_pod)
        else QueueingHint.SKIP
    )


def _pod_change_may_help(terms: PodAffinityTerms, pending_pod: Pod, old_pod: Pod | None, new_pod: Pod | None) -> bool:
    if old_pod is not None and new_pod is not None:
        matches_affinity_now = not _matches_all_terms(terms.required, old_pod) and _matches_all_terms(
            terms.required, new_pod
        )
        return matches_affinity_now or (
            _matches_all_terms(terms.required_anti, old_pod) and not _matches_all_terms(terms.required_anti, new_pod)
        )
    if new_pod is not None:
        return _matches_all_terms(terms.required, new_pod)
    if old_pod is None or _matches_all_terms(terms.required_anti, old_pod):
        return True
    old_terms = compile_pod_affinity_terms(old_pod)
    return old_terms.error is not None or _matches_all_terms(old_terms.required_anti, pending_pod)


def is_schedulable_after_node_change(pod: PodInfo, event: ClusterEvent) -> QueueingHint:
    """Queue *pod* if the changed node may satisfy one of its terms.

    Source: pkg/scheduler/framework/plugins/interpodaffinity/plugin.go, InterPodAffinity.isSchedulableAfterNodeChange
    (1.36).
    """
    old_node: Node | None = event.old
    new_node: Node = event.new
    terms = pod.signature.affinity
    new_labels = new_node.metadata.labels
    affinity_keys = {term.topology_key for term in terms.required}
    anti_affinity_keys = {term.topology_key for term in terms.required_anti}
    if old_node is None:
        may_help = bool(anti_affinity_keys) or not affinity_keys.isdisjoint(new_labels)
    else:
        old_labels = old_node.metadata.labels
        may_help = any(key in new_labels and old_labels.get(key) != new_labels[key] for key in affinity_keys) or any(
            key in old_labels and old_labels[key] != new_labels.get(key) for key in anti_affinity_keys
        )
    return QueueingHint.QUEUE if may_help or terms.error is not None else QueueingHint.SKIP
