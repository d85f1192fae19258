"""Classify the pods of a node that is drained or lost, by kubectl drain's rules, and make new pending pods.

Source: k8s.io/kubectl/pkg/drain/filters.go, Helper.daemonSetFilter, Helper.mirrorPodFilter, Helper.unreplicatedFilter
(1.36).
"""

from enum import Enum
from typing import Final

from msgspec.structs import replace

from extender.api.kinds.pod import Pod, PodStatus

_MIRROR_ANNOTATION: Final = "kubernetes.io/config.mirror"
_PENDING: Final = PodStatus(phase="Pending")


class Departure(Enum):
    """The outcome for a pod whose node is drained or lost.

    Attributes:
        REPLACED: the controller creates a new pod.
        LOST: the pod has no controller.
        DAEMON_OR_MIRROR: the pod belongs to the node, because it is a mirror pod or a pod of a DaemonSet.
        TERMINATING: the pod is being deleted already, and its replacement exists.
    """

    REPLACED = "replaced"
    LOST = "lost"
    DAEMON_OR_MIRROR = "daemon or mirror"
    TERMINATING = "terminating"


def classify_departure(pod: Pod) -> Departure:
    """Return what happens to *pod* when it must leave its node."""
    controller = pod.metadata.controller
    kind = controller.kind if controller is not None else ""
    if _MIRROR_ANNOTATION in pod.metadata.annotations or kind in ("Node", "DaemonSet"):
        return Departure.DAEMON_OR_MIRROR
    if pod.metadata.deletion_timestamp is not None:
        return Departure.TERMINATING
    return Departure.REPLACED if controller is not None else Departure.LOST


def make_pending_pod(pod: Pod, name: str, uid: str, status: PodStatus = _PENDING) -> Pod:
    """Return a new pending pod that equals *pod* except for its name, uid and *status*."""
    meta = replace(pod.metadata, name=name, uid=uid, creation_timestamp=None, deletion_timestamp=None)
    spec = replace(pod.spec, node_name="") if pod.spec.node_name else pod.spec
    return replace(pod, metadata=meta, spec=spec, status=status)


def make_replacement(pod: Pod) -> Pod:
    """Return the pending pod that the controller creates for *pod*. It keeps the name, and has a new uid.

    Its claims have the same names as the claims of *pod*; see `claim_release`.
    """
    status = PodStatus(phase="Pending", resource_claim_statuses=pod.status.resource_claim_statuses)
    return make_pending_pod(pod, pod.metadata.name, f"replacement-of/{pod.metadata.uid or pod.key}", status)
