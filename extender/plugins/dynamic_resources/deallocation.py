"""PostFilter of DynamicResources: release a claim that is not available on some nodes.

Source: pkg/scheduler/framework/plugins/dynamicresources/dynamicresources.go, DynamicResources.PostFilter (1.36).
"""

from collections.abc import Sequence
from typing import Final

import numpy as np

from extender.api.kinds.devices import ResourceClaim
from extender.api.kinds.pod_group import CompositePodGroup
from extender.cache.snapshot import Snapshot
from extender.cache.tables.arrays import BoolArray
from extender.config.releases import Release
from extender.cycle.decision import ScheduleResult
from extender.cycle.diagnosis import Diagnosis
from extender.cycle.pod_group.post_filter import FailedGroupAttempt
from extender.cycle.pod_group_members import MemberResult
from extender.framework.api_plan import ApiCall, ApiPlan
from extender.framework.extension_points import PostFilterResult
from extender.framework.pod_group_points import DryRunGenerator, PodGroupPostFilterResult
from extender.framework.status import Status, error_status, unresolvable_status, unschedulable_status
from extender.plugins.dynamic_resources import api_calls
from extender.plugins.dynamic_resources.filter import UNAVAILABLE
from extender.plugins.dynamic_resources.pod_claims import find_unused_pod_group_claim
from extender.plugins.dynamic_resources.state import StateData

_PLUGIN_NAME: Final = "DynamicResources"
_RELEASE_COMPLETED: Final = unschedulable_status("deallocation and deletion of ResourceClaims completed")
_NO_STATE: Final = error_status("not found")
"""The status if PreFilter of the plugin ran for no member, for example because the cluster has no nodes."""


def make_idle_result(reason: str, release: Release) -> PostFilterResult:
    """Return the rejection of a PostFilter that deallocates no claim. Since 1.37 the rejection has no reason."""
    return PostFilterResult(unschedulable_status(*((reason,) if release.reports_missing_deallocation else ())))


def plan_claim_release(
    state_data: StateData, unavailable_nodes: BoolArray, snapshot: Snapshot, release: Release, *, workload_claims: bool
) -> PostFilterResult:
    """Return the plan that deallocates, deletes or unreserves a claim of the pod; a rejection if there is none.

    *unavailable_nodes* were rejected for unavailable claims: bool, by row. With *workload_claims*, claims may be
    reserved for the group of the pod.
    """
    result = _release_pod_claim(state_data, unavailable_nodes)
    if result is not None:
        return result
    unused_claim = find_unused_pod_group_claim(state_data.pod, snapshot) if workload_claims else None
    if isinstance(unused_claim, str):
        return PostFilterResult(error_status(unused_claim))
    if unused_claim is not None:
        status = unresolvable_status("ResourceClaim unreserved for PodGroup")
        return PostFilterResult(status, plan=api_calls.plan_unreserve_for_pod_group(unused_claim, state_data.pod))
    return make_idle_result("still not schedulable", release)


def _release_pod_claim(state_data: StateData, unavailable_nodes: BoolArray) -> PostFilterResult | None:
    """Return the result that deallocates or deletes a claim of the pod; None if there is no such claim."""
    claim = _find_claim_to_deallocate(state_data, unavailable_nodes)
    if claim is not None:
        status = unschedulable_status("deallocation of ResourceClaim completed")
        return PostFilterResult(status, plan=api_calls.plan_deallocation(claim))
    if state_data.extended_resource_claim is not None and state_data.extended_claim_exists:
        status = unschedulable_status("deletion of ResourceClaim completed")
        return PostFilterResult(status, plan=api_calls.plan_deletion(state_data.extended_resource_claim))
    return None


def find_unavailable_nodes(diagnosis: Diagnosis) -> BoolArray:
    """Return the nodes that the plugin rejected for unavailable claims: bool, by row."""
    unavailable_nodes = np.zeros(diagnosis.node_count, dtype=np.bool_)
    for rejection in diagnosis.all_rejections:
        if rejection.plugin == _PLUGIN_NAME and rejection.reason == UNAVAILABLE:
            unavailable_nodes |= rejection.nodes
    return unavailable_nodes


