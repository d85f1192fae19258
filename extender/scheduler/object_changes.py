"""The cluster events for a changed node or pod, one per changed property.

Source: pkg/scheduler/framework/events.go, NodeSchedulingPropertiesChange, PodSchedulingPropertiesChange (1.36).
"""

from extender.api.kinds.node import Node
from extender.api.kinds.pod import Pod
from extender.api.requests import assigned_pod_requests
from extender.framework.events import ActionType, ClusterEvent, EventResource


def find_node_events(old: Node, new: Node) -> list[ClusterEvent]:
    """Return the events of a changed node in upstream's order; empty if no scheduling property changed.

    A heartbeat changes only the times of conditions, so it causes no event.

    Source: pkg/scheduler/framework/events.go, NodeSchedulingPropertiesChange (1.36).
    """
    actions = (
        (ActionType.UPDATE_NODE_TAINT, old.spec.unschedulable and not new.spec.unschedulable),
        (ActionType.UPDATE_NODE_ALLOCATABLE, old.status.allocatable != new.status.allocatable),
        (ActionType.UPDATE_NODE_LABEL, old.metadata.labels != new.metadata.labels),
        (ActionType.UPDATE_NODE_TAINT, old.spec.taints != new.spec.taints),
        (ActionType.UPDATE_NODE_CONDITION, _get_condition_statuses(old) != _get_condition_statuses(new)),
        (ActionType.UPDATE_NODE_ANNOTATION, old.metadata.annotations != new.metadata.annotations),
        (ActionType.UPDATE_NODE_DECLARED_FEATURE, old.status.declared_features != new.status.declared_features),
    )
    return [ClusterEvent(EventResource.NODE, action, old, new) for action, is_changed in actions if is_changed]


def _get_condition_statuses(node: Node) -> dict[str, str]:
    return {condition.type: condition.status for condition in node.status.conditions}


def find_pod_events(old: Pod, new: Pod) -> list[ClusterEvent]:
    """Return the events of a changed pod; a generic update if no scheduling property changed.

    Source: pkg/scheduler/framework/events.go, PodSchedulingPropertiesChange (1.36).
    """
    resource = EventResource.ASSIGNED_POD if new.spec.node_name else EventResource.UNSCHEDULABLE_POD
    old_status, new_status = old.status, new.status
    old_claims = (old_status.resource_claim_statuses, old_status.extended_resource_claim_status)
    new_claims = (new_status.resource_claim_statuses, new_status.extended_resource_claim_status)
    actions = (
        (ActionType.UPDATE_POD_LABEL, old.metadata.labels != new.metadata.labels),
        (ActionType.UPDATE_POD_SCALE_DOWN, _requests_scaled_down(old, new)),
        (
            ActionType.UPDATE_POD_SCHEDULING_GATES_ELIMINATED,
            old.spec.scheduling_gates and not new.spec.scheduling_gates,
        ),
        (ActionType.UPDATE_POD_TOLERATION, len(old.spec.tolerations) != len(new.spec.tolerations)),
        (ActionType.UPDATE_POD_GENERATED_RESOURCE_CLAIM, old_claims != new_claims),
    )
    events = [ClusterEvent(resource, action, old, new) for action, is_changed in actions if is_changed]
    return events or [ClusterEvent(resource, ActionType.UPDATE, old, new)]


def _requests_scaled_down(old: Pod, new: Pod) -> bool:
    if old.spec is new.spec and old.status is new.status:
        return False
    new_requests = assigned_pod_requests(new)
    return any(
        name not in new_requests or quantity > new_requests[name]
        for name, quantity in assigned_pod_requests(old).items()
    )
