"""What preemption comes to: the node to make room on and the pods to evict there. Carried out elsewhere."""

from dataclasses import dataclass

from extender.cluster.pods import PlacedPod


@dataclass(frozen=True, slots=True)
class Candidate:
    """A node on which evicting pods makes room.

    Attributes:
        node: its name.
        victims: the pods to evict, the most important first; at least one.
        violations: how many of them a disruption budget protects. Source: E017.
    """

    node: str
    victims: tuple[PlacedPod, ...]
    violations: int


@dataclass(frozen=True, slots=True)
class PreemptionPlan:
    """The best candidate, and those it was chosen from.

    Attributes:
        chosen: where to evict which pods.
        ties: the names of all nodes that are as good by every criterion, the chosen one among them, sorted.
        candidates: all that were found, those that break no budget first.
    """

    chosen: Candidate
    ties: tuple[str, ...]
    candidates: tuple[Candidate, ...]


@dataclass(frozen=True, slots=True)
class GroupPreemptionPlan:
    """The pods to evict, anywhere in the cluster, so that a pod group can be scheduled; the most important first."""

    victims: tuple[PlacedPod, ...]
