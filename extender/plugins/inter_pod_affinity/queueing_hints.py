"""Queueing hints of InterPodAffinity.

Source: pkg/scheduler/framework/plugins/interpodaffinity/plugin.go, InterPodAffinity.EventsToRegister (1.36).
"""

from collections.abc import Callable
from functools import partial

from extender.api.kinds.node import Node
from extender.api.kinds.pod import Pod
from extender.cache.pod_affinity import PodAffinityTerms
from extender.cache.pod_info import PodInfo
from extender.cache.tables.affinity_terms import AffinityTerm
from extender.framework.events import ClusterEvent, EventResource, QueueingHint


def find_concerned_pods(
    event: ClusterEvent, *, compile_terms: Callable[[Pod], PodAffinityTerms]
) -> Callable[[PodInfo], bool] | None:
    """Return whether a waiting pod is in the namespace of the changed pod, or has a term that selects pods there.

    None: the changed pod was deleted, and its own terms may select every pod.
    """
    changed_pod: Pod = event.new or event.old
    if event.new is None:
        terms = compile_terms(changed_pod)
        if terms.error is not None or terms.required_anti_affinity:
            return None
    namespace = changed_pod.metadata.namespace

    def concerns(pod: PodInfo) -> bool:
        if pod.namespace == namespace:
            return True
        namespaces = pod.signature.get_or_create("namespaces of InterPodAffinity", partial(_find_namespaces, pod))
        return namespaces is None or namespace in namespaces

    return concerns


def _find_namespaces(pod: PodInfo) -> frozenset[str] | None:
    """Return the namespaces in which the required terms of *pod* select pods; None if it may be any."""
    terms = pod.signature.pod_affinity_terms
    selectors = [term.pod_selector for term in (*terms.required_affinity, *terms.required_anti_affinity)]
    if terms.error is not None or any(selector.namespace_selector.matches({}) for selector in selectors):
        return None
    return frozenset().union(*(selector.namespaces for selector in selectors))


def _matches_all_terms(terms: tuple[AffinityTerm, ...], pod: Pod) -> bool:
    """Return whether *terms* is not empty and *pod* matches all. Namespace labels count as empty, as upstream."""
    meta = pod.metadata
    return bool(terms) and all(term.pod_selector.matches(meta.namespace, meta.labels, {}) for term in terms)


def _matches_any_term(terms: tuple[AffinityTerm, ...], pod: Pod) -> bool:
    """Return whether *pod* matches one of *terms*. Namespace labels count as empty, as upstream."""
    meta = pod.metadata
    return any(term.pod_selector.matches(meta.namespace, meta.labels, {}) for term in terms)


def _is_pending(pod: Pod | None) -> bool:
    return pod is not None and not pod.spec.node_name and not pod.status.nominated_node_name


def is_schedulable_after_pod_change(
    pod: PodInfo,
    event: ClusterEvent,
    *,
    one_anti_affinity_term_suffices: bool,
    compile_terms: Callable[[Pod], PodAffinityTerms],
) -> QueueingHint:
    """Queue *pod* if the change of another pod may satisfy a term of *pod*, or if *pod* itself changed.

    With *one_anti_affinity_term_suffices*, one matching anti-affinity term is enough; otherwise all must match.

    Source: pkg/scheduler/framework/plugins/interpodaffinity/plugin.go, InterPodAffinity.isSchedulableAfterPodChange
    (1.36).
    """
    old_pod: Pod | None = event.old
    new_pod: Pod | None = event.new
    is_own_update = old_pod is not None and new_pod is not None and new_pod.metadata.uid == pod.pod.metadata.uid
    if is_own_update and event.resource is not EventResource.ASSIGNED_POD:  # a pod with a deferred resize is assigned
        return QueueingHint.QUEUE
    if _is_pending(old_pod) or _is_pending(new_pod):
        return QueueingHint.SKIP
    terms = pod.signature.pod_affinity_terms
    matches_anti_terms = _matches_any_term if one_anti_affinity_term_suffices else _matches_all_terms
    return QueueingHint.queue_if(
        terms.error is not None
        or _pod_change_may_help(terms, pod.pod, old_pod, new_pod, matches_anti_terms, compile_terms)
    )


def _pod_change_may_help(
    terms: PodAffinityTerms,
    pending_pod: Pod,
    old_pod: Pod | None,
    new_pod: Pod | None,
    matches_anti_terms: Callable[[tuple[AffinityTerm, ...], Pod], bool],
    compile_terms: Callable[[Pod], PodAffinityTerms],
) -> bool:
    if old_pod is not None and new_pod is not None:
        matches_affinity_now = not _matches_all_terms(terms.required_affinity, old_pod) and _matches_all_terms(
            terms.required_affinity, new_pod
        )
        return matches_affinity_now or (
            matches_anti_terms(terms.required_anti_affinity, old_pod)
            and not matches_anti_terms(terms.required_anti_affinity, new_pod)
        )
    if new_pod is not None:
        return _matches_all_terms(terms.required_affinity, new_pod)
    if old_pod is None or matches_anti_terms(terms.required_anti_affinity, old_pod):
        return True
    old_terms = compile_terms(old_pod)
    return old_terms.error is not None or matches_anti_terms(old_terms.required_anti_affinity, pending_pod)


def is_schedulable_after_node_change(pod: PodInfo, event: ClusterEvent) -> QueueingHint:
    """Queue *pod* if the change of a node may satisfy a term of *pod*.

    Source: pkg/scheduler/framework/plugins/interpodaffinity/plugin.go, InterPodAffinity.isSchedulableAfterNodeChange
    (1.36).
    """
    old_node: Node | None = event.old
    new_node: Node = event.new
    terms = pod.signature.pod_affinity_terms
    new_labels = new_node.metadata.labels
    affinity_keys = {term.topology_key for term in terms.required_affinity}
    anti_affinity_keys = {term.topology_key for term in terms.required_anti_affinity}
    if old_node is None:
        may_help = bool(anti_affinity_keys) or not affinity_keys.isdisjoint(new_labels)
    else:
        old_labels = old_node.metadata.labels
        may_help = any(key in new_labels and old_labels.get(key) != new_labels[key] for key in affinity_keys) or any(
            key in old_labels and old_labels[key] != new_labels.get(key) for key in anti_affinity_keys
        )
    return QueueingHint.queue_if(may_help or terms.error is not None)
