"""Select victims: remove all potential victims, then reprieve as many as possible.

Many nodes are processed together: step k tries to reprieve the k-th pod of every node.

Source: pkg/scheduler/framework/preemption/preemption.go, Evaluator.DryRunPreemption (1.36).
"""

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import chain, compress

import numpy as np

from extender.cache.pod_batch import PodBatch
from extender.cache.pod_info import AssignedPodInfo, PodInfo
from extender.cache.snapshot import Snapshot
from extender.cache.tables.arrays import BoolArray, IntArray
from extender.config.releases import Release
from extender.cycle.dry_run import DryRun, DryRunInputs
from extender.preemption.disruption_budgets import Budgets, find_violating_pods
from extender.preemption.importance import order_by_importance
from extender.preemption.plan import Candidate

NO_VICTIMS = "No preemption victims found for incoming pod"
"""The reason of a node without pods of lower priority.

Source: pkg/scheduler/framework/plugins/defaultpreemption/default_preemption.go, DefaultPreemption.SelectVictimsOnNode
(1.36).
"""


@dataclass(frozen=True, slots=True)
class VictimSelection:
    """The victims of several nodes.

    Attributes:
        node_names: the evaluated nodes.
        is_candidate: whether preemption helps on each node: bool, one entry per node.
        num_pdb_violations: the number of victims on each node whose eviction violates a disruption budget: int64.
        reason_counts: the number of nodes that are no candidates, by reason.
        errors: the error messages of plugins.

    Source: pkg/scheduler/framework/plugins/defaultpreemption/default_preemption.go,
    DefaultPreemption.SelectVictimsOnNode (1.36).
    """

    node_names: tuple[str, ...]
    is_candidate: BoolArray
    num_pdb_violations: IntArray
    reason_counts: Counter[str]
    errors: tuple[str, ...]
    _order: "_ReprieveOrder"
    _evicted: BoolArray
    _violating: BoolArray

    def make_candidate(self, index: int) -> Candidate:
        """Return the candidate at position *index*, where `is_candidate` is true."""
        victims = self._order.get_pods_on_row(index, self._evicted, self._violating)
        return Candidate(self.node_names[index], victims, int(self.num_pdb_violations[index]))

    def iter_candidates(self) -> Iterator[Candidate | None]:
        """Yield a candidate, or None, for each node."""
        is_candidate_by_index = enumerate(self.is_candidate.tolist())
        return (self.make_candidate(index) if is_candidate else None for index, is_candidate in is_candidate_by_index)


def find_potential_victims(pod: PodInfo, snapshot: Snapshot, rows: IntArray) -> PodBatch:
    """Return the pods on *rows* that *pod* may preempt, grouped by row."""
    pods_by_row = snapshot.pods_by_row(rows)
    counts = np.fromiter(map(len, pods_by_row), dtype=np.int64, count=len(pods_by_row))
    batch = PodBatch(list(chain.from_iterable(pods_by_row)), np.repeat(rows, counts))
    return batch.select(np.flatnonzero(batch.map_signatures(lambda signature: signature.priority) < pod.priority))


def select_victims(
    inputs: DryRunInputs,
    rows: IntArray,
    potential_victims: PodBatch,
    budgets: Budgets,
    uids_to_reprieve_last: frozenset[str] = frozenset(),
) -> VictimSelection:
    """Select the victims on each of *rows*, independently of the other rows.

    *rows* are int64, without duplicates; *potential_victims* are the pods on them that may be evicted. Pods whose
    eviction violates one of *budgets* are reprieved first, and those with *uids_to_reprieve_last* after all other pods.
    """
    order = _ReprieveOrder(rows, potential_victims, inputs.profile.release)
    node_names = tuple(map(inputs.snapshot.names.__getitem__, rows.tolist()))
    is_candidate = np.zeros(len(rows), dtype=np.bool_)
    reason_counts: Counter[str] = Counter()
    if order.empty_row_count:
        reason_counts[NO_VICTIMS] += order.empty_row_count
    dry_run = DryRun(inputs, rows, order.batch)
    dry_run.remove_pods(np.arange(len(order.batch)))
    tried_positions = np.flatnonzero(order.counts)
    result = dry_run.run_filters(rows[tried_positions])
    reason_counts += result.count_reasons()
    violating = find_violating_pods(budgets, order.batch, order.positions)
    evicted_mask = order.reprieve(dry_run, tried_positions[result.fits], violating, uids_to_reprieve_last)
    is_candidate[tried_positions[result.fits]] = True
    is_candidate &= ~np.isin(rows, list(dry_run.errors))
    without_victims = is_candidate & (order.count_by_row(evicted_mask) == 0)
    errors = [*result.get_errors(), *map(str, dry_run.errors.values())]
    errors += [
        f'expected at least one victim pod on node "{node_names[index]}"'
        for index in np.flatnonzero(without_victims).tolist()
    ]
    num_pdb_violations = order.count_by_row(evicted_mask & violating)
    is_candidate &= ~without_victims
    return VictimSelection(
        node_names, is_candidate, num_pdb_violations, reason_counts, tuple(errors), order, evicted_mask, violating
    )


