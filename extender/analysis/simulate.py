"""Simulate the scheduling of all pending pods, one after another, on a recorded cluster, and format the outcome."""

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

import msgspec

from extender.analysis.evictions import evict_pods
from extender.analysis.explanation.explain_json import DEFAULT_PREEMPTION
from extender.analysis.pending_pods import list_pending_pods, nominate_pending_pods, sort_by_queue_order
from extender.analysis.permit_simulation import Attempt
from extender.analysis.pod_placer import PodPlacer, make_failed_attempt
from extender.analysis.recorded_cluster import Recording
from extender.analysis.required_kinds import format_missing_kinds, get_plural, list_missing_kinds
from extender.analysis.text_table import format_amount, format_count, format_percent, format_table, join_first
from extender.analysis.utilization import PODS_RESOURCE, SHOWN_NODES, ClusterUsage, calculate_cluster_usage
from extender.answers.reason_codes import list_reason_codes
from extender.answers.simulation import NodeUse, Placement, PlannedPreemption, UnplacedGroup
from extender.cache.cache import Cache
from extender.cache.pod_groups import get_pod_group_key
from extender.cycle.decision import AttemptFailure, ScheduleFailure, ScheduleResult
from extender.cycle.plugin_runtime import PluginRuntime
from extender.cycle.pod_group.hierarchy import list_keys_of_tree
from extender.cycle.pod_group_cycle import get_member_sort_key
from extender.cycle.pod_group_members import MemberResult
from extender.framework.profiles import Profile
from extender.preemption.plan import PreemptionPlan

ProgressCallback = Callable[[int, int], None]
"""A function that is called after each pod with the number of processed pods and the number of all pods."""


@dataclass(frozen=True, slots=True)
class Simulation:
    """The outcome of a simulation.

    Attributes:
        placements: the outcome of every pending pod, in queue order.
        usage_before, usage_after: the utilization before and after the simulation.
        evicted_pods: the keys of the pods that were evicted, in order.
        missing_kinds: the kinds that are not in the recording although placements depend on them.
        unreadable_kinds: the kinds that could not be read when the cluster was recorded, with the reason.
    """

    placements: tuple[Placement, ...]
    usage_before: ClusterUsage
    usage_after: ClusterUsage
    evicted_pods: tuple[str, ...] = ()
    missing_kinds: tuple[str, ...] = ()
    unreadable_kinds: Mapping[str, str] = field(default_factory=dict)

    @property
    def placed_count(self) -> int:
        """The number of the pods that were placed."""
        return sum(placement.node is not None for placement in self.placements)

    @property
    def warnings(self) -> list[str]:
        """A line for the kinds that are not recorded, and for each kind that could not be read."""
        return format_missing_kinds(self.missing_kinds, self.unreadable_kinds)

    def group_unplaced_by_reason(self) -> list[UnplacedGroup]:
        """Group the unplaced pods by reason, the most frequent reason first."""
        groups: dict[str, UnplacedGroup] = {}
        for placement in self.placements:
            if placement.node is None:
                reason, codes = placement.reason, placement.reason_codes
                group = groups.setdefault(reason, UnplacedGroup(reason, placement.reasons, codes, 0, []))
                group.count += 1
                group.pods.append(placement.pod)
        return sorted(groups.values(), key=lambda group: (-group.count, group.reason))


@dataclass(frozen=True, slots=True)
class SimulationOptions:
    """Options of a simulation.

    Attributes:
        seed: the random seed for the selection among nodes with equal scores. Equal seeds give equal placements.
        preempt: whether victims of a preemption are evicted, and the pod is tried again at once. Without it no pod is
            evicted; the placement names the node and the victims.
    """

    seed: int = 0
    preempt: bool = False


DEFAULT_OPTIONS: Final = SimulationOptions()


