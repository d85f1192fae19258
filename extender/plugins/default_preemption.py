"""DefaultPreemption makes room for a pod that fits no node, by evicting pods of lower priority from one node.

**Preempts** in PostFilter. A pod does not preempt if it has `preemptionPolicy: Never`, or if victims of an earlier
preemption are still terminating on its nominated node. Nodes with an unresolvable rejection are not candidates. On
every other node a dry run removes all pods of lower priority. If the pod then fits, the dry run reprieves as many of
them as possible, one at a time: first the pods whose eviction would violate a disruption budget, then the others. Both
are reprieved in order of importance: higher priority first, then earlier start. The pods that are not reprieved are the
victims. Extenders may remove candidates. The best candidate is selected by these criteria, in order: fewest budget
violations, lowest priority of the most important victim, lowest sum of victim priorities, fewest victims, latest start
of the most important victim. The pod is nominated for that node.

With the feature gate `WorkloadAwarePreemption` (alpha) a member of a pod group does not preempt by itself. A pod group
that cannot be scheduled preempts as a whole, on all nodes: the dry run removes all pods of lower priority and reprieves
as above. Pod groups whose `disruptionMode` is `PodGroup` are evicted or reprieved as a whole.

Since 1.37 this needs only the gate `GenericWorkload`. The group is scheduled once, with all pods of lower priority
removed. Its members then stay on their nodes while victims are reprieved. A pod has the priority of its group, and a
group with the `disruptionMode` `all` is one victim, also for a single pod.

**Rejects** a pod in PreEnqueue while its victims are being evicted.

**Scores** no node.

**Requeued on** no event. The pod is requeued when the eviction of its victims ends.

**Options** (DefaultPreemptionArgs) `minCandidateNodesPercentage` (10; 0 to 100) and `minCandidateNodesAbsolute` (100):
the minimum number of candidates, in percent of the nodes where preemption may help and as a number. The greater of the
two applies. The search stops when it has found that many candidates and one of them violates no disruption budget. The
options must not both be 0.

Source: pkg/scheduler/framework/plugins/defaultpreemption/default_preemption.go,
DefaultPreemption.PodEligibleToPreemptOthers; pkg/scheduler/framework/preemption/preemption.go,
Evaluator.findCandidates, Evaluator.Preempt, Evaluator.DryRunPreemption; pkg/scheduler/util/utils.go, MoreImportantPod,
GetEarliestPodStartTime (1.36).
"""

from collections.abc import Mapping, Sequence
from typing import ClassVar

import msgspec

from extender.api.kinds.meta import Int32
from extender.api.kinds.pod_group import PodGroup
from extender.api.label_syntax import join_errors
from extender.cache.group_hierarchy import Group, find_root, make_group_key
from extender.cache.pod_groups import get_pod_group_key
from extender.cache.pod_info import AssignedPodInfo, PodInfo
from extender.cache.snapshot import Snapshot
from extender.config.errors import FieldError, child
from extender.config.feature_gates import FeatureGates
from extender.config.validation import make_invalid_value_error
from extender.cycle.diagnosis import format_fit_error
from extender.cycle.pod_group.post_filter import FailedGroupAttempt
from extender.cycle.post_filter import FailedAttempt
from extender.framework.events import ActionType, ClusterEventWithHint, EventResource, QueueingHint
from extender.framework.extension_points import PostFilterResult
from extender.framework.observer import ObservedEvent
from extender.framework.plugin_args import PluginArgs
from extender.framework.pod_group_points import DryRunGenerator, PodGroupPostFilterResult
from extender.framework.status import SUCCESS, Code, Status, error_status, unresolvable_status, unschedulable_status
from extender.preemption.candidates import find_candidates
from extender.preemption.eligibility import get_ineligibility_reason
from extender.preemption.group_victims_on_node import has_group_victims
from extender.preemption.plan import PreemptionPlan, describe_placement, select_candidate
from extender.preemption.pod_group_preemption import preempt_for_failed_group, preempt_for_pod_group

_PREFIX = "preemption: "
_NOT_HELPFUL = "Preemption is not helpful for scheduling"
_POD_PREEMPTING = unresolvable_status("waiting for the preemption for this pod to be finished")
_GROUP_PREEMPTING = unresolvable_status("waiting for the preemption for this pod group to be finished")
_GROUP_NOT_FOUND = unschedulable_status(f"{_PREFIX}pod group for pod not found")
_PLACEMENT_BASED_GROUP = unschedulable_status(
    f"{_PREFIX}not eligible due to placement-based pod group scheduling limitation"
)
_WORKLOAD_AWARE = unschedulable_status(f"{_PREFIX}not eligible due to workload aware preemption enabled")


