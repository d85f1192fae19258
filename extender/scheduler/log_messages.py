"""Log what happens to each pod, with kube-scheduler's texts and verbosities.

Source: cmd/kube-scheduler/app/server.go, Run; pkg/scheduler/schedule_one.go, Scheduler.handleSchedulingFailure;
pkg/scheduler/framework/preemption/executor.go, NewExecutor (1.36).
"""

from typing import Final

from extender.api.kinds.pod import Pod
from extender.cache.group_hierarchy import Group
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


def log_unschedulable(pod: Pod, message: str) -> None:
    """Log that the pod fits no node."""
    if log.isEnabledFor(_OUTCOME_LEVEL):
        log.log(_OUTCOME_LEVEL, "Unable to schedule pod; no fit; waiting", extra={"pod": pod, "err": message})


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