def release_group_claims(attempt: FailedGroupAttempt, *, enabled: bool, workload_claims: bool) -> DryRunGenerator:
    """Return the plan that deallocates, deletes or unreserves claims of a pod group and its members, without a dry run.

    There is none for a composite pod group. *enabled* is whether the plugin is enabled. With *workload_claims*, claims
    may be reserved for the group.

    Source: pkg/scheduler/framework/plugins/dynamicresources/dynamicresources.go, DynamicResources.PodGroupPostFilter
    (1.37).
    """
    yield from ()
    is_topology_aware = "TopologyAwareWorkloadScheduling" in attempt.profile.gates
    is_composite = isinstance(attempt.group, CompositePodGroup)
    if not enabled or is_composite or (is_topology_aware and attempt.group.spec.scheduling_constraints is not None):
        return PodGroupPostFilterResult(unschedulable_status())
    members = [member for member in attempt.members if _has_run_pre_filter(member)]
    if not members:
        return PodGroupPostFilterResult(_NO_STATE)
    all_nodes = np.ones(len(attempt.snapshot), dtype=np.bool_)
    pod_states = [
        (
            state_data,
            all_nodes
            if isinstance(member.decision, ScheduleResult)
            else find_unavailable_nodes(member.decision.diagnosis),
        )
        for member in members
        if isinstance(state_data := member.cycle_state.get(_PLUGIN_NAME), StateData)
    ]
    results = [_release_pod_claim(*pod_state) for pod_state in pod_states]
    calls = [call for result in results if result is not None for call in result.plan.calls]
    status = _RELEASE_COMPLETED
    if workload_claims and (None in results or len(results) < len(members)):
        status, group_calls = _release_group_claim(pod_states, attempt)
        calls.extend(group_calls)
    return PodGroupPostFilterResult(status, ApiPlan(tuple(calls)) if calls else None)


def _has_run_pre_filter(member: MemberResult) -> bool:
    """Return whether PreFilter of the plugin ran for *member*, perhaps with a rejection."""
    if _PLUGIN_NAME in member.cycle_state:
        return True
    if isinstance(member.decision, ScheduleResult):
        return False
    status = member.decision.diagnosis.pre_filter_run.status
    return status is not None and status.plugin == _PLUGIN_NAME


def _release_group_claim(
    pod_states: Sequence[tuple[StateData, BoolArray]], attempt: FailedGroupAttempt
) -> tuple[Status, Sequence[ApiCall]]:
    """Return the status and the calls that deallocate or unreserve a claim of the group itself.

    *pod_states* has for each member with claims its state and the nodes rejected for unavailable claims: bool, by row.

    Source: pkg/scheduler/framework/plugins/dynamicresources/dynamicresources.go,
    DynamicResources.deallocatePodGroupClaims (1.37).
    """
    pod = attempt.pods[0].pod
    claim = _find_unavailable_group_claim(pod_states, attempt)
    if claim is not None:
        status = unschedulable_status("deallocation of PodGroup ResourceClaim completed")
        return status, api_calls.plan_deallocation(claim).calls
    unused_claim = find_unused_pod_group_claim(pod, attempt.snapshot)
    if isinstance(unused_claim, str):
        return error_status(unused_claim), ()
    if unused_claim is not None:
        status = unresolvable_status("ResourceClaim unreserved for PodGroup")
        return status, api_calls.plan_unreserve_for_pod_group(unused_claim, pod).calls
    return _RELEASE_COMPLETED, ()


def _find_unavailable_group_claim(
    pod_states: Sequence[tuple[StateData, BoolArray]], attempt: FailedGroupAttempt
) -> ResourceClaim | None:
    """Return the first unavailable claim that is reserved only for the group; None if a member is scheduled."""
    group = attempt.group.metadata
    if attempt.snapshot.pod_group(f"{group.namespace}/{group.name}").assigned:
        return None
    for state_data, unavailable_nodes in pod_states:
        for index, rows in sorted(state_data.unavailable_claims.items()):
            uids = [consumer.uid for consumer in state_data.claims[index].status.reserved_for]
            if (rows & unavailable_nodes).any() and uids in ([], [group.uid]):
                return state_data.claims[index]
    return None


def _find_claim_to_deallocate(state_data: StateData, unavailable_nodes: BoolArray) -> ResourceClaim | None:
    """Return the first claim that is unavailable on one of *unavailable_nodes* and that no other pod uses."""
    for index, rows in sorted(state_data.unavailable_claims.items()):
        claim = state_data.claims[index]
        if claim is state_data.extended_resource_claim or not (rows & unavailable_nodes).any():
            continue
        consumers = claim.status.reserved_for
        if not consumers or (len(consumers) == 1 and consumers[0].uid == state_data.pod.metadata.uid):
            return claim
    return None