def simulate(
    cache: Cache,
    profiles: Mapping[str, Profile],
    runtime: PluginRuntime,
    options: SimulationOptions = DEFAULT_OPTIONS,
    *,
    recording: Recording | None = None,
    progress: ProgressCallback | None = None,
) -> Simulation:
    """Simulate the scheduling of the pending pods of *profiles*.

    Each pod is tried once, in queue order: the order of the QueueSort plugin, then file order. If pod groups are
    enabled, all members of a group are tried together with the first member. Placed pods and pods that wait on Permit
    use resources of their nodes, which later pods cannot use.

    Args:
        cache: the cache with the cluster; it is modified.
        profiles: the profiles by scheduler name.
        runtime: the plugin runtime.
        options: the seed, and whether pods are evicted.
        recording: the recording from which *cache* was loaded; its missing kinds are reported. If it is None, no
            missing kinds are reported.
        progress: the callback after each pod; None means no callback.
    """
    usage_before = _calculate_usage(cache)
    for profile in profiles.values():
        nominate_pending_pods(cache, profile, runtime)
    placer = PodPlacer(cache, profiles, runtime, options.seed)
    simulation_run = _SimulationRun(cache, profiles, placer, preempt=options.preempt)
    for index in range(len(simulation_run.queue)):
        simulation_run.schedule_pod_at(index)
        if progress is not None:
            progress(index + 1, len(simulation_run.queue))
    missing_kinds: dict[str, None] = {}
    unreadable_kinds: Mapping[str, str] = {} if recording is None else recording.unreadable_kinds
    if recording is not None:
        evicts = bool(simulation_run.evicted_pods)
        for pod in simulation_run.queue:
            profile, recorded = profiles[pod.spec.scheduler_name], recording.recorded_kinds
            kinds = list_missing_kinds(pod, profile, recorded, unreadable_kinds, scored=True, preempts=evicts)
            missing_kinds.update(dict.fromkeys(kinds))
    return Simulation(
        simulation_run.finish(),
        usage_before,
        _calculate_usage(cache),
        tuple(simulation_run.evicted_pods),
        tuple(missing_kinds),
        unreadable_kinds,
    )


def _calculate_usage(cache: Cache) -> ClusterUsage:
    with cache.read() as snapshot:
        return calculate_cluster_usage(snapshot)


def make_placement(pod: str, node: str = "", message: str = "", reasons: Sequence[str] = ()) -> Placement:
    """Return the placement of a pod on *node*; if this is empty, the pod waits."""
    return Placement(pod, node or None, message or None, list(reasons), list_reason_codes(reasons), None)


