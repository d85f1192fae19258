"""Schedule the pod group of a pending pod, and report the outcome for this pod.

Source: pkg/scheduler/schedule_one.go, Scheduler.ScheduleOne; pkg/scheduler/schedule_one_podgroup.go,
Scheduler.podGroupInfoForPod, Scheduler.frameworkForPodGroup, Scheduler.podGroupSchedulingDefaultAlgorithm (1.36).
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from random import Random
from typing import Any

import msgspec

from extender.analysis.pending_pods import list_pending_pods
from extender.analysis.pod_group_shortfall import GroupShortfall, count_members, find_shortfall
from extender.analysis.text_table import format_count
from extender.answers.explanation import GroupOfTreeResult
from extender.api.kinds.pod import Pod
from extender.cache.cache import Cache
from extender.cache.group_hierarchy import GroupKey
from extender.cache.pod_groups import get_pod_group_key
from extender.cache.pod_info import PodInfo
from extender.cache.snapshot import Snapshot
from extender.cycle.decision import AttemptFailure, ScheduleFailure
from extender.cycle.node_sampling import NodeSampler
from extender.cycle.plugin_runtime import PluginRuntime
from extender.cycle.pod_group.hierarchy import find_root_key, list_keys_of_tree, make_pod_group_info
from extender.cycle.pod_group.post_filter import complete_group_decisions
from extender.cycle.pod_group_cycle import get_member_sort_key, make_group_attempt, schedule_pod_group
from extender.cycle.pod_group_members import GroupDecision
from extender.cycle.pre_enqueue import run_pre_enqueue_plugins
from extender.framework.pod_group_points import PodGroupInfo
from extender.framework.profiles import Profile
from extender.framework.status import SUCCESS, Status, unschedulable_status
from extender.plugin_parts.group_quorum import get_min_count
from extender.preemption.plan import GroupPreemptionPlan, PreemptionPlan


def format_tree_lines(groups: Iterable[GroupOfTreeResult]) -> Iterator[str]:
    """Yield the lines of the groups of a tree, the root first; child groups are indented further."""
    yield "    the groups of the tree:"
    child_indents: dict[str | None, str] = {None: "      "}
    for group in groups:
        indent = child_indents[group.parent]
        kind, member = "pod group", "pod"
        if group.composite:
            child_indents[group.name] = f"{indent}  "
            kind, member = "composite pod group", "child group"
        counts = f"needs {group.min_count} of {format_count(group.members, member)}"
        if not group.composite and group.scheduled:
            counts += f", {group.scheduled} placed"
        yield f"{indent}{kind} {group.name} {counts}: {'fits' if group.fits else group.message or ''}"


def describe_tree(group: PodGroupInfo, snapshot: Snapshot, decision: GroupDecision) -> list[GroupOfTreeResult]:
    """Return the groups of the tree of *group*, with the outcome *decision* of its attempt; each before its children.

    *group* is a composite pod group.
    """
    own_decisions = _map_own_decisions(group, decision)
    fitting = {key for key, own_decision in own_decisions.items() if own_decision.status.is_success}
    parents: dict[GroupKey, str] = {}
    results = []
    for outcome in complete_group_decisions(group, decision):
        info = outcome.group
        parents |= {child.group_key: info.key for child in info.children}
        obj, members = snapshot.get_group(info.group_key), snapshot.pod_group(info.key)
        fits, is_tried = info.group_key in fitting, info.group_key in own_decisions
        fitting_children = sum(child.group_key in fitting for child in info.children)
        result = GroupOfTreeResult(
            info.key,
            parents.get(info.group_key),
            info.is_composite,
            1 if obj is None else get_min_count(obj),
            len(info.children) if info.is_composite else members.count,
            fitting_children if info.is_composite else len(members.assigned),
            fits,
            None if fits else "not tried" if not is_tried else outcome.decision.status.message or None,
        )
        results.append(result)
    return results


def _map_own_decisions(group: PodGroupInfo, decision: GroupDecision) -> dict[GroupKey, GroupDecision]:
    """Return the decisions of the groups of a tree that were tried, each as before a group above it failed."""
    decisions = {group.group_key: decision}
    unvisited = [decision]
    while unvisited:
        children = unvisited.pop().children
        decisions |= children
        unvisited.extend(children.values())
    return decisions


@dataclass(frozen=True, slots=True)
class PodGroupOutcome:
    """The outcome for one member of a pod group.

    Attributes:
        group: `namespace/name`.
        member_count: the number of members that were scheduled together.
        decision: the decision for the group, or for the composite pod group above it.
        member_index: the position of the pod among these members, from 0.
        composite_group: `namespace/name` of the composite pod group that was scheduled; empty if there is none.
        tree: the composite pod group and the groups below it, each before its child groups; empty if there is none.
        shortfall: what the group lacks; None if it can be scheduled now, or if this was not asked.
        is_held: whether PreEnqueue rejects the pod, so that its group is not scheduled.
    """

    group: str
    member_count: int
    decision: GroupDecision
    member_index: int
    pod: Pod
    composite_group: str = ""
    tree: Sequence[GroupOfTreeResult] = ()
    shortfall: GroupShortfall | None = None
    is_held: bool = False

    @property
    def node(self) -> str:
        """The node on which the pod is placed, now or after preemption; empty if the pod is not placed."""
        failure = self.decision.get_member_failure(self.member_index)
        if failure is not None and self.decision.waits_for_preemption:
            return failure.nominated_node or ""
        if failure is not None and self.composite_group:
            return ""  # its pod group fails, but the composite pod group may be scheduled without it
        member = self.decision.find_member(self.pod)
        return member.node_name if member is not None and self.decision.is_feasible else ""

    @property
    def message(self) -> str:
        """The reason why the pod is not bound immediately; empty if it is bound immediately."""
        failure = self.decision.get_member_failure(self.member_index)
        return failure.status.message if failure is not None else ""

    @property
    def victims(self) -> list[str]:
        """The victims of the preemption for the group, or of its members' own preemptions, most important first."""
        plan = self.decision.preemption_plan
        if isinstance(plan, GroupPreemptionPlan):
            return [pod.key for pod in plan.victims]
        failures = [member.decision for member in self.decision.members if isinstance(member.decision, ScheduleFailure)]
        plans = [plan for failure in failures for plan in failure.post_filter_plans.values()]
        return [pod.key for plan in plans if isinstance(plan, PreemptionPlan) for pod in plan.best_candidate.victims]

    @property
    def is_scheduled(self) -> bool:
        """Whether the group, with the composite pod group above it, can be scheduled now."""
        return self.decision.status.is_success

    def format_lines(self) -> list[str]:
        """Return the outcome as text."""
        other_members = format_count(self.member_count - 1, "other pod")
        attempt = "which PreEnqueue holds" if self.is_held else f"scheduled together with {other_members}"
        parent = f" of composite pod group {self.composite_group}" if self.composite_group else ""
        lines = ["", f"  As a member of pod group {self.group}{parent}, {attempt}"]
        if not self.message:
            return [*lines, f"    the pod goes to {self.node}"]
        if self.node:
            lines.append(f"    the pod goes to {self.node} after the evictions")
        elif self.decision.waits_for_preemption:
            lines.append("    the pod is retried after the evictions")
        else:
            lines.append("    the pod is not placed")
        if self.victims:
            lines.append(f"    evicted for the group: {', '.join(self.victims)}")
        if self.decision.status.message != self.message:
            group_message = self.decision.status.message
            lines.append(
                f"    message of the group: {group_message}"
                if group_message
                else "    the group is scheduled without this pod"
            )
        return [*lines, f"    message of the pod: {self.message}", *self.format_shortfall_lines()]

    def format_shortfall_lines(self) -> list[str]:
        """Return what the group lacks as text, and the groups of its tree if it waits; empty if it lacks nothing."""
        lines = self.shortfall.format_lines() if self.shortfall is not None else []
        return [*lines, *format_tree_lines(self.tree)] if self.tree and not self.is_scheduled else lines

    def to_values(self) -> dict[str, Any]:
        """Return the outcome as plain values, always with the same keys."""
        decision = self.decision
        return {
            "name": self.group,
            "members": self.member_count,
            "scheduled": self.is_scheduled,
            "waitsForPreemption": decision.waits_for_preemption,
            "placement": decision.placement.name or None,
            "message": decision.status.message,
            "node": self.node or None,
            "podMessage": self.message or None,
            "victims": self.victims,
            "shortfall": self.shortfall.to_values() if self.shortfall is not None else None,
            "tree": msgspec.to_builtins(self.tree) if self.tree else None,
        }