class _ReprieveOrder:
    """The potential victims, grouped by node and ordered by importance.

    Attributes:
        rows: the rows of the evaluated nodes.
        release: the emulated release.
        batch: the pods, grouped by row, the most important first.
        positions: the position in `rows` of each pod's row, ascending, int64.
        counts: the number of pods on each row.
        start_offsets: the index in `batch` of the first pod of each row.
        empty_row_count: the number of rows without pods.
    """

    def __init__(self, rows: IntArray, potential_victims: PodBatch, release: Release) -> None:
        self.rows, self.release = rows, release
        position_of_row: IntArray = np.zeros(int(rows.max(initial=0)) + 1, dtype=np.int64)
        position_of_row[rows] = np.arange(len(rows))
        positions = position_of_row[potential_victims.rows]
        order = order_by_importance(potential_victims, positions, release)
        self.batch, self.positions = potential_victims.select(order), positions[order]
        self.counts: IntArray = np.bincount(positions, minlength=len(rows))
        self.start_offsets: IntArray = np.cumsum(self.counts) - self.counts
        self.empty_row_count = int(np.count_nonzero(self.counts == 0))

    def reprieve(
        self, dry_run: DryRun, positions: IntArray, violating: BoolArray, uids_to_reprieve_last: frozenset[str]
    ) -> BoolArray:
        """Reprieve pods one after another; return which pods must be evicted: bool, shape (number of pods,).

        All pods are removed in *dry_run*. Only rows at *positions*, which fit the preemptor, count. Pods in the mask
        *violating*, whose eviction violates a budget, are reprieved first, and those with *uids_to_reprieve_last* last.
        """
        evicted_mask = np.zeros(len(self.batch), dtype=np.bool_)
        is_reprieved_last = np.zeros(len(self.batch), dtype=np.bool_)
        if uids_to_reprieve_last:
            is_reprieved_last[:] = [pod.uid in uids_to_reprieve_last for pod in self.batch.pods]
        reprieve_order = np.lexsort((~violating, is_reprieved_last, self.positions))
        for step in range(int(self.counts[positions].max(initial=0))):
            positions = positions[self.counts[positions] > step]
            reprieved_positions = reprieve_order[self.start_offsets[positions] + step]
            dry_run.restore_pods(reprieved_positions)
            rejected_positions = reprieved_positions[~dry_run.run_filters(self.rows[positions]).fits]
            dry_run.remove_pods(rejected_positions)
            evicted_mask[rejected_positions] = True
        return evicted_mask

    def count_by_row(self, mask: BoolArray) -> IntArray:
        """Return the number of pods in *mask* on each row: int64."""
        return np.bincount(self.positions[mask], minlength=len(self.rows))

    def get_pods_on_row(self, index: int, mask: BoolArray, violating: BoolArray) -> tuple[AssignedPodInfo, ...]:
        """Return the pods in *mask* on the row at position *index*, the most important first.

        If only some of the pods on the row are in the mask *violating*, these precede the other equally important pods
        on a node with up to 12 victims, because kube-scheduler sorts the victims again.
        """
        first_index = int(self.start_offsets[index])
        row_slice = slice(first_index, first_index + int(self.counts[index]))
        violating_on_row = violating[row_slice]
        if not violating_on_row.any() or violating_on_row.all():
            return tuple(compress(self.batch.pods[row_slice], mask[row_slice].tolist()))
        indices = first_index + np.flatnonzero(mask[row_slice])
        batch = self.batch.select(indices[np.argsort(~violating[indices], kind="stable")])
        order = order_by_importance(batch, np.zeros(len(batch), dtype=np.int64), self.release)
        return tuple([batch.pods[position] for position in order.tolist()])
