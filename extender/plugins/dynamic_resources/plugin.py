"""DynamicResources allocates devices for the pod's claims and for extended resources that a device class backs.

**Rejects** a pod in PreFilter if one of its claims does not exist, is being deleted, is owned by another pod, is being
allocated for another pod, or requests an unknown device class. Rejects a node if an allocated claim is not usable there
or its devices failed to bind (`resourceclaim not available on the node`), if an unallocated claim cannot be allocated
(`cannot allocate all claims`), or if it lacks an extended resource without a device class. These rejections are
unresolvable: no pod is preempted for devices. An invalid selector and an allocation timeout are errors. PostFilter
deallocates an unusable allocation that no other pod uses.

With the gate DRANodeAllocatableResources a device may map to cpu, memory, ephemeral storage or huge pages of its node.
These amounts are added to the pod's requests. A node with too few free resources is rejected (`Insufficient cpu`). The
rejection is unresolvable only if the node's allocatable amount is too low. A node is also rejected if another pod there
uses a claim with such a device, if no container refers to the claim, or if a pod-level request is lower than the sum of
these amounts and the containers' requests. Since 1.37 the device may also need an overhead for each pod and container,
claims whose devices have only an overhead may be shared, a claim needs no container, and pod-level limits are checked
too.

**Scores** nodes by the preference of the subrequests that are allocated there: 8 for the first subrequest of a
prioritized list, 7 for the second, and so on. The highest score becomes 100.

**Requeued on** changes of claims, device classes, resource slices and the pod's list of generated claims, or on a node
that is new or whose labels or allocatable resources change.

**Options** `filterTimeout`: the timeout for the allocation on all nodes together, `10s`; `0s` is no limit. In
kube-scheduler it is for each node. The next attempt continues after the nodes that were searched. `bindingTimeout`: the
timeout for binding conditions, `10m0s`, at least `1s`. `filterTimeout` needs the gate DRASchedulerFilterTimeout, and
`bindingTimeout` the gates DRADeviceBindingConditions and DRAResourceClaimDeviceStatus.

Source: pkg/scheduler/framework/plugins/dynamicresources/dynamicresources.go, statusUnschedulable;
dynamic-resource-allocation/cel/compile.go, newCompiler;
dynamic-resource-allocation/structured/internal/incubating/allocator_incubating.go, Allocator.Allocate;
pkg/scheduler/apis/config/v1/defaults.go, SetDefaults_DynamicResourcesArgs;
pkg/scheduler/apis/config/validation/validation_pluginargs.go, ValidateDynamicResourcesArgs;
pkg/scheduler/framework/types.go, FitError.Error (1.36).
"""

import uuid
from collections.abc import Hashable, Sequence
from typing import Any, ClassVar

import numpy as np

from extender.api.kinds.devices import DeviceTaintRule, ResourceClaim
from extender.api.kinds.pod import Pod
from extender.api.matching import CompiledNodeSelector, compile_strict_node_selector
from extender.api.requests import is_dra_extended_resource
from extender.basics.clock import Clock, SystemClock
from extender.cache.device_classes import get_class_by_resource
from extender.cache.object_index import ObjectIndex
from extender.cache.pod_info import PodInfo
from extender.cache.pod_signature import make_pod_resources_options
from extender.cache.snapshot import NodeView, Snapshot
from extender.cache.tables.arrays import IntArray
from extender.config import durations
from extender.cycle.pod_group.post_filter import FailedGroupAttempt
from extender.cycle.post_filter import FailedAttempt
from extender.dra.allocated_devices import get_extended_resource_pod
from extender.dra.allocation_results import build_allocation_results
from extender.dra.allocator import ALLOCATOR_KEY, Allocator
from extender.dra.features import Features
from extender.framework.api_plan import ApiCall, ApiPlan
from extender.framework.binding_points import PreBindPreFlightResult
from extender.framework.events import ClusterEventWithHint
from extender.framework.extension_points import DependsOn, PostFilterResult, PreFilterResult
from extender.framework.normalize import default_normalize_score
from extender.framework.plugin_args import PluginArgs
from extender.framework.pod_group_points import DryRunGenerator
from extender.framework.status import Code, Reason, Rejection, Status, error_status, reject_all, unresolvable_status
from extender.plugins.dynamic_resources import api_calls, deallocation
from extender.plugins.dynamic_resources.args import DynamicResourcesArgs, are_binding_conditions_enabled
from extender.plugins.dynamic_resources.claim_binding import bind_claims, find_mapping_error
from extender.plugins.dynamic_resources.filter import FilterContext, find_rejections
from extender.plugins.dynamic_resources.node_resources import copy_with_claim_statuses
from extender.plugins.dynamic_resources.pod_claims import (
    get_claim_consumer,
    get_pod_claims,
    get_pod_group,
    has_binding_conditions,
    has_binding_failed,
    may_have_claims,
    validate_claim,
)
from extender.plugins.dynamic_resources.queueing_hints import events_to_register
from extender.plugins.dynamic_resources.score import compute_scores
from extender.plugins.dynamic_resources.state import StateData

