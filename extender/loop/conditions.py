"""What is written into a pod's status: why it waits, for which node, and why it had to go.

Source: A044, A045, E039, H059 to H061.
"""

from datetime import UTC, datetime
from typing import Any

from extender.framework.points import Write
from extender.objects.meta import Condition
from extender.objects.pod import Pod


def _moment(now: float) -> str:
    return datetime.fromtimestamp(now, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def _condition(known: Condition | None, wanted: dict[str, Any], now: float) -> dict[str, Any]:
    """*wanted* with its times; the time of the last transition stays if the status does."""
    moved = known is None or known.status != wanted["status"] or known.last_transition_time is None
    since = _moment(now)
    if not moved and known is not None and known.last_transition_time is not None:
        since = _moment(known.last_transition_time.timestamp())
    return {**wanted, "lastProbeTime": None, "lastTransitionTime": since}


def _known(pod: Pod, kind: str) -> Condition | None:
    return next((condition for condition in pod.status.conditions if condition.type == kind), None)


def _status_patch(pod: Pod, status: dict[str, Any]) -> Write:
    meta = pod.metadata
    body = {"metadata": {"uid": meta.uid}, "status": status}
    return Write("patch", "Pod", meta.namespace, meta.name, body, "status")


def not_scheduled(pod: Pod, reason: str, message: str, nominated: str | None, now: float) -> Write | None:
    """The patch that says why *pod* has no node; None if its status says so already.

    Args:
        pod: as last seen.
        reason: `Unschedulable` or `SchedulerError`.
        message: in full.
        nominated: the node it shall wait for; None leaves that alone, the empty name clears it.
        now: seconds since 1970.
    """
    known = _known(pod, "PodScheduled")
    same = known is not None and (known.status, known.reason, known.message) == ("False", reason, message)
    status: dict[str, Any] = {}
    if not same:
        wanted = {
            "type": "PodScheduled",
            "status": "False",
            "reason": reason,
            "message": message,
            "observedGeneration": pod.metadata.generation,
        }
        status["conditions"] = [_condition(known, wanted, now)]
    if nominated is not None and nominated != pod.status.nominated_node_name:
        status["nominatedNodeName"] = nominated or None
    return _status_patch(pod, status) if status else None


def nominated_only(pod: Pod, node: str) -> Write | None:
    """The patch that nominates *pod* for *node* (the empty name clears it); None if it says so already."""
    if pod.status.nominated_node_name == node:
        return None
    return _status_patch(pod, {"nominatedNodeName": node or None})


def must_go(victim: Pod, scheduler: str, now: float) -> Write | None:
    """The patch that says why *victim* is evicted; None if it says so already. Source: E039."""
    wanted = {
        "type": "DisruptionTarget",
        "status": "True",
        "reason": "PreemptionByScheduler",
        "message": f"{scheduler}: preempting to accommodate a higher priority pod",
        "observedGeneration": victim.metadata.generation,
    }
    known = _known(victim, "DisruptionTarget")
    if known is not None and (known.status, known.reason, known.message) == (
        "True",
        wanted["reason"],
        wanted["message"],
    ):
        return None
    return _status_patch(victim, {"conditions": [_condition(known, wanted, now)]})


def eviction(victim: Pod) -> Write:
    """The delete call for *victim*, for this very pod only. Source: E039, E040."""
    meta = victim.metadata
    return Write("delete", "Pod", meta.namespace, meta.name, {"preconditions": {"uid": meta.uid}})
