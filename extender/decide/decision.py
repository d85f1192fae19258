"""What became of one attempt to place a pod."""

from dataclasses import dataclass, field
from typing import Any

from extender.decide.feasible import Feasibility
from extender.decide.rank import Ranking
from extender.framework.verdict import Code, Status


@dataclass(frozen=True, slots=True)
class Placed:
    """A node was found.

    Attributes:
        node: its name.
        feasible: how many nodes could have taken the pod.
        evaluated: how many nodes were looked at. Source: A105.
        notes: PreFilter's notes by plugin, for Reserve and what follows.
        ranking: the scores; None if only one node was feasible, which is taken unrated (A100).
    """

    node: str
    feasible: int
    evaluated: int
    notes: dict[str, Any] = field(default_factory=dict)
    ranking: Ranking | None = None


@dataclass(frozen=True, slots=True)
class Unplaced:
    """No node was found, or something went wrong.

    Attributes:
        status: UNSCHEDULABLE when nodes refused; ERROR when something went wrong; UNRESOLVABLE when there
            is no node at all (A018).
        message: for the pod's event and condition.
        attempt: who refused what.
        rejectors: the plugins whose events may help. Empty after an error: the pod is tried again after
            its error backoff.
        nominated: the node the pod shall wait for; None leaves its nomination alone, the empty name clears it.
        details: what PostFilter plugins want done, by plugin.
    """

    status: Status
    message: str
    attempt: Feasibility
    rejectors: frozenset[str] = frozenset()
    nominated: str | None = None
    details: dict[str, Any] = field(default_factory=dict)

    @property
    def reason(self) -> str:
        """The reason in the pod's condition. Source: A039."""
        return "SchedulerError" if self.status.code is Code.ERROR else "Unschedulable"


Decision = Placed | Unplaced
