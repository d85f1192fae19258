"""What is patched into a pod's status: a condition, a nomination; nothing where nothing would change. Pure."""

from datetime import UTC, datetime
from typing import Any, Final

from extender.objects.meta import Condition
from extender.objects.pod import Pod

POD_SCHEDULED: Final = "PodScheduled"
DISRUPTION_TARGET: Final = "DisruptionTarget"


def condition(pod: Pod, type_: str, status: str, reason: str, message: str) -> Condition:
    """A condition as it would be set on *pod*. Source: A045, E.5; the generation since PodObservedGenerationTracking."""
    return Condition(
        type=type_, status=status, reason=reason, message=message, observed_generation=pod.metadata.generation
    )


def status_patch(
    pod: Pod, now: float, new: Condition | None = None, nominated: str | None = None
) -> dict[str, Any] | None:
    """The strategic merge patch of the status, or None if it would change nothing. Source: A045, podutil.UpdatePodCondition.

    Args:
        pod: as we know it; its uid is a condition of the patch.
        now: seconds since 1970, the time of a condition that changes its status.
        new: the condition to set; None sets none. That only its generation changed is no change.
        nominated: the node to nominate, empty to clear the nomination; None leaves it alone.
    """
    status: dict[str, Any] = {}
    if new is not None:
        old = next((entry for entry in pod.status.conditions if entry.type == new.type), None)
        same_status = old is not None and old.status == new.status
        if old is None or not same_status or (old.reason, old.message) != (new.reason, new.message):
            since = old.last_transition_time if old is not None and same_status else None
            others = [{"type": entry.type} for entry in pod.status.conditions]
            status["$setElementOrder/conditions"] = others if old is not None else [*others, {"type": new.type}]
            status["conditions"] = [_written(new, since or datetime.fromtimestamp(now, UTC))]
    if nominated is not None and nominated != pod.status.nominated_node_name:
        status["nominatedNodeName"] = nominated or None
    if not status:
        return None
    return {"metadata": {"uid": pod.metadata.uid}, "status": status}


def _written(new: Condition, since: datetime) -> dict[str, Any]:
    found: dict[str, Any] = {
        "type": new.type,
        "status": new.status,
        "reason": new.reason,
        "message": new.message,
        "lastProbeTime": None,
        "lastTransitionTime": since.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ"),
    }
    if new.observed_generation:
        found["observedGeneration"] = new.observed_generation
    return found
