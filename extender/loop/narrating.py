"""What the log says of each pod, in kube-scheduler's words and at its verbosity. Source: A.1, A042."""

from typing import Final

from extender.loop.desk import log
from extender.objects.pod import Pod
from extender.observe.logs import verbosity

_OUTCOME: Final = verbosity(2)
_ATTEMPT: Final = verbosity(3)


def attempting(pod: Pod) -> None:
    """The pod is tried."""
    if log.isEnabledFor(_ATTEMPT):
        log.log(_ATTEMPT, "Attempting to schedule pod", extra={"pod": pod})


def bound(pod: Pod, node: str) -> None:
    """The pod is on its node."""
    if log.isEnabledFor(_OUTCOME):
        log.log(_OUTCOME, "Successfully bound pod to node", extra={"pod": pod, "node": node})


def refused(pod: Pod, message: str) -> None:
    """The pod fits nowhere, and waits."""
    if log.isEnabledFor(_OUTCOME):
        log.log(_OUTCOME, "Unable to schedule pod; no fit; waiting", extra={"pod": pod, "err": message})


def broken(pod: Pod, message: str) -> None:
    """Something went wrong, which is told at any verbosity."""
    log.error("Error scheduling pod; retrying", extra={"pod": pod, "err": message})
