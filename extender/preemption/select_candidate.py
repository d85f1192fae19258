"""Select one of several candidates for preemption.

Source: pkg/scheduler/framework/preemption/preemption.go, pickOneNodeForPreemption; pkg/scheduler/util/utils.go,
GetEarliestPodStartTime (1.36).
"""

from collections.abc import Callable, Sequence
from random import Random

from extender.preemption.plan import Candidate, PreemptionPlan

_PRIORITY_OFFSET = 1 << 31
"""Added to each priority, so that more victims have a higher sum even if their priorities are negative."""


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
