"""Review the victims that a kube-scheduler sends to the `preempt` verb: reprieve or add victims, or drop the node.

Source: pkg/scheduler/framework/preemption/preemption.go, Evaluator.callExtenders; pkg/scheduler/extender.go,
HTTPExtender.convertPodUIDToPod, HTTPExtender.convertToVictims (1.36, 1.38).
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np

from extender.cache.pod_batch import PodBatch
from extender.cache.pod_info import AssignedPodInfo, PodInfo
from extender.cache.snapshot import Snapshot
from extender.cache.tables.arrays import IntArray
from extender.config.releases import Release
from extender.cycle.dry_run import DryRun, DryRunInputs
from extender.cycle.plugin_runtime import PluginRuntime
from extender.cycle.pre_filter import run_pre_filter_plugins
from extender.framework.profiles import Profile
from extender.framework.status import Code, Status
from extender.preemption.disruption_budgets import Budgets, find_violating_pods, list_budgets
from extender.preemption.importance import order_by_importance
from extender.preemption.plan import Candidate
from extender.preemption.victims import find_potential_victims, select_victims

MAX_PODS_PER_PART: Final = 4_000
"""Limit of the pods on the nodes that are reviewed together, which takes some ten milliseconds."""

_PODS_PER_NODE: Final = 10
"""A node takes as much time as so many pods."""


@dataclass(frozen=True, slots=True)
class ReviewedVictims:
    """The result of a review of some nodes.

    Attributes:
        candidates: the nodes on which preemption helps, with their victims, by node name; and nodes without proposed
            victims that need none.
        unknown_uids: the uids of proposed victims that are not in the snapshot, by the name of the candidate node. They
            remain victims.
        error: the error of PreFilter, or None. With an error there are no candidates.
    """

    candidates: Mapping[str, Candidate]
    unknown_uids: Mapping[str, tuple[str, ...]]
    error: Status | None = None


def review_victims(
    pod: PodInfo, snapshot: Snapshot, profile: Profile, runtime: PluginRuntime, victim_uids: Mapping[str, Sequence[str]]
) -> Iterator[ReviewedVictims]:
    """Review the victims of each node with the Filter plugins of *profile*; yield the results of a part of the nodes.

    Unnecessary victims are reprieved. Victims whose eviction violates a disruption budget are tried first. If the
    proposed victims are not enough, as few other pods of lower priority as possible are added. Pods that only this
    process assumes are not added: kube-scheduler may not know them, and would end the preemption with an error. A node
    is dropped if it is unknown, if PreFilter excludes it, or if the added victims are not enough. If all proposed
    victims are unnecessary, they are accepted unchanged, because kube-scheduler may have plugins that this profile does
    not have. kube-scheduler 1.38 also proposes nodes without victims, on which its own filters pass. If no victim is
    necessary there, the node is accepted unchanged, because the next extender may add victims. *victim_uids* has the
    uids of the proposed victims by node name.
    """
    pre_filter_run = run_pre_filter_plugins(pod, snapshot, profile, runtime)
    if pre_filter_run.status is not None and not pre_filter_run.status.is_rejected:
        yield ReviewedVictims({}, {}, pre_filter_run.status)
        return
    if pre_filter_run.status is not None and pre_filter_run.status.code is not Code.UNSCHEDULABLE:
        return
    allowed_names = victim_uids if pre_filter_run.node_names is None else pre_filter_run.node_names
    node_names = [name for name in victim_uids if name in allowed_names and snapshot.row(name) is not None]
    inputs = DryRunInputs(pod, snapshot, profile, runtime, pre_filter_run)
    budgets = list_budgets(snapshot, profile.release)
    for part in _split_by_pods(snapshot, node_names):
        yield _review_part(inputs, part, budgets, victim_uids)


def _split_by_pods(snapshot: Snapshot, node_names: Sequence[str]) -> Iterator[Sequence[str]]:
    """Yield parts of *node_names* with few pods on them together."""
    start, pod_count = 0, 0
    for index, name in enumerate(node_names):
        pod_count += len(snapshot.pods_on(name)) + _PODS_PER_NODE
        if pod_count > MAX_PODS_PER_PART and index > start:
            yield node_names[start:index]
            start, pod_count = index, len(snapshot.pods_on(name)) + _PODS_PER_NODE
    if node_names:
        yield node_names[start:]


def _review_part(
    inputs: DryRunInputs, node_names: Sequence[str], budgets: Budgets, victim_uids: Mapping[str, Sequence[str]]
) -> ReviewedVictims:
    """Review the victims of *node_names*, which are known."""
    snapshot = inputs.snapshot
    missing_uids = {name: _find_missing_uids(snapshot, name, victim_uids[name]) for name in node_names}
    unknown_uids = {name: uids for name, uids in missing_uids.items() if uids}
    proposed_victims = [_find_evictable_pods(inputs.pod, snapshot, name, victim_uids[name]) for name in node_names]
    may_lack_victims = frozenset(name for name in node_names if name in unknown_uids or not victim_uids[name])
    candidates = _find_candidates(inputs, node_names, proposed_victims, may_lack_victims, budgets)
    recounted_candidates = {
        name: _recount_violations(candidates[name], budgets, inputs.profile.release)
        for name in node_names
        if name in candidates
    }
    return ReviewedVictims(
        recounted_candidates, {name: uids for name, uids in unknown_uids.items() if name in recounted_candidates}
    )


def _find_candidates(
    inputs: DryRunInputs,
    node_names: Sequence[str],
    proposed_victims: Sequence[Sequence[AssignedPodInfo]],
    may_lack_victims: frozenset[str],
    budgets: Budgets,
) -> dict[str, Candidate]:
    """Return the candidates among *node_names*, by name.

    *proposed_victims* holds the proposed victims of each node. Only the nodes named in *may_lack_victims* may be
    candidates without victims.
    """
    candidates: dict[str, Candidate] = {}
    rows = inputs.snapshot.rows(node_names)
    batch = _make_batch(rows, proposed_victims)
    dry_run = DryRun(inputs, rows, batch)
    dry_run.remove_pods(np.arange(len(batch)))
    fits = dry_run.run_filters(rows).fits
    fitting_indices = np.flatnonzero(fits)
    fitting_batch = _make_batch(rows[fitting_indices], [proposed_victims[index] for index in fitting_indices.tolist()])
    reduced_selection = select_victims(inputs, rows[fitting_indices], fitting_batch, budgets)
    for index, candidate in zip(fitting_indices.tolist(), reduced_selection.iter_candidates(), strict=True):
        node_name, victims = node_names[index], tuple(proposed_victims[index])
        if candidate is not None or victims or node_name in may_lack_victims:
            candidates[node_name] = candidate or Candidate(node_name, victims, 0)
    unfitting_indices = np.flatnonzero(~fits)
    proposed_uids = frozenset(victim.uid for victims in proposed_victims for victim in victims)
    potential_victims = find_potential_victims(inputs.pod, inputs.snapshot, rows[unfitting_indices])
    is_known = [not pod.assumed or pod.uid in proposed_uids for pod in potential_victims.pods]
    potential_victims = potential_victims.select(np.flatnonzero(is_known))
    extended_selection = select_victims(inputs, rows[unfitting_indices], potential_victims, budgets, proposed_uids)
    for index, candidate in zip(unfitting_indices.tolist(), extended_selection.iter_candidates(), strict=True):
        if candidate is not None:
            candidates[node_names[index]] = candidate
    return candidates


def _find_evictable_pods(pod: PodInfo, snapshot: Snapshot, name: str, uids: Sequence[str]) -> list[AssignedPodInfo]:
    """Return the pods with *uids* on node *name* that *pod* may preempt, without duplicates."""
    pods_on_node = snapshot.pods_on(name)
    victims = (pods_on_node[uid] for uid in dict.fromkeys(uids) if uid in pods_on_node)
    return [victim for victim in victims if victim.priority < pod.priority]


def _find_missing_uids(snapshot: Snapshot, name: str, uids: Sequence[str]) -> tuple[str, ...]:
    pods_on_node = snapshot.pods_on(name)
    return tuple(uid for uid in dict.fromkeys(uids) if uid not in pods_on_node)


def _make_batch(rows: IntArray, proposed_victims: Sequence[Sequence[AssignedPodInfo]]) -> PodBatch:
    return PodBatch(
        [pod for pods in proposed_victims for pod in pods], np.repeat(rows, [len(pods) for pods in proposed_victims])
    )


def _recount_violations(candidate: Candidate, budgets: Budgets, release: Release) -> Candidate:
    """Return *candidate* with its victims in order of importance and a new count of their PDB violations."""
    node_numbers = np.zeros(len(candidate.victims), dtype=np.int64)
    batch = PodBatch(candidate.victims, node_numbers)
    ordered_batch = batch.select(order_by_importance(batch, node_numbers, release))
    violating = find_violating_pods(budgets, ordered_batch, node_numbers)
    return Candidate(candidate.node_name, tuple(ordered_batch.pods), int(np.count_nonzero(violating)))