class PodGroupSimulator:
    """Schedules each pod group once, on a snapshot of the cache."""

    def __init__(
        self, cache: Cache, profiles: Mapping[str, Profile], runtime: PluginRuntime, rng: Random | None = None
    ) -> None:
        """Create the simulator without scheduling a group.

        *profiles* maps scheduler names to profiles. *rng* breaks ties; by default, ties are always broken in the same
        way. The first call of `get_outcome` for a group takes a snapshot of *cache*.
        """
        self._rng = rng or Random(0)  # noqa: S311  reproducible
        self._cache, self._profiles, self._runtime = cache, profiles, runtime
        self._decisions: dict[GroupKey, tuple[list[str], GroupDecision]] = {}
        self._shortfalls: dict[str, GroupShortfall | None] = {}

    def get_outcome(self, pod: Pod) -> PodGroupOutcome | None:
        """Return the outcome for a pending pod that passes PreEnqueue.

        Return None if the pod has no group or is being deleted, or if pod groups are disabled.
        """
        key, profile = get_pod_group_key(pod), self._profiles.get(pod.spec.scheduler_name)
        if key is None or profile is None or "GenericWorkload" not in profile.gates:
            return None
        with self._cache.read() as snapshot:
            root = find_root_key(key, snapshot, profile.gates)
        if root not in self._decisions:
            self._decisions[root] = self._schedule_group(key, profile)
        uids, decision = self._decisions[root]
        uid = pod.uid_or_key
        if uid not in uids:
            return None
        tree = self._describe_tree(root, decision)
        return PodGroupOutcome(
            key, len(uids), decision, uids.index(uid), pod, root.object_key if root.is_composite else "", tree
        )

    def _describe_tree(self, root: GroupKey, decision: GroupDecision) -> Sequence[GroupOfTreeResult]:
        if not root.is_composite:
            return ()
        with self._cache.read() as snapshot:
            return describe_tree(make_pod_group_info(root, snapshot), snapshot, decision)

    def get_held_outcome(self, pod: Pod, status: Status) -> PodGroupOutcome | None:
        """Return the outcome for a pending pod that PreEnqueue rejects with *status*; None if it has no group."""
        key, profile = get_pod_group_key(pod), self._profiles.get(pod.spec.scheduler_name)
        if key is None or profile is None or "GenericWorkload" not in profile.gates:
            return None
        decision = GroupDecision(status, member_failures=(AttemptFailure(status),))
        with self._cache.read() as snapshot:
            root = find_root_key(key, snapshot, profile.gates)
            shortfall = None if root.is_composite else count_members(key, snapshot)
            keys_of_tree = list_keys_of_tree(key, snapshot, profile.gates)
            pending_count = sum(len(snapshot.pod_group(group).pending) for group in keys_of_tree)
        return PodGroupOutcome(
            key,
            pending_count,
            decision,
            0,
            pod,
            root.object_key if root.is_composite else "",
            self._describe_tree(root, decision),
            shortfall,
            is_held=True,
        )

    def explain_outcome(self, pod: Pod) -> PodGroupOutcome | None:
        """Return the outcome as `get_outcome` does, with what the group lacks, which is computed once per group."""
        outcome, profile = self.get_outcome(pod), self._profiles.get(pod.spec.scheduler_name)
        if outcome is None or profile is None:
            return None
        return replace(outcome, shortfall=self._get_shortfall(outcome.group, profile))

    def _get_shortfall(self, key: str, profile: Profile) -> GroupShortfall | None:
        """Return what the pod group *key* lacks; None for a composite pod group, which `describe_tree` describes."""
        with self._cache.read() as snapshot:
            root = find_root_key(key, snapshot, profile.gates)
            if root.is_composite:
                return None
            if key not in self._shortfalls:
                uids, decision = self._decisions[root]
                pods = [self._cache.make_pod_info(self._cache.pending_pods[uid]) for uid in uids]
                self._shortfalls[key] = (
                    None
                    if decision.status.is_success or not decision.status.is_rejected
                    else find_shortfall(make_group_attempt(pods, snapshot, profile, self._runtime, self._rng), snapshot)
                )
        return self._shortfalls[key]

    def _schedule_group(self, key: str, profile: Profile) -> tuple[list[str], GroupDecision]:
        """Return the uids of the members that pass PreEnqueue, in scheduling order, and the decision for the group."""
        with self._cache.read() as snapshot:
            keys = list_keys_of_tree(key, snapshot, profile.gates)
        pods = sorted(list_pending_pods(self._cache, self._profiles), key=lambda pod: get_member_sort_key(pod, 0.0))
        members = [self._cache.make_pod_info(pod) for group in keys for pod in pods if get_pod_group_key(pod) == group]
        rejections = {pod_info.uid: self._run_pre_enqueue_plugins(pod_info) for pod_info in members}
        rejected_members = [pod_info for pod_info in members if rejections[pod_info.uid] is not None]
        members = [pod_info for pod_info in members if rejections[pod_info.uid] is None]
        if rejected_members and profile.release.queues_pod_groups:
            rejection = rejections[rejected_members[0].uid] or SUCCESS
            hold_message = (
                f"held by pod {rejected_members[0].key}, which {rejection.plugin} rejects: {rejection.message}"
            )
            failure = AttemptFailure(unschedulable_status(hold_message))
            decision = GroupDecision(failure.status, member_failures=(failure,) * len(members))
            return [pod_info.uid for pod_info in members], decision
        with self._cache.read() as snapshot:
            decision = schedule_pod_group(members, snapshot, profile, self._runtime, self._rng, NodeSampler())
        return [pod_info.uid for pod_info in members], decision

    def _run_pre_enqueue_plugins(self, pod_info: PodInfo) -> Status | None:
        profile = self._profiles[pod_info.spec.scheduler_name]
        with self._cache.read() as snapshot:
            return run_pre_enqueue_plugins(pod_info, snapshot, profile, self._runtime)
