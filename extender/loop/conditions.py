"""What is written into the status of pods and pod groups: why they wait, for which node, and why they had to go.

Source: A044, A045, A151, E039, H059 to H062.
"""

from typing import Any

import msgspec

from extender.decide.podgroup import GroupDecision
from extender.framework.points import Write
from extender.objects.groups import PodGroup
from extender.objects.meta import Condition
from extender.objects.pod import Pod
from extender.objects.times import stamp


def _condition(known: Condition | None, wanted: dict[str, Any], now: float) -> dict[str, Any]:
    """*wanted* with its times; the time of the last transition stays if the status does."""
    since = now
    if known is not None and known.status == wanted["status"] and known.last_transition_time is not None:
        since = known.last_transition_time.timestamp()
    return {**wanted, "lastTransitionTime": stamp(since)}


def _known(thing: Pod | PodGroup, kind: str) -> Condition | None:
    return next((condition for condition in thing.status.conditions if condition.type == kind), None)


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
            "lastProbeTime": None,
        }
        status["conditions"] = [_condition(known, wanted, now)]
    if nominated is not None and nominated != pod.status.nominated_node_name:
        status["nominatedNodeName"] = nominated or None
    return _status_patch(pod, status) if status else None


def group_scheduled(group: PodGroup, decision: GroupDecision, now: float) -> Write | None:
    """The patch that says what became of *group*; None if its status says so already.

    A group that was scheduled once stays so, whatever becomes of members that come later. Source: A151.
    """
    status = decision.status
    reason = "Scheduled" if status.ok else "Unschedulable" if status.rejected else "SchedulerError"
    wanted = {
        "type": "PodGroupScheduled",
        "status": str(status.ok),
        "reason": reason,
        "message": status.message,
        "observedGeneration": group.metadata.generation,
    }
    known = _known(group, "PodGroupScheduled")
    if known is not None and known.status == "True" and not status.ok:
        return None
    same = (wanted["status"], reason, status.message, group.metadata.generation)
    if known is not None and (known.status, known.reason, known.message, known.observed_generation) == same:
        return None
    meta = group.metadata
    body = {"metadata": {"uid": meta.uid}, "status": {"conditions": [_condition(known, wanted, now)]}}
    return Write("patch", "PodGroup", meta.namespace, meta.name, body, "status")


def with_condition(group: PodGroup, write: Write) -> PodGroup:
    """*group* as it is once the patch of `group_scheduled` is in force."""
    (new,) = (msgspec.convert(each, Condition) for each in write.body["status"]["conditions"])
    others = tuple(condition for condition in group.status.conditions if condition.type != new.type)
    status = msgspec.structs.replace(group.status, conditions=(*others, new))
    return msgspec.structs.replace(group, status=status)


def nominated_only(pod: Pod, node: str) -> Write | None:
    """The patch that nominates *pod* for *node* (the empty name clears it); None if it says so already."""
    if pod.status.nominated_node_name == node:
        return None
    return _status_patch(pod, {"nominatedNodeName": node or None})


def must_go(victim: Pod, scheduler: str, preemptor: str, now: float) -> Write | None:
    """The patch that says why *victim* is evicted; None if it says so already. Source: E039.

    Args:
        victim: as last seen.
        scheduler: who evicts it.
        preemptor: for what: `pod` or `podgroup`.
        now: seconds since 1970.
    """
    wanted = {
        "type": "DisruptionTarget",
        "status": "True",
        "reason": "PreemptionByScheduler",
        "message": f"{scheduler}: preempting to accommodate a higher priority {preemptor}",
        "observedGeneration": victim.metadata.generation,
        "lastProbeTime": None,
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
