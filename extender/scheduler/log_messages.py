"""Log what happens to each pod and pod group, with kube-scheduler's texts and verbosities.

Source: cmd/kube-scheduler/app/server.go, Run; pkg/scheduler/schedule_one.go, Scheduler.handleSchedulingFailure;
pkg/scheduler/framework/preemption/executor.go, NewExecutor (1.36); pkg/scheduler/schedule_one_podgroup.go,
Scheduler.scheduleOnePodGroup, Scheduler.submitPodGroupAlgorithmResult (1.37).
"""

from typing import Final

from extender.api.kinds.pod import Pod
from extender.cache.group_hierarchy import Group
from extender.cache.pod_groups import get_pod_group_key
from extender.cycle.diagnosis import NO_NODES
from extender.framework.pod_group_points import PodGroupInfo
from extender.framework.status import Code, Status
from extender.logs.klog import verbosity
from extender.scheduler.context import log

_OUTCOME_LEVEL: Final = verbosity(2)
_ATTEMPT_LEVEL: Final = verbosity(3)


def log_attempt(pod: Pod) -> None:
    """Log the start of an attempt."""
    if log.isEnabledFor(_ATTEMPT_LEVEL):
        log.log(_ATTEMPT_LEVEL, "Attempting to schedule pod", extra={"pod": pod})


def log_bound(pod: Pod, node: str, evaluated_count: int, feasible_count: int) -> None:
    """Log that the pod is bound, with the numbers of evaluated and of feasible nodes."""
    if log.isEnabledFor(_OUTCOME_LEVEL):
        counts = {"evaluatedNodes": evaluated_count, "feasibleNodes": feasible_count}
        log.log(_OUTCOME_LEVEL, "Successfully bound pod to node", extra={"pod": pod, "node": node, **counts})


def log_unschedulable(pod: Pod, message: str, *, has_rejectors: bool) -> None:
    """Log that the pod cannot be scheduled. Without rejectors, a member of a pod group was rejected with its group."""
    if not log.isEnabledFor(_OUTCOME_LEVEL):
        return
    if message == NO_NODES:
        text = "Unable to schedule pod; no nodes are registered to the cluster; waiting"
        log.log(_OUTCOME_LEVEL, text, extra={"pod": pod})
        return
    is_rejected_with_group = not has_rejectors and get_pod_group_key(pod) is not None
    detail = " belonging to a pod group" if is_rejected_with_group else "; no fit"
    log.log(_OUTCOME_LEVEL, f"Unable to schedule pod{detail}; waiting", extra={"pod": pod, "err": message})


def log_group_attempt(group: PodGroupInfo) -> None:
    """Log the start of an attempt of a pod group, or of a composite pod group."""
    if log.isEnabledFor(_ATTEMPT_LEVEL):
        kind = "compositepodgroup" if group.is_composite else "podgroup"
        fields = {"podGroupType": kind, "podGroup": _make_reference(group)}
        log.log(_ATTEMPT_LEVEL, "Attempting to schedule pod group", extra=fields)


def log_group_outcome(group: PodGroupInfo, status: Status, scheduled: int, rejected: int, *, waits: bool) -> None:
    """Log the result of an attempt for a pod group, with the numbers of its scheduled and of its other members.

    *waits* tells whether the group waits until preemption victims are deleted.
    """
    fields: dict[str, object] = {"podGroup": _make_reference(group)}
    if status.code is Code.ERROR:
        log.error("Error scheduling pod group", extra={"err": status.message, **fields, "errorPods": rejected})
        return
    text = "Successfully scheduled a pod group"
    if status.is_success:
        fields |= {"scheduledPods": scheduled, "unschedulablePods": rejected}
    else:
        text = "Pod group is waiting for preemption" if waits else "Unable to schedule a pod group"
        fields |= {"unschedulablePods": rejected, "err": status.message}
    log.log(_OUTCOME_LEVEL, text, extra=fields)


def _make_reference(group: PodGroupInfo) -> dict[str, str]:
    return {"name": group.name, "namespace": group.namespace}


def log_preempted(preemptor: Pod | Group, victim: Pod, node: str) -> None:
    """Log that *victim* was deleted for *preemptor*, which preempts on *node*."""
    fields = {"preemptor": preemptor, "victim": victim, "node": node}
    log.log(_OUTCOME_LEVEL, "Preemptor Pod preempted victim Pod", extra=fields)


def log_cancelled(preemptor: Pod | Group, kind: str, victim: Pod, node: str, *, was_waiting: bool) -> None:
    """Log that the binding of *victim*, which waited on Permit or was in PreBind, is cancelled for *preemptor*."""
    text, key = "Preemptor rejected a pod in preBind", "podInPreBind"
    if was_waiting:
        text, key = "Preemptor preempted a waiting pod", "waitingPod"
    log.log(_OUTCOME_LEVEL, text, extra={"preemptorType": kind, "preemptor": preemptor, key: victim, "node": node})


def log_error(pod: Pod, message: str) -> None:
    """Log a failed attempt, at any verbosity."""
    log.error("Error scheduling pod; retrying", extra={"pod": pod, "err": message})