_NO_PRE_FILTER_STATE = PostFilterResult(error_status("not found"))
_SKIP_WITHOUT_CLAIMS = PreFilterResult(skip=True, state=())
"""The result that skips Filter. Its state is not None, which shows Score that PreFilter ran."""
_NO_STATE = Reason("not found", Code.ERROR)
_SKIP = Status(Code.SKIP)
_TIMED_OUT = error_status("device binding timeout: context deadline exceeded")


class DynamicResources:
    """The plugin DynamicResources. An allocation is in flight from Reserve until the claim is written."""

    name: ClassVar[str] = "DynamicResources"
    cacheable_for_spec_class: ClassVar[bool] = True
    options: ClassVar[type[DynamicResourcesArgs]] = DynamicResourcesArgs
    score_depends_on: ClassVar[DependsOn] = DependsOn.NODE
    normalizes_only_by_scores = True
    remembers_filtered_nodes: ClassVar[bool] = True

    def __init__(self, args: PluginArgs[DynamicResourcesArgs], clock: Clock | None = None) -> None:
        gates = args.gates
        self._release, self._pre_hints = gates.release, "SchedulerPreQueueingHints" in gates
        self._enabled = "DynamicResourceAllocation" in gates
        self._extended_resources_enabled = "DRAExtendedResource" in gates
        self._binding_conditions_enabled = are_binding_conditions_enabled(gates)
        self._workload_claims = "DRAWorkloadResourceClaims" in gates
        self._resources_options = make_pod_resources_options(gates) if "DRANodeAllocatableResources" in gates else None
        self._features = Features(gates)
        self._clock = clock or SystemClock()
        self.read_kinds = (DeviceTaintRule,) if self._features.device_taint_rules else ()
        # All profiles share one allocator with its in-flight allocations.
        self._allocator: Allocator = args.shared_state.setdefault(ALLOCATOR_KEY, Allocator(self._features, self._clock))
        self._extended_resource_claims = ObjectIndex(ResourceClaim, get_extended_resource_pod, lambda claim: claim)
        filter_timeout = args.options.filter_timeout
        self._filter_timeout = durations.parse(filter_timeout or "0s") if "DRASchedulerFilterTimeout" in gates else 0.0
        self._binding_timeout = durations.parse(args.options.binding_timeout or "10m0s")

    def events_to_register(self) -> Sequence[ClusterEventWithHint]:
        """Return the events that may make devices available.

        Source: pkg/scheduler/framework/plugins/dynamicresources/dynamicresources.go,
        DynamicResources.EventsToRegister (1.36).
        """
        return events_to_register(self._release, with_pre_hint=self._pre_hints) if self._enabled else ()

    # -- PreEnqueue and PreFilter

    def pre_enqueue(self, pod: PodInfo, snapshot: Snapshot) -> Status | None:
        """Reject a pod whose claims are missing or invalid.

        Source: pkg/scheduler/framework/plugins/dynamicresources/dynamicresources.go,
        DynamicResources.foreachPodResourceClaim (1.36).
        """
        if not self._enabled or not pod.spec.resource_claims:
            return None
        claims = get_pod_claims(pod.pod, snapshot, workload_claims=self._workload_claims)
        return claims if isinstance(claims, Status) else None

    def pre_filter(self, pod: PodInfo, snapshot: Snapshot) -> PreFilterResult:
        """Create the cycle's state. Skip pods without claims and without backed extended resources.

        Source: pkg/scheduler/framework/plugins/dynamicresources/dynamicresources.go, DynamicResources.PreFilter;
        pkg/scheduler/framework/plugins/dynamicresources/extendeddynamicresources.go,
        DynamicResources.filterExtendedResources (1.36).
        """
        if not self._enabled:
            return _SKIP_WITHOUT_CLAIMS
        user_claims: tuple[ResourceClaim, ...] | Status = ()
        if pod.spec.resource_claims:
            user_claims = get_pod_claims(pod.pod, snapshot, workload_claims=self._workload_claims)
        if isinstance(user_claims, Status):
            return PreFilterResult(status=user_claims)
        extended_resources = self._get_extended_resources(pod, snapshot)
        if not user_claims and not extended_resources:
            return _SKIP_WITHOUT_CLAIMS
        self._allocator.sync(snapshot)
        data = self._make_state_data(pod, user_claims, extended_resources, snapshot)
        return PreFilterResult(status=data) if isinstance(data, Status) else PreFilterResult(state=data)

    def pre_filter_is_cacheable(self, pod: PodInfo) -> bool:
        """Return whether the pod cannot have claims, for any set of device classes."""
        return not (self._enabled and may_have_claims(pod))

    def _get_extended_resources(self, pod: PodInfo, snapshot: Snapshot) -> tuple[str, ...]:
        """Return the extended resources that *pod* requests if a device class backs one of them, else none.

        Source: pkg/scheduler/framework/plugins/noderesources/fit.go, shouldDelegateResourceToDRA;
        pkg/scheduler/framework/plugins/dynamicresources/extendeddynamicresources.go,
        DynamicResources.filterExtendedResources (1.36).
        """
        if not self._extended_resources_enabled:
            return ()
        requested = tuple(filter(is_dra_extended_resource, pod.signature.requested_amounts))
        if not requested or get_class_by_resource(snapshot).keys().isdisjoint(requested):
            return ()
        return requested

    def _make_state_data(
        self,
        pod: PodInfo,
        user_claims: tuple[ResourceClaim, ...],
        extended_resources: tuple[str, ...],
        snapshot: Snapshot,
    ) -> StateData | Status:
        state_data = StateData(pod.pod, list(user_claims))
        if self._workload_claims:
            group = get_pod_group(pod.pod, snapshot)
            if isinstance(group, str):
                return unresolvable_status(group)
            state_data.consumers = [get_claim_consumer(pod.pod, group, claim) for claim in pod.spec.resource_claims]
        if extended_resources:
            existing_claims = self._extended_resource_claims.get_entries(snapshot, pod.pod.metadata.uid)
            existing_claim = next((claim for claim in existing_claims.values() if claim not in user_claims), None)
            extended_claim = existing_claim or api_calls.make_extended_resource_claim(pod.pod)
            state_data.extended_resource_claim = extended_claim
            state_data.claims.append(extended_claim)
            state_data.extended_resources = extended_resources
            state_data.dra_backed_resources = frozenset(extended_resources) & get_class_by_resource(snapshot).keys()
        node_selectors: list[CompiledNodeSelector | None] = []
        for index, claim in enumerate(tuple(state_data.claims)):
            if claim.status.allocation is None:
                status = self._share_or_validate_claim(index, state_data, snapshot)
                if status is not None:
                    return status
            allocation = state_data.claims[index].status.allocation
            selector = allocation.node_selector if allocation is not None else None
            try:
                node_selectors.append(None if selector is None else compile_strict_node_selector(selector))
            except ValueError as invalid_selector:
                return error_status(str(invalid_selector))
        state_data.node_selectors = tuple(node_selectors)
        state_data.binding_failed = tuple(
            self._binding_conditions_enabled and has_binding_failed(claim, self._binding_timeout, self._clock.now())
            for claim in state_data.claims
        )
        self._allocator.planned_allocations = pod.uid, state_data.find_allocation
        return state_data

    def _share_or_validate_claim(self, index: int, state_data: StateData, snapshot: Snapshot) -> Status | None:
        claim, devices = state_data.claims[index], self._allocator.allocated_devices
        in_flight_key = api_calls.get_in_flight_key(claim, state_data.pod)
        shared_allocation = devices.find_shared_allocation(in_flight_key, snapshot.pod_group_cycle)
        if shared_allocation is not None:
            state_data.share_allocation(index, shared_allocation)
            return None
        if devices.is_in_flight(in_flight_key):
            return unresolvable_status(f"resource claim {claim.key} is in the process of being allocated")
        if claim is state_data.extended_resource_claim:
            return None
        return validate_claim(claim, self._allocator.classes, prioritized_list=self._features.prioritized_list)

    # -- Filter, Score and PostFilter

    def filter(self, pod: PodInfo, nodes: NodeView, state: Any) -> Sequence[Rejection]:  # noqa: ARG002
        """Reject nodes where claims are unavailable.

        Return an error for every node if PreFilter is disabled, as upstream.

        Source: pkg/scheduler/framework/plugins/dynamicresources/dynamicresources.go, DynamicResources.Filter;
        pkg/scheduler/framework/plugins/dynamicresources/extendeddynamicresources.go,
        DynamicResources.filterExtendedResources (1.36).
        """
        if not self._enabled:
            return ()
        if not isinstance(state, StateData):
            return reject_all(len(nodes), _NO_STATE)
        classes = get_class_by_resource(nodes.snapshot)
        context = FilterContext(self._allocator, classes, self._filter_timeout, self._resources_options, self._release)
        return find_rejections(state, nodes, context)

    def score(self, pod: PodInfo, nodes: NodeView, state: Any) -> IntArray:  # noqa: ARG002  the extension point's signature
        """Return a score for each node by the preference of the allocated subrequests.

        Raises:
            LookupError: PreFilter is disabled; scoring fails as upstream.

        Source: pkg/scheduler/framework/plugins/dynamicresources/dynamicresources.go, DynamicResources.Score,
        computeScore (1.36).
        """
        uses_state = self._enabled and self._features.prioritized_list
        if uses_state and state is None:
            raise LookupError("not found")
        if not isinstance(state, StateData) or not uses_state:
            return np.zeros(len(nodes), dtype=np.int64)
        return compute_scores(state, nodes)

    def score_cache_key(self, pod: PodInfo) -> Hashable | None:
        """Return one key for all pods that cannot have claims: all nodes score 0. Return None for other pods.

        Also return None for a pod on a node, whose resize is deferred: it may lack the state that scoring requires.
        """
        if pod.spec.node_name:
            return None
        return pod.signature.spec_class.get_or_create((self, "key"), lambda: None if may_have_claims(pod) else ())

    def normalize_score(self, pod: PodInfo, scores: IntArray, nodes: NodeView, state: Any) -> IntArray:  # noqa: ARG002
        """Scale the scores so that the highest is 100.

        Source: pkg/scheduler/framework/plugins/dynamicresources/dynamicresources.go, DynamicResources.NormalizeScore
        (1.36).
        """
        return default_normalize_score(scores)

    def post_filter(self, pod: PodInfo, snapshot: Snapshot, attempt: FailedAttempt) -> PostFilterResult:  # noqa: ARG002
        """Deallocate a claim that is not available on some nodes and that no other pod uses.

        If PreFilter did not run, return an error, so that preemption is not tried, as upstream.

        Source: pkg/scheduler/framework/plugins/dynamicresources/dynamicresources.go, DynamicResources.PostFilter
        (1.36).
        """
        if not self._enabled:
            return deallocation.make_idle_result("plugin disabled", self._release)
        pre_filter_run = attempt.diagnosis.pre_filter_run
        if self.name not in pre_filter_run.skipped_plugins and self.name not in pre_filter_run.cycle_state:
            return _NO_PRE_FILTER_STATE
        state_data = pre_filter_run.cycle_state.get(self.name)
        if not isinstance(state_data, StateData):
            return deallocation.make_idle_result("no new claims to deallocate", self._release)
        unavailable_nodes = deallocation.find_unavailable_nodes(attempt.diagnosis)
        return deallocation.plan_claim_release(
            state_data, unavailable_nodes, snapshot, self._release, workload_claims=self._workload_claims
        )

    def pod_group_post_filter(self, attempt: FailedGroupAttempt) -> DryRunGenerator:
        """Release claims of the pod group and its members."""
        return deallocation.release_group_claims(attempt, enabled=self._enabled, workload_claims=self._workload_claims)

    # -- Reserve, PreBind and Unreserve

    def reserve(self, pod: PodInfo, node_name: str, snapshot: Snapshot, state: Any) -> Status | None:
        """Mark the allocated devices as in flight. The next pods of a pod group cycle may share the allocation.

        Return an error if PreFilter is disabled, as upstream.

        Source: pkg/scheduler/framework/plugins/dynamicresources/dynamicresources.go, DynamicResources.Reserve (1.36).
        """
        if not isinstance(state, StateData):
            return error_status(_NO_STATE.text) if self._enabled and state is None else None
        state.allocation_results = dict(state.shared_allocations)
        node_allocation = state.find_allocation_and_request(node_name)
        if node_allocation is not None:
            allocation, state.reserved_request = node_allocation
            claims = state.reserved_request.claims_to_allocate.claims
            results = build_allocation_results(claims, allocation, node_name, self._features, lambda: str(uuid.uuid4()))
            state.allocation_results |= zip(state.unallocated_indices, results, strict=True)
        elif state.has_unallocated_user_claim:
            return error_status("claim allocation not found for node")
        for in_flight_key, result in api_calls.iterate_unwritten_results(state, pod.pod, snapshot):
            self._allocator.allocated_devices.add_in_flight(in_flight_key, result, snapshot.pod_group_cycle)
        return None

    def make_assumed_pod(self, pod: Pod, node_name: str, state: Any) -> Pod:
        """Return *pod* with the statuses of the node resources that its claims consume on *node_name*."""
        if self._resources_options is None:
            return pod
        statuses = state.node_allocatable_statuses.get(node_name, ()) if isinstance(state, StateData) else ()
        return copy_with_claim_statuses(pod, statuses)

    def unreserve(self, pod: PodInfo, node_name: str, state: Any) -> Sequence[ApiCall]:
        """Free the in-flight devices and return the calls that undo PreBind.

        Source: pkg/scheduler/framework/plugins/dynamicresources/dynamicresources.go, DynamicResources.Unreserve
        (1.36).
        """
        if not isinstance(state, StateData):
            return ()
        for index in state.allocation_results:
            self._allocator.allocated_devices.remove_unwritten(
                api_calls.get_in_flight_key(state.claims[index], pod.pod)
            )
        calls = [call for index in range(len(state.claims)) for call in api_calls.make_undo_calls(state, index)]
        if node_name in state.node_allocatable_statuses:
            calls.append(api_calls.make_node_allocatable_statuses_patch(pod.pod, ()))
        state.allocation_results, state.reserved_request, state.bound_claims = {}, None, {}
        return calls

    def pre_bind_pre_flight(self, pod: PodInfo, node_name: str, state: Any) -> PreBindPreFlightResult | Status:  # noqa: ARG002
        """Skip pods without claims.

        Source: pkg/scheduler/framework/plugins/dynamicresources/dynamicresources.go,
        DynamicResources.PreBindPreFlight (1.36).
        """
        return PreBindPreFlightResult(allow_parallel=True) if self._enabled and isinstance(state, StateData) else _SKIP

    def pre_bind(self, pod: PodInfo, node_name: str, snapshot: Snapshot, state: Any) -> ApiPlan | Status:
        """Return the calls that write allocations and reserve claims, and the condition to wait for.

        Source: pkg/scheduler/framework/plugins/dynamicresources/dynamicresources.go, DynamicResources.bindClaim,
        DynamicResources.PreBind (1.36).
        """
        if not isinstance(state, StateData):
            return ApiPlan()
        now = self._clock.now() if self._binding_conditions_enabled else None
        allocated = self._allocator.allocated_devices
        binding_plan = bind_claims(state, snapshot, now, allocated, workload_claims=self._workload_claims)
        if isinstance(binding_plan, str):
            return error_status(binding_plan)
        calls, claims = binding_plan
        if message := find_mapping_error(state):
            return ApiPlan(tuple(calls), lambda _: error_status(message))
        if statuses := state.node_allocatable_statuses.get(node_name):
            calls.append(api_calls.make_node_allocatable_statuses_patch(pod.pod, statuses))
        if not self._binding_conditions_enabled or not any(map(has_binding_conditions, claims)):
            return ApiPlan(tuple(calls))
        wait_for = api_calls.make_wait_condition(claims, self._binding_timeout, self._clock.now)
        event = "BindingConditionsPending", f"waiting for binding conditions for device on node {node_name}"
        devices = api_calls.get_allocated_devices(claims)
        return ApiPlan(tuple(calls), wait_for, self._binding_timeout, _TIMED_OUT, event, devices)
