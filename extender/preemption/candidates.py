"""Search the nodes on which preemption helps, until there are enough candidates.

Source: pkg/scheduler/framework/preemption/preemption.go, Evaluator.findCandidates, Evaluator.Preempt;
pkg/scheduler/framework/plugins/defaultpreemption/default_preemption.go, DefaultPreemption.GetOffsetAndNumCandidates
(1.36).
"""

from collections import Counter
from dataclasses import dataclass

import numpy as np

from extender.cache.pod_info import PodInfo
from extender.cache.snapshot import Snapshot
from extender.cycle.post_filter import FailedAttempt
from extender.preemption.disruption_budgets import list_budgets
from extender.preemption.dry_run import DryRunInputs
from extender.preemption.plan import Candidate
from extender.preemption.victims import find_potential_victims, select_victims

_MIN_BATCH_SIZE = 256
"""The smallest number of nodes to dry run together."""


@dataclass(frozen=True, slots=True)
class CandidateLimit:
    """The number of candidates at which a search stops.

    Attributes:
        min_candidate_nodes_percentage: the number as a percentage of the nodes on which preemption may help.
        min_candidate_nodes_absolute: the number must be at least this.
    """

    min_candidate_nodes_percentage: int
    min_candidate_nodes_absolute: int

    def calculate_num_candidates(self, node_count: int) -> int:
        """Return the number of candidates at which a search among *node_count* nodes stops.

        Source: pkg/scheduler/framework/plugins/defaultpreemption/default_preemption.go,
        DefaultPreemption.GetOffsetAndNumCandidates (1.36).
        """
        return min(
            max(node_count * self.min_candidate_nodes_percentage // 100, self.min_candidate_nodes_absolute), node_count
        )


@dataclass(frozen=True, slots=True)
class CandidateSearchResult:
    """The result of a candidate search.

    Attributes:
        candidates: first the candidates without PDB violations, then the others.
        failed_count: the number of evaluated nodes that are not candidates.
        reason_counts: the number of failed nodes by reason.
        errors: the error messages of plugins.
    """

    candidates: tuple[Candidate, ...]
    failed_count: int
    reason_counts: Counter[str]
    errors: tuple[str, ...]


def find_candidates(
    pod: PodInfo, snapshot: Snapshot, attempt: FailedAttempt, limit: CandidateLimit
) -> CandidateSearchResult:
    """Return the nodes of *snapshot* on which preemption helps *pod*.

    Args:
        pod: the preemptor.
        snapshot: the cluster.
        attempt: the failed attempt of *pod*.
        limit: the search stops at this number of candidates if at least one of them has no PDB violation.
    """
    rows = np.flatnonzero(attempt.diagnosis.find_unschedulable_nodes())
    num_candidates = len(rows) if attempt.all_nodes else limit.calculate_num_candidates(len(rows))
    if len(rows) and attempt.rng is not None and not attempt.all_nodes:
        rows = np.roll(rows, -attempt.rng.randrange(len(rows)))
    inputs = DryRunInputs(pod, snapshot, attempt.profile, attempt.runtime, attempt.diagnosis.pre_filter_run)
    non_violating: list[Candidate] = []
    violating: list[Candidate] = []
    reason_counts: Counter[str] = Counter()
    errors: list[str] = []
    failed_count = 0
    budgets = list_budgets(snapshot)
    next_index = 0
    while next_index < len(rows) and not (non_violating and len(non_violating) + len(violating) >= num_candidates):
        # Batches grow because each has a fixed cost, and if the first nodes fail, most other nodes fail too.
        batch_rows = rows[next_index : next_index + max(num_candidates, 3 * next_index, _MIN_BATCH_SIZE)]
        next_index += len(batch_rows)
        selection = select_victims(inputs, batch_rows, find_potential_victims(pod, snapshot, batch_rows), budgets)
        reason_counts += selection.reason_counts
        errors += selection.errors
        failed_count += int(np.count_nonzero(~selection.is_candidate))
        for index in np.flatnonzero(selection.is_candidate).tolist():
            candidates = violating if selection.num_pdb_violations[index] else non_violating
            if len(candidates) < num_candidates:
                candidates.append(selection.make_candidate(index))
            if non_violating and len(non_violating) + len(violating) >= num_candidates:
                break
    return CandidateSearchResult((*non_violating, *violating), failed_count, reason_counts, tuple(errors))
