"""Preemption plans: which pods to evict, and from which node. `scheduler.evictions` executes the plans."""

from dataclasses import dataclass

from extender.cache.pod_info import AssignedPodInfo


@dataclass(frozen=True, slots=True)
class Candidate:
    """A node on which preemption helps.

    Attributes:
        node_name: the name of the node.
        victims: the pods to evict, the most important first; at least one.
        num_pdb_violations: the number of victims whose eviction violates a disruption budget.

    Source: pkg/scheduler/framework/plugins/defaultpreemption/default_preemption.go,
    DefaultPreemption.SelectVictimsOnNode (1.36).
    """

    node_name: str
    victims: tuple[AssignedPodInfo, ...]
    num_pdb_violations: int


@dataclass(frozen=True, slots=True)
class PreemptionPlan:
    """The plan to preempt for one pod: the best candidate, and all candidates.

    Attributes:
        best_candidate: the selected node and the pods to evict from it.
        tied_nodes: the names of the best candidate's node and of all nodes that tie with it, sorted.
        candidates: all candidates; the candidates without PDB violations are first.
    """

    best_candidate: Candidate
    tied_nodes: tuple[str, ...]
    candidates: tuple[Candidate, ...]


def describe_placement(candidate: Candidate) -> str:
    """Return kube-scheduler's message about a successful preemption, without the plugin's prefix.

    Source: pkg/scheduler/framework/preemption/preemption.go, Evaluator.Preempt (1.37).
    """
    node_name, count = candidate.node_name, len(candidate.victims)
    return f"found a potential placement for pod on node {node_name}, preempting {count} victims"


@dataclass(frozen=True, slots=True)
class GroupPreemptionPlan:
    """The pods to evict in the whole cluster for a pod group.

    Attributes:
        victims: the pods to evict, the most important first.
        num_pdb_violations: the number of victims whose eviction violates a disruption budget.
        num_group_disruptions: the number of pod groups that are evicted as a whole.

    Both numbers are for metrics of 1.37, and 0 in earlier releases.
    """

    victims: tuple[AssignedPodInfo, ...]
    num_pdb_violations: int = 0
    num_group_disruptions: int = 0
