"""Find the cluster events of an updated node or pod: one event for each changed property."""

from extender.api.kinds.node import Node
from extender.api.kinds.pod import Pod
from extender.api.requests import PodResourcesOptions, requests_more
from extender.config.feature_gates import FeatureGates
from extender.framework.events import ActionType, ClusterEvent, EventResource, make_pod_event


def find_node_events(old: Node, new: Node, gates: FeatureGates) -> list[ClusterEvent]:
    """Return the events of an updated node in kube-scheduler's order; empty if no scheduling property changed.

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
        (
            ActionType.UPDATE_NODE_PREEMPTION_POLICY,
            old.spec.pod_preemption_policy != new.spec.pod_preemption_policy,
        ),
        (
            ActionType.UPDATE_NODE_DECLARED_FEATURE,
            "NodeDeclaredFeatures" in gates and old.status.declared_features != new.status.declared_features,
        ),
    )
    return [ClusterEvent(EventResource.NODE, action, old, new) for action, is_changed in actions if is_changed]


def _get_condition_statuses(node: Node) -> dict[str, str]:
    return {condition.type: condition.status for condition in node.status.conditions}


def find_pod_events(old: Pod, new: Pod, gates: FeatureGates) -> list[ClusterEvent]:
    """Return the events of an updated pod. If no scheduling property changed, return one event with the action UPDATE.

    The resource of a pod without a node is TARGET_POD.

    Source: pkg/scheduler/framework/events.go, PodSchedulingPropertiesChange, extractPodScaleDown (1.36, 1.37).
    """
    resource = EventResource.ASSIGNED_POD if new.spec.node_name else EventResource.TARGET_POD
    release = gates.release
    options = PodResourcesOptions(
        in_place_pod_level_resize="InPlacePodLevelResourcesVerticalScaling" in gates,
        maximum_of_sums=release.takes_maximum_of_resize_sums,
    )
    old_status, new_status = old.status, new.status
    old_claims = (old_status.resource_claim_statuses, old_status.extended_resource_claim_status)
    new_claims = (new_status.resource_claim_statuses, new_status.extended_resource_claim_status)
    actions = (
        (ActionType.UPDATE_POD_LABEL, old.metadata.labels != new.metadata.labels),
        (ActionType.UPDATE_POD_SCALE_DOWN, requests_more(old, new, options)),
        (ActionType.UPDATE_POD_SCALE_UP, release.splits_pod_events and requests_more(new, old, options)),
        (
            ActionType.UPDATE_POD_SCHEDULING_GATES_ELIMINATED,
            old.spec.scheduling_gates and not new.spec.scheduling_gates,
        ),
        (ActionType.UPDATE_POD_TOLERATION, len(old.spec.tolerations) != len(new.spec.tolerations)),
        (ActionType.UPDATE_POD_GENERATED_RESOURCE_CLAIM, old_claims != new_claims),
    )
    changes = [action for action, is_changed in actions if is_changed] or [ActionType.UPDATE]
    return [make_pod_event(release, resource, action, old, new) for action in changes]