class _SimulationRun:
    """A simulation in progress.

    Attributes:
        queue: the pending pods in queue order.
        evicted_pods: the keys of the pods that were evicted, in order.
    """

    def __init__(
        self, cache: Cache, profiles: Mapping[str, Profile], placer: PodPlacer, *, preempt: bool = False
    ) -> None:
        self._cache, self._profiles, self._placer = cache, profiles, placer
        self._preempt = preempt
        self.evicted_pods: list[str] = []
        self._placements: dict[int, Placement] = {}
        self.queue = sort_by_queue_order(list_pending_pods(cache, profiles), cache, profiles)
        self._indices_by_group: dict[str, list[int]] = defaultdict(list)
        for index, pod in enumerate(self.queue):
            if (group_key := get_pod_group_key(pod)) is not None:
                self._indices_by_group[group_key].append(index)

    def schedule_pod_at(self, index: int) -> None:
        """Schedule the pod at *index* of the queue and its group. Skip the pod if its group was scheduled before."""
        pod = self.queue[index]
        if index in self._placements or self._is_rejected_by_pre_enqueue(index):
            return
        profile = self._profiles[pod.spec.scheduler_name]
        if "GenericWorkload" in profile.gates and get_pod_group_key(pod) is not None:
            self._schedule_group(index, profile)
            return
        decision = self._placer.find_node(pod)
        if isinstance(decision, ScheduleResult):
            self._record(index, self._placer.assume(pod, decision))
        else:
            self._handle_failure(index, decision)

    def _handle_failure(self, index: int, failure: ScheduleFailure) -> None:
        """Record an unplaced pod. If pods may be evicted for it, evict them and try the pod again."""
        pod = self.queue[index]
        self._record(index, make_failed_attempt(pod, failure))
        plan = failure.post_filter_plans.get(DEFAULT_PREEMPTION)
        if not isinstance(plan, PreemptionPlan):
            return
        candidate = plan.best_candidate
        preemption = PlannedPreemption(candidate.node_name, [victim.key for victim in candidate.victims])
        self._placements[index].preemption = preemption
        if not self._preempt:
            return
        evict_pods(self._cache, candidate.victims)
        self.evicted_pods += preemption.victims
        nominated_pod = msgspec.structs.replace(
            pod, status=msgspec.structs.replace(pod.status, nominated_node_name=candidate.node_name)
        )
        decision = self._placer.find_node(nominated_pod)
        if isinstance(decision, ScheduleResult):
            self._record(index, self._placer.assume(pod, decision))
            self._placements[index].preemption = preemption

    def _is_rejected_by_pre_enqueue(self, index: int) -> bool:
        rejected = self._placer.run_pre_enqueue(self.queue[index])
        if rejected is not None:
            self._record(index, rejected)
        return rejected is not None

    def _record(self, index: int, attempt: Attempt) -> None:
        self._placements[index] = make_placement(attempt.pod.key, attempt.node, attempt.message, attempt.reasons)

    def _schedule_group(self, first_index: int, profile: Profile) -> None:
        """Schedule the members of a group that pass PreEnqueue and were not scheduled before.

        Source: pkg/scheduler/schedule_one_podgroup.go, Scheduler.podGroupInfoForPod, Scheduler.frameworkForPodGroup,
        Scheduler.podGroupSchedulingDefaultAlgorithm (1.36).
        """
        with self._cache.read() as snapshot:
            keys = list_keys_of_tree(get_pod_group_key(self.queue[first_index]) or "", snapshot, profile.gates)
        group_order = {key: order for order, key in enumerate(keys)}
        indices = sorted(index for key in keys for index in self._indices_by_group[key] if index > first_index)
        member_indices = [
            first_index,
            *(i for i in indices if i not in self._placements and not self._is_rejected_by_pre_enqueue(i)),
        ]
        member_indices.sort(
            key=lambda index: (
                group_order[get_pod_group_key(self.queue[index]) or ""],
                get_member_sort_key(self.queue[index], 0.0),
            )
        )
        pods = [self.queue[index] for index in member_indices]
        decision = self._placer.find_nodes_of_group(pods, profile)
        results = {member.pod.key: member for member in decision.members}
        for position, index in enumerate(member_indices):
            failure = decision.get_member_failure(position)
            self._record_group_member(index, failure, results.get(self.queue[index].key))

    def _record_group_member(self, index: int, failure: AttemptFailure | None, member: MemberResult | None) -> None:
        pod, decision = self.queue[index], None if member is None else member.decision
        if failure is None:
            if isinstance(decision, ScheduleResult):
                self._record(index, self._placer.assume(pod, decision))
        elif isinstance(decision, ScheduleFailure) and decision.status == failure.status:
            self._record(index, make_failed_attempt(pod, decision))
        else:
            message = failure.status.message
            self._record(index, Attempt(pod, reasons=(message,), message=message))

    def finish(self) -> tuple[Placement, ...]:
        """Time out the pods that wait on Permit, and return all placements."""
        timed_out = self._placer.time_out_permits()
        for index, pod in enumerate(self.queue):
            if pod.key in timed_out:
                self._record(index, timed_out[pod.key])
        return tuple(self._placements[index] for index in range(len(self.queue)))


_MAX_PREEMPTIONS: Final = 10


def make_simulation_values(simulation: Simulation, seed: int) -> dict[str, Any]:
    """Return the complete simulation as dicts, lists, strings, numbers and None. Placements are in queue order."""
    usage_before, usage_after = simulation.usage_before, simulation.usage_after
    return {
        "seed": seed,
        "nodes": len(usage_after.nodes),
        "pods": {
            "waiting": len(simulation.placements),
            "placed": simulation.placed_count,
            "unplaced": len(simulation.placements) - simulation.placed_count,
        },
        "placements": msgspec.to_builtins(list(simulation.placements)),
        "unplaced": msgspec.to_builtins(simulation.group_unplaced_by_reason()),
        "evicted": list(simulation.evicted_pods),
        "utilisation": {
            name: {
                "allocatable": usage.allocatable,
                "before": usage_before.total[name].requested,
                "after": usage.requested,
            }
            for name, usage in usage_after.total.items()
        },
        "fullest": msgspec.to_builtins(usage_after.list_fullest_nodes(SHOWN_NODES)),
        "emptiest": msgspec.to_builtins(usage_after.list_emptiest_nodes(SHOWN_NODES)),
        "notRecorded": [get_plural(kind) for kind in simulation.missing_kinds],
        "warnings": simulation.warnings,
    }


