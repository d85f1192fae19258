"""Search for nodes on which preemption helps, until there are enough candidates.

Source: pkg/scheduler/framework/preemption/preemption.go, Evaluator.findCandidates, Evaluator.Preempt (1.36).
"""

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

import numpy as np

from extender.cache.pod_info import PodInfo
from extender.cache.snapshot import Snapshot
from extender.cache.tables.arrays import BoolArray, IntArray
from extender.cycle.dry_run import DryRunInputs
from extender.cycle.post_filter import FailedAttempt
from extender.framework.status import Code
from extender.preemption.disruption_budgets import Budgets, list_budgets
from extender.preemption.group_victims_on_node import find_rows_with_group_members, select_victims_on_node
from extender.preemption.plan import Candidate
from extender.preemption.victims import NO_VICTIMS, find_potential_victims, select_victims

_MIN_BATCH_SIZE = 256
"""The smallest number of nodes in one dry run."""


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


def _select_victims(
    inputs: DryRunInputs,
    rows: IntArray,
    group_rows: frozenset[int],
    budgets: Budgets,
    reason_counts: Counter[str],
    errors: list[str],
) -> list[tuple[int, Callable[[], Candidate]]]:
    """Select the victims on each of *rows*; on the rows in *group_rows*, pods of groups are evicted together.

    Return, in the order of the nodes, the number of PDB violations of each candidate and a function that makes it. The
    reasons of the other nodes are added to *reason_counts*, and the error messages of plugins to *errors*.
    """
    is_group_row: BoolArray = np.isin(rows, list(group_rows))
    pod_rows = rows[~is_group_row]
    potential_victims = find_potential_victims(inputs.pod, inputs.snapshot, pod_rows)
    selection = select_victims(inputs, pod_rows, potential_victims, budgets)
    reason_counts.update(selection.reason_counts)
    errors += selection.errors
    positions = np.flatnonzero(~is_group_row)
    candidates: dict[int, tuple[int, Callable[[], Candidate]]] = {
        int(positions[index]): (int(selection.num_pdb_violations[index]), partial(selection.make_candidate, index))
        for index in np.flatnonzero(selection.is_candidate).tolist()
    }
    group_candidates: dict[int, Candidate] = {}
    for position in np.flatnonzero(is_group_row).tolist():
        result = select_victims_on_node(inputs, inputs.snapshot.names[int(rows[position])], budgets)
        if isinstance(result, Candidate):
            group_candidates[position] = result
            candidates[position] = result.num_pdb_violations, partial(group_candidates.__getitem__, position)
            continue
        reason_counts.update(result.reasons)
        if result.code is Code.ERROR:
            errors.append(result.message)
    return [candidates[position] for position in sorted(candidates)]


def find_candidates(
    pod: PodInfo, snapshot: Snapshot, attempt: FailedAttempt, calculate_num_candidates: Callable[[int], int]
) -> CandidateSearchResult:
    """Return the nodes of *snapshot* on which preemption helps *pod*.

    The search stops if there are enough candidates, and at least one of them has no PDB violation.
    *calculate_num_candidates* returns the number that is enough, for the number of nodes on which preemption may help.
    """
    rows = np.flatnonzero(attempt.diagnosis.find_nodes_where_preemption_may_help())
    num_candidates = len(rows) if attempt.all_nodes else calculate_num_candidates(len(rows))
    if len(rows) and attempt.rng is not None and not attempt.all_nodes:
        rows = np.roll(rows, -attempt.rng.randrange(len(rows)))
    group_rows = find_rows_with_group_members(snapshot, attempt.profile)
    if pod.priority <= snapshot.lowest_priority and not group_rows:
        return CandidateSearchResult((), len(rows), +Counter({NO_VICTIMS: len(rows)}), ())
    inputs = DryRunInputs(pod, snapshot, attempt.profile, attempt.runtime, attempt.diagnosis.pre_filter_run)
    non_violating_candidates: list[Candidate] = []
    violating_candidates: list[Candidate] = []
    reason_counts: Counter[str] = Counter()
    errors: list[str] = []
    failed_count = 0
    budgets = list_budgets(snapshot, attempt.profile.release)
    next_index = 0
    while next_index < len(rows) and not (
        non_violating_candidates and len(non_violating_candidates) + len(violating_candidates) >= num_candidates
    ):
        # If the first nodes fail, most other nodes fail too. Batches grow, because each batch has a fixed cost.
        batch_rows = rows[next_index : next_index + max(num_candidates, 3 * next_index, _MIN_BATCH_SIZE)]
        next_index += len(batch_rows)
        selection = _select_victims(inputs, batch_rows, group_rows, budgets, reason_counts, errors)
        failed_count += len(batch_rows) - len(selection)
        for num_pdb_violations, make_candidate in selection:
            candidates = violating_candidates if num_pdb_violations else non_violating_candidates
            if len(candidates) < num_candidates:
                candidates.append(make_candidate())
            if non_violating_candidates and len(non_violating_candidates) + len(violating_candidates) >= num_candidates:
                break
    return CandidateSearchResult(
        (*non_violating_candidates, *violating_candidates), failed_count, +reason_counts, tuple(errors)
    )
