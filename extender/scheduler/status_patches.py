"""Make the patches for the conditions and the nominated node in the status of pods and pod groups.

Source: pkg/scheduler/schedule_one.go, truncateMessage, updatePod, Scheduler.handleSchedulingFailure;
pkg/scheduler/schedule_one_podgroup.go, Scheduler.submitPodGroupAlgorithmResult (1.36).
"""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, Final

import msgspec

from extender.api.kinds.meta import Condition, find_condition
from extender.api.kinds.pod import Pod
from extender.api.kinds.pod_group import PodGroup
from extender.api.timestamps import format_time
from extender.framework.api_plan import ApiCall
from extender.framework.status import Status

_NOTHING_SENT: Final[Mapping[str, Any]] = MappingProxyType({})


def _with_transition_time(old_condition: Condition | None, condition: dict[str, Any], now: float) -> dict[str, Any]:
    """Return *condition* with the last transition time: *now* if the status changed, else the old one."""
    transition_time = now
    if (
        old_condition is not None
        and old_condition.status == condition["status"]
        and old_condition.last_transition_time is not None
    ):
        transition_time = old_condition.last_transition_time.timestamp()
    return {**condition, "lastTransitionTime": format_time(transition_time)}


def _has_values(condition: Condition | None, status: object, reason: object, message: object) -> bool:
    if condition is None:
        return False
    return (condition.status, condition.reason, condition.message) == (status, reason, message)


def _is_nominated(pod: Pod, node: str, sent_status: Mapping[str, Any]) -> bool:
    return pod.status.nominated_node_name == node and sent_status.get("nominatedNodeName", node) in (node, node or None)


def _make_status_patch(obj: Pod | PodGroup, status: dict[str, Any]) -> ApiCall:
    """Return the patch of *obj* with *status*. A new condition follows those that *obj* has.

    Without the order, the API server puts a new condition before those of other writers.

    Source: apimachinery/pkg/util/strategicpatch/patch.go, normalizeElementOrder; pkg/scheduler/util/utils.go,
    PatchPodStatus (1.37).
    """
    meta = obj.metadata
    if "conditions" in status and obj.status.conditions:
        types = dict.fromkeys(condition.type for condition in obj.status.conditions)
        types |= dict.fromkeys(condition["type"] for condition in status["conditions"])
        status = {"$setElementOrder/conditions": [{"type": type_} for type_ in types], **status}
    body = {"metadata": {"uid": meta.uid}, "status": status}
    return ApiCall("patch", type(obj).__name__, meta.namespace, meta.name, body, "status")


def make_pod_scheduled_patch(
    pod: Pod,
    reason: str,
    message: str,
    nominated_node: str | None,
    now: float,
    sent_status: Mapping[str, Any] = _NOTHING_SENT,
) -> ApiCall | None:
    """Return the patch for a failed attempt; None if the status is up to date.

    *reason* is `Unschedulable` or `SchedulerError`. *nominated_node* is the node to nominate for the pod; None keeps
    the current nomination, "" clears it. *now* is in seconds since 1970. *sent_status* has the values of earlier
    patches: *pod* may be older than they are. A value is left out if the pod has it and no other value was sent.
    """
    old_condition = find_condition(pod.status.conditions, "PodScheduled")
    sent_reasons = {(each["reason"], each["message"]) for each in sent_status.get("conditions", ())}
    is_unchanged = _has_values(old_condition, "False", reason, message) and sent_reasons <= {(reason, message)}
    status: dict[str, Any] = {}
    if not is_unchanged:
        condition = {
            "type": "PodScheduled",
            "status": "False",
            "reason": reason,
            "message": message,
            "observedGeneration": pod.metadata.generation,
            "lastProbeTime": None,
        }
        status["conditions"] = [_with_transition_time(old_condition, condition, now)]
    if nominated_node is not None and not _is_nominated(pod, nominated_node, sent_status):
        status["nominatedNodeName"] = nominated_node or None
    return _make_status_patch(pod, status) if status else None


def make_pod_group_scheduled_patch(group: PodGroup, status: Status, condition_type: str, now: float) -> ApiCall | None:
    """Return the patch for *group* with the *status* of its attempt; None if the status is up to date.

    The type of the condition depends on the release.

    If the condition says that the group was scheduled, a later failure does not change it.

    Source: pkg/scheduler/schedule_one_podgroup.go, Scheduler.updatePodGroupCondition (1.36).
    """
    reason = "Scheduled" if status.is_success else "Unschedulable" if status.is_rejected else "SchedulerError"
    condition = {
        "type": condition_type,
        "status": str(status.is_success),
        "reason": reason,
        "message": status.message,
        "observedGeneration": group.metadata.generation,
    }
    old_condition = find_condition(group.status.conditions, condition_type)
    if old_condition is not None and old_condition.status == "True" and not status.is_success:
        return None
    if _has_values(old_condition, condition["status"], reason, status.message) and (
        old_condition is not None and old_condition.observed_generation == group.metadata.generation
    ):
        return None
    return _make_status_patch(group, {"conditions": [_with_transition_time(old_condition, condition, now)]})


def apply_condition_patch(group: PodGroup, patch: ApiCall) -> PodGroup:
    """Return *group* with the patch of `make_pod_group_scheduled_patch` applied."""
    (condition,) = (msgspec.convert(raw_condition, Condition) for raw_condition in patch.body["status"]["conditions"])
    other_conditions = tuple(
        old_condition for old_condition in group.status.conditions if old_condition.type != condition.type
    )
    status = msgspec.structs.replace(group.status, conditions=(*other_conditions, condition))
    return msgspec.structs.replace(group, status=status)


def make_nomination_patch(pod: Pod, node: str, sent_status: Mapping[str, Any] = _NOTHING_SENT) -> ApiCall | None:
    """Return the patch that nominates *node* for *pod*; None if the status is up to date. "" clears the nomination.

    *sent_status* is that of `make_pod_scheduled_patch`.
    """
    if _is_nominated(pod, node, sent_status):
        return None
    return _make_status_patch(pod, {"nominatedNodeName": node or None})


def make_disruption_target_patch(victim: Pod, scheduler_name: str, preemptor_kind: str, now: float) -> ApiCall | None:
    """Return the patch for the DisruptionTarget condition of *victim*; None if the status is up to date.

    *scheduler_name* is that of the preemptor, *preemptor_kind* `pod` or `podgroup`, and *now* in seconds since 1970.

    Source: pkg/scheduler/framework/preemption/executor.go, NewExecutor (1.36).
    """
    condition = {
        "type": "DisruptionTarget",
        "status": "True",
        "reason": "PreemptionByScheduler",
        "message": f"{scheduler_name}: preempting to accommodate a higher priority {preemptor_kind}",
        "observedGeneration": victim.metadata.generation,
        "lastProbeTime": None,
    }
    old_condition = find_condition(victim.status.conditions, "DisruptionTarget")
    if _has_values(old_condition, "True", condition["reason"], condition["message"]):
        return None
    return _make_status_patch(victim, {"conditions": [_with_transition_time(old_condition, condition, now)]})


def make_delete_call(victim: Pod) -> ApiCall:
    """Return the delete call for *victim*, with its uid as a precondition.

    Source: pkg/scheduler/framework/preemption/executor.go, NewExecutor; pkg/scheduler/util/utils.go, DeletePod
    (1.36).
    """
    meta = victim.metadata
    return ApiCall("delete", "Pod", meta.namespace, meta.name, {"preconditions": {"uid": meta.uid}})
