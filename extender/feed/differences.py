"""What changed between two versions of a node or a pod, one action a property. Source: A121, A129."""

from extender.framework.changes import Action, Change, Resource
from extender.objects.node import Node
from extender.objects.pod import Pod
from extender.objects.requests import placed_requests


def node_changes(old: Node, new: Node) -> list[Change]:
    """The events of a changed node, in the order in which they are told; none if nothing that scheduling reads changed.

    Heartbeats change conditions' times only, and so tell nothing. Source: A121.
    """
    actions = (
        (Action.UPDATE_NODE_TAINT, old.spec.unschedulable and not new.spec.unschedulable),
        (Action.UPDATE_NODE_ALLOCATABLE, old.status.allocatable != new.status.allocatable),
        (Action.UPDATE_NODE_LABEL, old.metadata.labels != new.metadata.labels),
        (Action.UPDATE_NODE_TAINT, old.spec.taints != new.spec.taints),
        (Action.UPDATE_NODE_CONDITION, _conditions(old) != _conditions(new)),
        (Action.UPDATE_NODE_ANNOTATION, old.metadata.annotations != new.metadata.annotations),
        (Action.UPDATE_NODE_DECLARED_FEATURE, old.status.declared_features != new.status.declared_features),
    )
    return [Change(Resource.NODE, action, old, new) for action, changed in actions if changed]


def _conditions(node: Node) -> dict[str, str]:
    return {condition.type: condition.status for condition in node.status.conditions}


def pod_changes(old: Pod, new: Pod) -> list[Change]:
    """The events of a changed pod; one plain update if nothing in particular changed. Source: A129."""
    resource = Resource.ASSIGNED_POD if new.spec.node_name else Resource.UNSCHEDULED_POD
    before, after = old.status, new.status
    claims = (before.resource_claim_statuses, before.extended_resource_claim_status)
    claims_now = (after.resource_claim_statuses, after.extended_resource_claim_status)
    actions = (
        (Action.UPDATE_POD_LABEL, old.metadata.labels != new.metadata.labels),
        (Action.UPDATE_POD_SCALE_DOWN, _asks_for_less(old, new)),
        (Action.UPDATE_POD_SCHEDULING_GATES_ELIMINATED, old.spec.scheduling_gates and not new.spec.scheduling_gates),
        (Action.UPDATE_POD_TOLERATION, len(old.spec.tolerations) != len(new.spec.tolerations)),
        (Action.UPDATE_POD_GENERATED_RESOURCE_CLAIM, claims != claims_now),
    )
    found = [Change(resource, action, old, new) for action, changed in actions if changed]
    return found or [Change(resource, Action.UPDATE, old, new)]


def _asks_for_less(old: Pod, new: Pod) -> bool:
    if old.spec is new.spec and old.status is new.status:
        return False
    now = placed_requests(new)
    return any(name not in now or amount > now[name] for name, amount in placed_requests(old).items())