class DefaultPreemptionArgs(msgspec.Struct, frozen=True, rename="camel"):
    """The plugin's options: the number of candidates at which a search stops.

    Attributes:
        min_candidate_nodes_percentage: the limit as a percentage of the nodes on which preemption may help.
        min_candidate_nodes_absolute: the lowest limit. If there are fewer nodes, their number is the limit.

    Source: pkg/scheduler/apis/config/validation/validation_pluginargs.go, ValidateDefaultPreemptionArgs (1.36).
    """

    min_candidate_nodes_percentage: Int32 = 10
    min_candidate_nodes_absolute: Int32 = 100

    def calculate_num_candidates(self, node_count: int) -> int:
        """Return the number of candidates at which a search among *node_count* nodes stops.

        Source: pkg/scheduler/framework/plugins/defaultpreemption/default_preemption.go,
        DefaultPreemption.GetOffsetAndNumCandidates (1.36).
        """
        limit = max(node_count * self.min_candidate_nodes_percentage // 100, self.min_candidate_nodes_absolute)
        return min(limit, node_count)

    def validate(self, path: str, _gates: FeatureGates) -> list[FieldError]:
        """Return an error for each number out of range, and two errors if both are 0."""
        percentage, absolute = self.min_candidate_nodes_percentage, self.min_candidate_nodes_absolute
        percentage_path, absolute_path = (
            child(path, "minCandidateNodesPercentage"),
            child(path, "minCandidateNodesAbsolute"),
        )
        errors: list[FieldError] = []
        if not 0 <= percentage <= 100:
            errors.append(make_invalid_value_error(percentage_path, percentage, "not in valid range [0, 100]"))
        if absolute < 0:
            errors.append(make_invalid_value_error(absolute_path, absolute, "not in valid range [0, inf)"))
        if percentage == 0 and absolute == 0:
            message = "cannot be zero at the same time as"
            errors.append(make_invalid_value_error(percentage_path, percentage, f"{message} minCandidateNodesAbsolute"))
            errors.append(make_invalid_value_error(absolute_path, absolute, f"{message} minCandidateNodesPercentage"))
        return errors


class DefaultPreemption:
    """Plans preemption. The code that executes the plan updates `last_victims` and `last_victims_of_groups`.

    Attributes:
        last_victims: for each pod whose victims are being evicted, the last victim, by the pod's uid. The value is None
            while other victims are being evicted.
        last_victims_of_groups: the same for each preempting pod group, by the group's uid.

    Source: pkg/scheduler/framework/preemption/executor.go, Executor.prepareCandidateAsync (1.36).
    """

    name: ClassVar[str] = "DefaultPreemption"
    options = DefaultPreemptionArgs

    def __init__(self, args: PluginArgs[DefaultPreemptionArgs]) -> None:
        options, gates = args.options, args.gates
        self._calculate_num_candidates = options.calculate_num_candidates
        self._async_preemption = "SchedulerAsyncPreemption" in gates
        self._topology_aware_scheduling = "TopologyAwareWorkloadScheduling" in gates
        self._workload_aware_preemption = "WorkloadAwarePreemption" in gates
        self._composite_groups = "CompositePodGroup" in gates
        self._reports_preemption = gates.release.reports_preemption
        self.last_victims: dict[str, AssignedPodInfo | None] = {}
        self.last_victims_of_groups: dict[str, AssignedPodInfo | None] = {}

    def pre_enqueue(self, pod: PodInfo, snapshot: Snapshot) -> Status | None:
        """Reject a pod while its victims or the victims of its pod group are being evicted.

        Source: pkg/scheduler/framework/plugins/defaultpreemption/default_preemption.go, DefaultPreemption.PreEnqueue
        (1.36).
        """
        if not self._async_preemption:
            return None
        if pod.spec.scheduling_group is not None and self._workload_aware_preemption:
            group = _find_root_group(pod, snapshot) if self._composite_groups else _get_pod_group(pod, snapshot)
            is_running = group is not None and _is_preemption_running(
                group.metadata.uid, self.last_victims_of_groups, snapshot
            )
            return _GROUP_PREEMPTING if is_running else None
        return _POD_PREEMPTING if _is_preemption_running(pod.uid, self.last_victims, snapshot) else None

    def post_filter(self, pod: PodInfo, snapshot: Snapshot, attempt: FailedAttempt) -> PostFilterResult:
        """Return the nominated node and a `preemption.plan.PreemptionPlan`, or the status of the failure.

        Source: pkg/scheduler/framework/plugins/defaultpreemption/default_preemption.go, DefaultPreemption.PostFilter
        (1.36).
        """
        ineligible_status = self._get_pod_group_ineligibility(pod, snapshot)
        if ineligible_status is not None:
            return PostFilterResult(ineligible_status)
        runner, start_time = attempt.runtime.runner, attempt.runtime.runner.start_timer()
        result = self._evaluate(pod, snapshot, attempt)
        runner.observe_duration(ObservedEvent.PREEMPTION_EVALUATION, ("pod", result.status.code.label), start_time)
        return result

    def _evaluate(self, pod: PodInfo, snapshot: Snapshot, attempt: FailedAttempt) -> PostFilterResult:
        """Search the victims; see `post_filter`.

        Source: pkg/scheduler/framework/preemption/preemption.go, Evaluator.evaluate (1.37).
        """
        reason = get_ineligibility_reason(
            pod, snapshot, attempt.diagnosis, has_group_victims=has_group_victims(attempt.profile)
        )
        if reason:
            return PostFilterResult(unschedulable_status(f"{_PREFIX}{reason}"))
        candidate_search = find_candidates(pod, snapshot, attempt, self._calculate_num_candidates)
        if candidate_search.candidates:
            plan = select_candidate(candidate_search.candidates, attempt.rng)
            return PostFilterResult(self._make_success_status(plan), plan.best_candidate.node_name, plan)
        if candidate_search.errors:
            return PostFilterResult(error_status(f"{_PREFIX}{join_errors(candidate_search.errors)}"))
        node_count, reason_counts = len(snapshot), dict(candidate_search.reason_counts)
        if candidate_search.failed_count < node_count:
            reason_counts[_NOT_HELPFUL] = node_count - candidate_search.failed_count
        return PostFilterResult(
            unschedulable_status(f"{_PREFIX}{format_fit_error(node_count, reason_counts)}"), nominated_node_name=""
        )

    def _make_success_status(self, plan: PreemptionPlan) -> Status:
        """Return the status of a successful preemption; the message names the node and the number of victims."""
        if not self._reports_preemption:
            return SUCCESS
        return Status(Code.SUCCESS, (f"{_PREFIX}{describe_placement(plan.best_candidate)}",))

    def pod_group_post_filter(self, attempt: FailedGroupAttempt) -> DryRunGenerator:
        """Return a `preemption.plan.GroupPreemptionPlan` for the pod group, or the status of the failure.

        Source: pkg/scheduler/framework/preemption/types.go, newDomainForWorkloadPreemption;
        pkg/scheduler/framework/preemption/podgrouppreemption.go, PodGroupEvaluator.selectVictimsOnDomain (1.36).
        """
        if attempt.profile.release.has_pod_group_post_filter:
            group_result = yield from preempt_for_failed_group(attempt)
            labels = (group_result.status.code.label,)
            attempt.runtime.runner.observe_event(ObservedEvent.POD_GROUP_PREEMPTION, labels, 1.0)
            return group_result
        result = yield from preempt_for_pod_group(attempt)
        if isinstance(result, Status):
            return PodGroupPostFilterResult(result)
        return PodGroupPostFilterResult(SUCCESS, plan=result)

    def _get_pod_group_ineligibility(self, pod: PodInfo, snapshot: Snapshot) -> Status | None:
        """Return the rejection of a pod-group member that may not preempt by itself; None if it may.

        Source: pkg/scheduler/framework/plugins/defaultpreemption/default_preemption.go, DefaultPreemption.PostFilter
        (1.36).
        """
        if pod.spec.scheduling_group is None:
            return None
        if self._topology_aware_scheduling:
            group = _get_pod_group(pod, snapshot)
            if group is None:
                return _GROUP_NOT_FOUND
            if group.spec.scheduling_constraints is not None:
                return _PLACEMENT_BASED_GROUP
        return _WORKLOAD_AWARE if self._workload_aware_preemption else None

    def events_to_register(self) -> Sequence[ClusterEventWithHint]:
        """Return the event of deleted pods, with a hint that always skips.

        The pod is activated when the eviction of its victims ends.

        Source: pkg/scheduler/framework/plugins/defaultpreemption/default_preemption.go, DefaultPreemption.PreEnqueue
        (1.36).
        """
        delete = ClusterEventWithHint(
            EventResource.ASSIGNED_POD, ActionType.DELETE, lambda _pod, _event: QueueingHint.SKIP
        )
        return (delete,) if self._async_preemption else ()


def _get_pod_group(pod: PodInfo, snapshot: Snapshot) -> PodGroup | None:
    key = get_pod_group_key(pod.pod)
    return None if key is None else snapshot.get_object(PodGroup, key)


def _find_root_group(pod: PodInfo, snapshot: Snapshot) -> Group | None:
    """Return the root above the pod group of *pod*; None if it does not exist."""
    key = get_pod_group_key(pod.pod)
    root_key = None if key is None else find_root(snapshot, make_group_key(key))
    return None if root_key is None else snapshot.get_group(root_key)


def _is_preemption_running(uid: str, last_victims: Mapping[str, AssignedPodInfo | None], snapshot: Snapshot) -> bool:
    """Return whether victims of the preemptor are being evicted, and the last one is not terminating yet.

    Source: pkg/scheduler/framework/preemption/executor.go, Executor.isRunningPreemption (1.36).
    """
    if uid not in last_victims:
        return False
    last_victim = last_victims[uid]
    if last_victim is None:
        return True
    current_victim = snapshot.pods_on(last_victim.node_name).get(last_victim.uid)
    return current_victim is not None and not current_victim.terminating
