"""Preemption plans: which pods to evict, and from which node, and the selection of one of several candidates.

`scheduler.evictions` executes the plans.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from random import Random

from extender.cache.pod_info import AssignedPodInfo

_PRIORITY_OFFSET = 1 << 31
"""Added to each priority, so that more victims have a higher sum even if their priorities are negative."""


@dataclass(frozen=True, slots=True)
class Candidate:
    """A node on which preemption helps.

    Attributes:
        victims: the pods to evict, the most important first; none only in the answer of the verb `preempt`.
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
        num_group_disruptions: the number of pod groups that are evicted as a whole, plus the number of other evicted
            members of pod groups.

    Both numbers are for metrics of 1.37, and 0 in earlier releases.
    """

    victims: tuple[AssignedPodInfo, ...]
    num_pdb_violations: int = 0
    num_group_disruptions: int = 0


def _get_negated_start_time(candidate: Candidate) -> float:
    """Return the earliest start time of the victims of the highest priority, negated so that the latest is best."""
    highest = max([victim.signature.priority for victim in candidate.victims])
    return -min([victim.start_time for victim in candidate.victims if victim.signature.priority == highest])


_CRITERIA: tuple[Callable[[Candidate], float], ...] = (
    lambda candidate: candidate.num_pdb_violations,
    lambda candidate: candidate.victims[0].signature.priority,
    lambda candidate: sum([victim.signature.priority + _PRIORITY_OFFSET for victim in candidate.victims]),
    lambda candidate: len(candidate.victims),
    _get_negated_start_time,
)
"""The criteria in order: the lowest value is best, and each criterion breaks the ties of the previous ones."""


def select_candidate(candidates: Sequence[Candidate], rng: Random | None) -> PreemptionPlan:
    """Return a plan for the best of *candidates*.

    *candidates* has at least one, and their nodes differ. *rng* breaks ties; None selects the first node name.

    Source: pkg/scheduler/framework/preemption/preemption.go, pickOneNodeForPreemption; pkg/scheduler/util/utils.go,
    GetEarliestPodStartTime (1.36).
    """
    remaining_candidates = list(candidates)
    for criterion in _CRITERIA:
        if len(remaining_candidates) == 1:
            break
        ranks = [criterion(candidate) for candidate in remaining_candidates]
        best_rank = min(ranks)
        remaining_candidates = [
            candidate for candidate, rank in zip(remaining_candidates, ranks, strict=True) if rank == best_rank
        ]
    remaining_candidates.sort(key=lambda candidate: candidate.node_name)
    best_candidate = remaining_candidates[0] if rng is None else rng.choice(remaining_candidates)
    return PreemptionPlan(
        best_candidate, tuple(candidate.node_name for candidate in remaining_candidates), tuple(candidates)
    )
