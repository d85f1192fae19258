"""What a plugin can answer, each code explained by what follows from it. Source: A048 to A051."""

from dataclasses import dataclass, replace
from enum import IntEnum
from typing import NamedTuple

from extender.cluster.arrays import BoolArray


class Code(IntEnum):
    """The outcome of a plugin's call.

    SUCCESS: go on.
    ERROR: the attempt ends at once; the pod is tried again after its error backoff.
    UNSCHEDULABLE: rejected, and evicting pods may help, so preemption looks at the node.
    UNRESOLVABLE: rejected, and evicting pods cannot help; preemption leaves the node alone.
    WAIT: from Permit only, the pod waits before it is bound.
    SKIP: the plugin has nothing to say about this pod and is not asked again in this cycle.
    PENDING: rejected until something outside happens; the event that wakes the pod up also spares it the backoff.
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
        """Upstream's name for it, as in results and metrics."""
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
    """An answer about the pod as a whole.

    Attributes:
        code: what follows.
        reasons: in the plugin's own order; texts of kube-scheduler, free of node names, so that they can be counted.
        plugin: who said it; filled in by the runner.
    """

    code: Code
    reasons: tuple[str, ...] = ()
    plugin: str = ""

    @property
    def ok(self) -> bool:
        """Whether the cycle goes on."""
        return self.code is Code.SUCCESS

    @property
    def rejected(self) -> bool:
        """Whether the pod was turned down, as opposed to something having gone wrong."""
        return self.code in _REJECTED

    @property
    def message(self) -> str:
        """The reasons in one line. Source: H068."""
        return ", ".join(self.reasons)

    def by(self, plugin: str) -> "Status":
        """The same, said by *plugin*."""
        return replace(self, plugin=plugin)


_REJECTED = frozenset((Code.UNSCHEDULABLE, Code.UNRESOLVABLE, Code.PENDING))
SUCCESS = Status(Code.SUCCESS)


def unschedulable(*reasons: str) -> Status:
    """Rejected; evicting pods may help."""
    return Status(Code.UNSCHEDULABLE, reasons)


def unresolvable(*reasons: str) -> Status:
    """Rejected; evicting pods cannot help."""
    return Status(Code.UNRESOLVABLE, reasons)


def error(*reasons: str) -> Status:
    """Something went wrong."""
    return Status(Code.ERROR, reasons)


@dataclass(frozen=True, slots=True)
class Reason:
    """Why a node is refused: one text for all nodes it applies to.

    Attributes:
        text: kube-scheduler's words, without node names.
        code: UNSCHEDULABLE, UNRESOLVABLE or ERROR. A node with several reasons of one plugin has the
            gravest code among them.
        order: a node's reasons are told by ascending order; equal ones as they were found.
    """

    text: str
    code: Code = Code.UNSCHEDULABLE
    order: int = 0


class Rejection(NamedTuple):
    """A group of nodes refused for one reason.

    Attributes:
        nodes: which nodes of the view, bool, shape (len(view),).
        reason: why.
    """

    nodes: BoolArray
    reason: Reason


_GRAVITY = {Code.UNSCHEDULABLE: 0, Code.PENDING: 0, Code.UNRESOLVABLE: 1, Code.ERROR: 2}


def gravest(codes: "list[Code]") -> Code:
    """The code of a node that is refused for several reasons: an error, else unresolvable if any reason is.

    Source: B032.
    """
    return max(codes, key=_GRAVITY.__getitem__)
