"""Queueing hints of DynamicResources."""

from collections.abc import Callable, Sequence

from extender.api.kinds.devices import ResourceClaim
from extender.cache.pod_info import PodInfo
from extender.config.releases import Release
from extender.framework.events import (
    ActionType,
    ClusterEvent,
    ClusterEventWithHint,
    EventResource,
    QueueingHint,
    queue_changed_pod,
    register_pod_events,
)
from extender.plugins.dynamic_resources.pod_claims import get_claim_name


def events_to_register(release: Release, *, with_pre_hint: bool = False) -> Sequence[ClusterEventWithHint]:
    """Return the events that may make devices available.

    With *with_pre_hint* (gate SchedulerPreQueueingHints), events of claims have a pre-queueing hint.

    Source: pkg/scheduler/framework/plugins/dynamicresources/dynamicresources.go, DynamicResources.EventsToRegister
    (1.36, 1.37).
    """
    add_or_update = ActionType.ADD | ActionType.UPDATE
    node_actions = ActionType.ADD | ActionType.UPDATE_NODE_LABEL | ActionType.UPDATE_NODE_ALLOCATABLE
    claim_actions = add_or_update | ActionType.DELETE if release.requeues_after_claim_deletion else add_or_update
    return (
        ClusterEventWithHint(EventResource.NODE, node_actions),
        ClusterEventWithHint(
            EventResource.RESOURCE_CLAIM,
            claim_actions,
            _is_schedulable_after_claim_change,
            _find_concerned_pods if with_pre_hint else None,
            find_concerned=_find_concerned_pods,
        ),
        *register_pod_events(release, queue_changed_pod, target=ActionType.UPDATE_POD_GENERATED_RESOURCE_CLAIM),
        ClusterEventWithHint(EventResource.DEVICE_CLASS, add_or_update),
        ClusterEventWithHint(EventResource.RESOURCE_SLICE, add_or_update),
    )


def _is_schedulable_after_claim_change(pod: PodInfo, event: ClusterEvent) -> QueueingHint:
    """Queue *pod* if a claim lost its allocation or a claim of the pod changed. PreEnqueue checks its other claims."""
    old_claim: ResourceClaim | None = event.old
    new_claim: ResourceClaim | None = event.new
    if new_claim is None:
        was_allocated = old_claim is not None and old_claim.status.allocation is not None
        return QueueingHint.queue_if(was_allocated)
    if old_claim is not None and old_claim.status.allocation is not None and new_claim.status.allocation is None:
        return QueueingHint.QUEUE
    if not _uses_claim(pod, new_claim):
        return QueueingHint.SKIP
    return QueueingHint.queue_if(old_claim is None or old_claim.status != new_claim.status)


def _uses_claim(pod: PodInfo, claim: ResourceClaim) -> bool:
    if claim.metadata.namespace != pod.namespace:
        return False
    name, pod_claims = claim.metadata.name, pod.spec.resource_claims
    if not pod.pod.status.resource_claim_statuses:  # as for thousands of pods that wait for their claims
        return any(pod_claim.resource_claim_name == name for pod_claim in pod_claims)
    return any(get_claim_name(pod.pod, pod_claim)[0] == name for pod_claim in pod_claims)


def _find_concerned_pods(event: ClusterEvent) -> Callable[[PodInfo], bool] | None:
    """Return whether a pod uses the changed claim; None if the claim lost its allocation, which may help every pod.

    Source: pkg/scheduler/framework/plugins/dynamicresources/dynamicresources.go, DynamicResources.preQueueingHint
    (1.37).
    """
    old_claim: ResourceClaim | None = event.old
    new_claim: ResourceClaim | None = event.new
    was_allocated = old_claim is not None and old_claim.status.allocation is not None
    if was_allocated and (new_claim is None or new_claim.status.allocation is None):
        return None
    claim = new_claim or old_claim
    return None if claim is None else lambda pod: _uses_claim(pod, claim)
