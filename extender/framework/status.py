"""Statuses, codes and rejections: the results of plugins.

Source: kube-scheduler/framework/interface.go, Status, Code (1.36).
"""

from dataclasses import dataclass, replace
from enum import IntEnum
from typing import NamedTuple

import numpy as np

from extender.cache.tables.arrays import BoolArray


class Code(IntEnum):
    """The outcome of a plugin call.

    SUCCESS: the attempt continues.
    ERROR: the attempt ends at once; the pod is retried after its error backoff.
    UNSCHEDULABLE: the pod or node is rejected. Preemption considers the node, because evictions may help.
    UNRESOLVABLE: the pod or node is rejected. Preemption skips the node, because evictions cannot help.
    WAIT: the pod waits before it is bound; only for Permit.
    SKIP: the plugin does not apply to this pod and is not called again in this cycle.
    PENDING: the pod is rejected until an external event, which requeues it without backoff.
    """

    SUCCESS = 0
    ERROR = 1
    UNSCHEDULABLE = 2
    UNRESOLVABLE = 3
    WAIT = 4
    SKIP = 5
    PENDING = 6

    @property
    def label(self) -> str:
        """Upstream's name of the code, as in metrics."""
        return _LABELS[self]


_LABELS = {
    Code.SUCCESS: "Success",
    Code.ERROR: "Error",
    Code.UNSCHEDULABLE: "Unschedulable",
    Code.UNRESOLVABLE: "UnschedulableAndUnresolvable",
    Code.WAIT: "Wait",
    Code.SKIP: "Skip",
    Code.PENDING: "Pending",
}


@dataclass(frozen=True, slots=True)
class Status:
    """The result of a plugin for the pod as a whole.

    Attributes:
        code: the outcome.
        reasons: kube-scheduler's texts in the plugin's order. Texts have no node names, so that they can be counted.
        plugin: the name of the plugin that returned the status. Plugins leave it empty, and the caller sets it.
    """

    code: Code
    reasons: tuple[str, ...] = ()
    plugin: str = ""

    @property
    def is_success(self) -> bool:
        """Whether the cycle continues."""
        return self.code is Code.SUCCESS

    @property
    def is_rejected(self) -> bool:
        """Whether the pod was rejected, other than by an error."""
        return self.code in _REJECTED_CODES

    @property
    def message(self) -> str:
        """The reasons, joined. Source: kube-scheduler/framework/interface.go, Status.Message (1.36)."""
        return ", ".join(self.reasons)

    def with_plugin(self, plugin: str) -> "Status":
        """Return the same status with the name of *plugin*."""
        return replace(self, plugin=plugin)


_REJECTED_CODES = frozenset((Code.UNSCHEDULABLE, Code.UNRESOLVABLE, Code.PENDING))
SUCCESS = Status(Code.SUCCESS)


def unschedulable_status(*reasons: str) -> Status:
    """Return a rejection that preemption may resolve."""
    return Status(Code.UNSCHEDULABLE, reasons)


def unresolvable_status(*reasons: str) -> Status:
    """Return a rejection that preemption cannot resolve."""
    return Status(Code.UNRESOLVABLE, reasons)


def error_status(*reasons: str) -> Status:
    """Return an error status."""
    return Status(Code.ERROR, reasons)


@dataclass(frozen=True, slots=True)
class Reason:
    """The reason of a rejection, for one or more nodes.

    Attributes:
        text: kube-scheduler's text, without node names.
        code: UNSCHEDULABLE, UNRESOLVABLE or ERROR. A node with several reasons of one plugin has the most severe code.
        order: the sort key of a node's reasons. Reasons with equal keys stay in the order in which they were returned.
    """

    text: str
    code: Code = Code.UNSCHEDULABLE
    order: int = 0


class Rejection(NamedTuple):
    """The nodes that a plugin rejects for one reason.

    Attributes:
        nodes: the rejected nodes of the view, bool, shape (len(view),).
        reason: the reason, the same for all of them.
    """

    nodes: BoolArray
    reason: Reason


def reject_all(node_count: int, reason: Reason) -> tuple[Rejection]:
    """Return the rejection of all nodes of a view with *node_count* nodes."""
    return (Rejection(np.ones(node_count, dtype=np.bool_), reason),)


_SEVERITY = {Code.UNSCHEDULABLE: 0, Code.PENDING: 0, Code.UNRESOLVABLE: 1, Code.ERROR: 2}


def find_most_severe_code(codes: "list[Code]") -> Code:
    """Return the most severe of *codes*: ERROR, then UNRESOLVABLE, then the others.

    Source: pkg/scheduler/framework/plugins/noderesources/fit.go, Fit.Filter (1.36).
    """
    return max(codes, key=_SEVERITY.__getitem__)
