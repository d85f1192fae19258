"""PostFilter of DynamicResources: free a claim that is not available on some nodes.

Source: pkg/scheduler/framework/plugins/dynamicresources/dynamicresources.go, DynamicResources.PostFilter (1.36).
"""

from extender.api.kinds.devices import ResourceClaim
from extender.cache.snapshot import Snapshot
from extender.cache.tables.arrays import BoolArray
from extender.framework.extension_points import PostFilterResult
from extender.framework.status import unresolvable, unschedulable
from extender.plugins.dynamic_resources import api_calls
from extender.plugins.dynamic_resources.pod_group_claims import find_unused_pod_group_claim
from extender.plugins.dynamic_resources.state import StateData

_STILL_UNSCHEDULABLE = PostFilterResult(unschedulable("still not schedulable"))


def free_claim(
    state_data: StateData, unavailable_nodes: BoolArray, snapshot: Snapshot, *, workload_claims: bool
) -> PostFilterResult:
    """Return the plan to deallocate, delete or unreserve a claim of the pod; a rejection if no claim can be freed.

    Args:
        state_data: the state of the failed attempt.
        unavailable_nodes: the nodes rejected for unavailable claims: bool, by row.
        snapshot: a snapshot with the claims of the pod's group.
        workload_claims: whether claims may be reserved for the pod's group.
    """
    claim = _find_claim_to_deallocate(state_data, unavailable_nodes)
    if claim is not None:
        status = unschedulable("deallocation of ResourceClaim completed")
        return PostFilterResult(status, detail=api_calls.plan_deallocation(claim))
    if state_data.extended_resource_claim is not None and state_data.extended_claim_exists:
        status = unschedulable("deletion of ResourceClaim completed")
        return PostFilterResult(status, detail=api_calls.plan_deletion(state_data.extended_resource_claim))
    unused_claim = find_unused_pod_group_claim(state_data.pod, snapshot) if workload_claims else None
    if unused_claim is not None:
        status = unresolvable("ResourceClaim unreserved for PodGroup")
        return PostFilterResult(status, detail=api_calls.plan_unreserve_for_pod_group(unused_claim, state_data.pod))
    return _STILL_UNSCHEDULABLE


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