def format_simulation(simulation: Simulation, seed: int) -> str:
    """Return the report: placed pods, reasons of unplaced pods, utilization, fullest and emptiest nodes."""
    pod_count, placed_count = len(simulation.placements), simulation.placed_count
    pods_text, unplaced_count = format_count(pod_count, "pod"), pod_count - placed_count
    counts = f"{pods_text} waiting, {placed_count} placed, {unplaced_count} not placed"
    if simulation.evicted_pods:
        counts += f", {len(simulation.evicted_pods)} evicted"
    lines = [f"{counts} (seed {seed})", *simulation.warnings]
    lines += _format_unplaced_lines(simulation)
    lines += _format_preemption_lines(simulation)
    if simulation.usage_after.nodes:
        lines += _format_utilization_table(simulation.usage_before, simulation.usage_after)
        for title, nodes in simulation.usage_after.list_nodes_by_title().items():
            lines += _format_node_table(title, nodes, simulation.usage_after)
    return "\n".join(lines) + "\n"


def _format_unplaced_lines(simulation: Simulation) -> list[str]:
    rows: list[tuple[str, str]] = []
    for group in simulation.group_unplaced_by_reason():
        rows += [(str(group.count), group.reason), ("", join_first(group.pods))]
    return ["", "Not placed", *format_table(rows, right_aligned=[0])] if rows else []


def _format_preemption_lines(simulation: Simulation) -> list[str]:
    """Return a line for each pod that was placed after evictions, or that could be placed after evictions."""
    preemptions = [(each.pod, each.preemption) for each in simulation.placements if each.preemption is not None]
    if not preemptions:
        return []
    title = "Placed after evictions" if simulation.evicted_pods else "Could be placed after evictions (--preempt)"
    lines = ["", title]
    lines += (
        f"  {pod} on {preemption.node}, in place of {join_first(preemption.victims)}"
        for pod, preemption in preemptions[:_MAX_PREEMPTIONS]
    )
    if len(preemptions) > _MAX_PREEMPTIONS:
        lines.append(f"  {format_count(len(preemptions) - _MAX_PREEMPTIONS, 'other pod')} likewise")
    return lines


def _format_utilization_table(usage_before: ClusterUsage, usage_after: ClusterUsage) -> list[str]:
    rows = [("RESOURCE", "BEFORE", "", "AFTER", "", "OF")]
    for name, usage in usage_after.total.items():
        requested_before = usage_before.total[name].requested
        rows.append(
            (
                name,
                format_amount(name, requested_before),
                format_percent(requested_before, usage.allocatable),
                format_amount(name, usage.requested),
                format_percent(usage.requested, usage.allocatable),
                format_amount(name, usage.allocatable),
            )
        )
    return ["", "Requested in the cluster", *format_table(rows, right_aligned=[1, 2, 3, 4, 5])]


def _format_node_table(title: str, nodes: Iterable[NodeUse], cluster: ClusterUsage) -> list[str]:
    names = list(cluster.total)
    rows = [("NODE", *(name for name in names if name != PODS_RESOURCE), PODS_RESOURCE)]
    for node in nodes:
        cells = [_format_percent_cell(node, name) for name in names if name != PODS_RESOURCE]
        pods = node.resources.get(PODS_RESOURCE)
        rows.append((node.name, *cells, f"{pods.requested}/{pods.allocatable}" if pods else "-"))
    return ["", title, *format_table(rows, right_aligned=range(1, len(names) + 1))]


def _format_percent_cell(node: NodeUse, name: str) -> str:
    usage = node.resources.get(name)
    return format_percent(usage.requested, usage.allocatable) if usage else "-"
