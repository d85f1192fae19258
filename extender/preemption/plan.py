"""Preemption plans, each a node and the pods to evict. `scheduler.evictions` executes them."""

from dataclasses import dataclass

from extender.cache.pod_info import AssignedPodInfo


@dataclass(frozen=True, slots=True)
class Candidate:
    """A node on which preemption helps.

    Attributes:
        node_name: the name of the node.
        victims: the pods to evict, the most important first; at least one.
        num_pdb_violations: the number of victims that a disruption budget protects.

    Source: pkg/scheduler/framework/plugins/defaultpreemption/default_preemption.go,
    DefaultPreemption.SelectVictimsOnNode (1.36).
    """

    node_name: str
    victims: tuple[AssignedPodInfo, ...]
    num_pdb_violations: int


@dataclass(frozen=True, slots=True)
class PreemptionPlan:
    """The best candidate, and all candidates.

    Attributes:
        best_candidate: the node and pods to evict.
        tied_nodes: the names of the best candidate's node and of all nodes that tie with it, sorted.
        candidates: all candidates; the candidates without PDB violations are first.
    """

    best_candidate: Candidate
    tied_nodes: tuple[str, ...]
    candidates: tuple[Candidate, ...]


@dataclass(frozen=True, slots=True)
class GroupPreemptionPlan:
    """The pods to evict in the whole cluster for a pod group, the most important first."""

    victims: tuple[AssignedPodInfo, ...]
