"""DynamicResources: devices for pods that claim them, by claims or as extended resources that a device class serves.

**Refuses** for good a pod whose claims are not in order: not created yet, missing, being deleted, made for another
pod, or asking for a class that does not exist; and one whose claim is being allocated for another. Then nodes that an
allocation cannot be used on, or whose devices failed to get ready (`resourceclaim not available on the node`); nodes
where what is not allocated yet cannot be (`cannot allocate all claims`); nodes that do not offer an extended resource
that no class serves. A selector that fails, or a search that takes too long, ends the attempt. All refusals are for
good, so no pod is evicted for devices; an allocation that is of no use and that no other pod holds is given up.
With the gate DRANodeAllocatableResources a device may map to cpu, memory, ephemeral storage or huge pages of its node.
What the pod takes so counts with its requests, and a node is refused that has not enough left of them (`Insufficient
cpu`, not for good if the node as a whole has enough), as are a claim of this kind that another pod on the node uses, or
that no container refers to, and a pod that requests less as a whole.

**Scores** how much preferred the alternatives are that were found on a node: 8 for the first of a request, 7 for the
second and so on, in proportion to the best node.

**Undone by** changes of claims, of the pod's generated claims, of device classes, of resource slices, and nodes that
come or change their labels or allocatable resources.

**Options** `filterTimeout`: how long the search for devices on one node may take, `10s`; `0s` is without limit.
`bindingTimeout`: how long to wait for binding conditions, `10m0s`, at least `1s`. Each exists only while its feature
gates are on (`DRASchedulerFilterTimeout`; `DRADeviceBindingConditions` and `DRAResourceClaimDeviceStatus`).

Source: B034, B109 to B126, G043, H065, H066.
"""

import uuid
from collections.abc import Hashable, Sequence
from typing import Any, ClassVar

import numpy as np

from extender.allocation.allocated import is_for_extended
from extender.allocation.allocator import Allocator
from extender.allocation.features import features_of
from extender.allocation.results import results_of
from extender.basics.clock import Clock, SystemClock
from extender.cluster.accounting import counting_of
from extender.cluster.arrays import IntArray
from extender.cluster.device_classes import classes_by_resource
from extender.cluster.pods import PodQuery
from extender.cluster.snapshot import NodeView, Snapshot
from extender.config import durations
from extender.decide.rescue import Attempt
from extender.framework.changes import Registration
from extender.framework.normalize import in_proportion
from extender.framework.points import Plan, PostFiltered, PreFiltered, PreFlight, Reads, Write
from extender.framework.setup import Setup
from extender.framework.verdict import SUCCESS, Code, Reason, Rejection, Status, error, unresolvable, unschedulable
from extender.objects.devices import DeviceClass, DeviceTaintRule, ResourceClaim
from extender.objects.matching import NodeTerms, strict_node_selector
from extender.objects.pod import Pod
from extender.objects.requests import incoming_requests, is_dra_extended
from extender.plugins.dynamic_resources import writes
from extender.plugins.dynamic_resources.changes import registrations
from extender.plugins.dynamic_resources.claims import (
    binding_fault,
    claims_of,
    is_overdue,
    is_ready,
    is_reserved,
    objection,
    waits,
)
from extender.plugins.dynamic_resources.cycle import Cycle
from extender.plugins.dynamic_resources.filtering import UNAVAILABLE, Means, refused
from extender.plugins.dynamic_resources.groups import consumer, group_of, held_in_vain
from extender.plugins.dynamic_resources.node_resources import with_statuses
from extender.plugins.dynamic_resources.options import DynamicResourcesOptions, waits_for_conditions
from extender.plugins.dynamic_resources.scoring import scores

_NOTHING_TO_FREE = PostFiltered(unschedulable("no new claims to deallocate"))
_DISABLED = PostFiltered(unschedulable("plugin disabled"))
_NOT_ASKED = PostFiltered(error("not found"))
_CLAIMS_NOTHING = PreFiltered(skip=True, notes=())
"""The pod was looked at, which `score` must know."""
_STILL = PostFiltered(unschedulable("still not schedulable"))
_UNPREPARED = Reason("not found", Code.ERROR)
_NOTHING_TO_DO = Status(Code.SKIP)
_LATE = error("device binding timeout: context deadline exceeded")


class DynamicResources:
    """Finds devices, and keeps those for itself that it has found until they are written down."""

    name: ClassVar[str] = "DynamicResources"
    kept_for_kin: ClassVar[bool] = True
    options: ClassVar[type[DynamicResourcesOptions]] = DynamicResourcesOptions
    score_reads: ClassVar[Reads] = Reads.NODE

    def __init__(self, setup: Setup[DynamicResourcesOptions], clock: Clock | None = None) -> None:
        gates = setup.gates
        self._on = "DynamicResourceAllocation" in gates
        self._serves_extended = "DRAExtendedResource" in gates
        self._waits = waits_for_conditions(gates)
        self._grouped = "DRAWorkloadResourceClaims" in gates
        self._counting = counting_of(gates) if "DRANodeAllocatableResources" in gates else None
        self._features = features_of(gates)
        self._clock = clock or SystemClock()
        self.reads = (DeviceTaintRule,) if self._features.taint_rules else ()
        # One for all profiles: what one has promised is taken for the others too.
        self._allocator: Allocator = setup.shared.setdefault(self.name, Allocator(self._features, self._clock))
        limit = setup.options.filter_timeout
        self._filter_timeout = durations.parse(limit or "0s") if "DRASchedulerFilterTimeout" in gates else 0.0
        self._binding_timeout = durations.parse(setup.options.binding_timeout or "10m0s")
        self._served: tuple[object, dict[str, DeviceClass]] = (None, {})

    def events(self) -> Sequence[Registration]:
        """Source: B125."""
        return registrations() if self._on else ()

    # -- before any node

    def pre_enqueue(self, pod: PodQuery, cluster: Snapshot) -> Status | None:
        """Source: B110."""
        if not self._on or not pod.spec.resource_claims:
            return None
        found = claims_of(pod.pod, cluster, grouped=self._grouped)
        return found if isinstance(found, Status) else None

    def pre_filter(self, pod: PodQuery, cluster: Snapshot) -> PreFiltered:
        """Skips pods that claim nothing. Source: B111, B112, B114."""
        if not self._on:
            return _CLAIMS_NOTHING
        own = claims_of(pod.pod, cluster, grouped=self._grouped) if pod.spec.resource_claims else ()
        if isinstance(own, Status):
            return PreFiltered(status=own)
        extended = self._extended(pod, cluster)
        if not own and not extended:
            return _CLAIMS_NOTHING
        self._allocator.catch_up(cluster)
        cycle = self._cycle(pod, own, extended, cluster)
        if isinstance(cycle, Status):
            return PreFiltered(status=cycle)
        return PreFiltered(notes=cycle)

    def pre_filter_kept(self, pod: PodQuery) -> bool:
        """For pods that claim nothing, whatever device classes there are."""
        return not (self._on and _may_claim(pod))

    def _extended(self, pod: PodQuery, cluster: Snapshot) -> tuple[str, ...]:
        """The extended resources of *pod*, if a device class serves one of them. Source: B034, B114."""
        if not self._serves_extended:
            return ()
        names = cluster.vocabulary.resources
        asked = tuple(name for number, _ in pod.shape.asked if is_dra_extended(name := names[number]))
        if not asked or self._classes(cluster).keys().isdisjoint(asked):
            return ()
        return asked

    def _classes(self, cluster: Snapshot) -> dict[str, DeviceClass]:
        """The device classes by extended resource."""
        moment = (cluster.object_history, cluster.revision(DeviceClass))
        if self._served[0] != moment:
            self._served = (moment, classes_by_resource(cluster.objects(DeviceClass).values()))
        return self._served[1]

    def _cycle(
        self, pod: PodQuery, own: tuple[ResourceClaim, ...], extended: tuple[str, ...], cluster: Snapshot
    ) -> Cycle | Status:
        cycle = Cycle(pod.pod, self._moment(cluster), list(own))
        if self._grouped:
            group = group_of(pod.pod, cluster)
            if isinstance(group, str):
                return unresolvable(group)
            cycle.consumers = [consumer(pod.pod, group, entry) for entry in pod.spec.resource_claims]
        if extended:
            uid = pod.pod.metadata.uid
            known = (c for c in cluster.objects(ResourceClaim).values() if is_for_extended(c, uid))
            cycle.special = next(known, None) or writes.unnamed_claim(pod.pod)
            cycle.claims.append(cycle.special)
            cycle.extended = extended
            cycle.backed = frozenset(extended) & self._classes(cluster).keys()
        selectors: list[NodeTerms | None] = []
        for claim in cycle.claims:
            if claim.status.allocation is None:
                fault = self._objection(claim, cycle)
                if fault is not None:
                    return fault
            selector = claim.status.allocation.node_selector if claim.status.allocation else None
            try:
                selectors.append(None if selector is None else strict_node_selector(selector))
            except ValueError as wrong:
                return error(str(wrong))
        cycle.selectors = tuple(selectors)
        cycle.failed = tuple(self._has_failed(claim) for claim in cycle.claims)
        return cycle

    def _moment(self, cluster: Snapshot) -> object:
        return (cluster.object_history, cluster.revision(ResourceClaim), *self._allocator.moment)

    def _objection(self, claim: ResourceClaim, cycle: Cycle) -> Status | None:
        if self._allocator.allocated.is_in_flight(writes.promise_key(claim, cycle.pod)):
            return unresolvable(f"resource claim {claim.key} is in the process of being allocated")
        if claim is cycle.special:
            return None
        return objection(claim, self._allocator.classes, alternatives=self._features.prioritized_list)

    def _has_failed(self, claim: ResourceClaim) -> bool:
        """Whether the allocated devices failed to get ready, or took too long. Source: B113, B120."""
        if not self._waits or claim.status.allocation is None:
            return False
        if binding_fault(claim) is not None:
            return True
        return not is_ready(claim) and is_overdue(claim, self._binding_timeout, self._clock.now())

    # -- nodes

    def filter(self, pod: PodQuery, nodes: NodeView, notes: Any) -> Sequence[Rejection]:  # noqa: ARG002
        """Where the claims can be had. Without notes, as upstream, every node is an error. Source: B113, B114."""
        if not self._on:
            return ()
        if not isinstance(notes, Cycle):
            return (Rejection(np.ones(len(nodes), dtype=np.bool_), _UNPREPARED),)
        return refused(notes, nodes, Means(self._allocator, self._served[1], self._filter_timeout, self._counting))

    def score(self, pod: PodQuery, nodes: NodeView, notes: Any) -> IntArray:  # noqa: ARG002  the point's signature
        """How much preferred the alternatives are that were found. Source: B116.

        Raises:
            LookupError: PreFilter was not asked, as upstream.
        """
        if self._on and notes is None:
            raise LookupError("not found")
        if not isinstance(notes, Cycle) or not self._features.prioritized_list:
            return np.zeros(len(nodes), dtype=np.int64)
        return scores(notes, nodes)

    def score_key(self, pod: PodQuery) -> Hashable | None:
        """One key for all pods that cannot claim anything, whose scores are 0 for ever; None for others."""
        return pod.shape.kin.remember((self, "key"), lambda: None if _may_claim(pod) else ())

    def normalize(self, pod: PodQuery, raw: IntArray, nodes: NodeView, notes: Any) -> IntArray:  # noqa: ARG002
        """Source: B116."""
        return in_proportion(raw)

    def post_filter(self, pod: PodQuery, cluster: Snapshot, attempt: Attempt) -> PostFiltered:
        """Gives up an allocation that kept nodes out and that no other pod holds. Source: B115.

        As upstream, it is an error if the attempt ended before `pre_filter` was asked; preemption is not tried then.
        """
        if not self._on:
            return _DISABLED
        before = attempt.feasibility.before
        if self.name not in before.skipped and self.name not in before.notes:
            return _NOT_ASKED
        cycle = before.notes.get(self.name)
        if not isinstance(cycle, Cycle):
            return _NOTHING_TO_FREE
        kept_out = np.zeros(attempt.feasibility.size, dtype=np.bool_)
        for refusal in attempt.feasibility.refusals:
            if refusal.plugin == self.name and refusal.reason == UNAVAILABLE:
                kept_out |= refusal.nodes
        for number, rows in sorted(cycle.unavailable.items()):
            claim = cycle.claims[number]
            if claim is cycle.special or not (rows & kept_out).any():
                continue
            others = [consumer for consumer in claim.status.reserved_for if consumer.uid != pod.pod.metadata.uid]
            if not others and len(claim.status.reserved_for) <= 1:
                done = unschedulable("deallocation of ResourceClaim completed")
                return PostFiltered(done, detail=writes.released(claim))
        if cycle.special is not None and cycle.is_left_over:
            done = unschedulable("deletion of ResourceClaim completed")
            return PostFiltered(done, detail=writes.deleted(cycle.special))
        held = held_in_vain(pod.pod, cluster) if self._grouped else None
        if held is not None:
            done = unresolvable("ResourceClaim unreserved for PodGroup")
            return PostFiltered(done, detail=writes.unreserved(held, pod.pod))
        return _STILL

    # -- after a node was chosen

    def reserve(self, pod: PodQuery, node: str, cluster: Snapshot, notes: Any) -> Status | None:  # noqa: ARG002
        """The devices count as taken from now on. Source: B117."""
        if not isinstance(notes, Cycle) or not notes.to_allocate:
            return None
        found = notes.found.get(node)
        if found is None:
            own = any(notes.claims[number] is not notes.special for number in notes.to_allocate)
            return error("claim allocation not found for node") if own else None
        solution, variant = found
        results = results_of(variant.asked.claims, solution, node, self._features, lambda: str(uuid.uuid4()))
        notes.reserved = variant
        notes.results = dict(zip(notes.to_allocate, results, strict=True))
        for number, result in notes.results.items():
            key = writes.promise_key(notes.claims[number], pod.pod)
            self._allocator.allocated.promise(key, result.devices.results)
        return None

    def assumed(self, pod: Pod, node: str, notes: Any) -> Pod:
        """*pod* with what it takes of *node* through its claims; what an earlier attempt left behind is gone."""
        if self._counting is None:
            return pod
        return with_statuses(pod, notes.taken.get(node, ()) if isinstance(notes, Cycle) else ())

    def unreserve(self, pod: PodQuery, node: str, notes: Any) -> Sequence[Write]:
        """The devices are free again, and what PreBind wrote is taken back. Source: B118."""
        if not isinstance(notes, Cycle):
            return ()
        for number in notes.results:
            self._allocator.allocated.release(writes.promise_key(notes.claims[number], pod.pod))
        undone = [write for number in range(len(notes.claims)) for write in writes.taken_back(notes, number)]
        if node in notes.taken:
            undone.append(writes.taken(pod.pod, ()))
        notes.results, notes.reserved, notes.bound = {}, None, {}
        return undone

    def pre_bind_pre_flight(self, pod: PodQuery, node: str, notes: Any) -> PreFlight | Status:  # noqa: ARG002
        """Source: B121."""
        return PreFlight(parallel=True) if self._on and isinstance(notes, Cycle) else _NOTHING_TO_DO

    def pre_bind(self, pod: PodQuery, node: str, cluster: Snapshot, notes: Any) -> Plan | Status:
        """Writes the allocations down, reserves the claims for the pod, then waits for the devices.

        Source: B119, B120.
        """
        if not isinstance(notes, Cycle):
            return Plan()
        parts = []
        settled: list[ResourceClaim] = []
        for number, claim in enumerate(notes.claims):
            idle = claim is notes.special and number not in notes.results and not claim.spec.devices.requests
            if idle or is_reserved(claim, pod.pod, grouped=self._grouped):
                settled.append(claim)
                continue
            now = cluster.find(ResourceClaim, claim.key) if claim is not notes.special else claim
            fault = _meanwhile(claim, now, allocates=number in notes.results)
            if fault is not None:
                return error(fault)
            made, bound = writes.bound(notes, number, self._clock.now() if self._waits else None)
            parts.append(made)
            settled.append(bound)
            notes.bound[number] = bound
        taken = notes.taken.get(node)
        if taken:
            parts.append((writes.taken(pod.pod, taken),))
        all_writes = writes.all_of(parts)
        if not self._waits or not any(map(waits, settled)):
            return Plan(all_writes)
        keys = tuple(claim.key for claim in settled if claim.status.allocation is not None)
        devices = tuple(
            (result.driver, bool(result.binding_conditions))
            for claim in settled
            if claim.status.allocation is not None
            for result in claim.status.allocation.devices.results
        )
        told = "BindingConditionsPending", f"waiting for binding conditions for device on node {node}"
        return Plan(all_writes, lambda later: self._readiness(keys, later), self._binding_timeout, _LATE, told, devices)

    def _readiness(self, keys: tuple[str, ...], cluster: Snapshot) -> Status | None:
        """Whether the devices of all claims are ready. Source: B120."""
        for key in keys:
            claim = cluster.find(ResourceClaim, key)
            if claim is None:
                return error(f'could not find ResourceClaim "{key}"')
            fault = binding_fault(claim)
            if fault is not None:
                return error(fault)
            if not is_ready(claim):
                late = is_overdue(claim, self._binding_timeout, self._clock.now())
                return error(f"device binding timeout: claim={claim.metadata.name}") if late else None
        return SUCCESS


def _may_claim(pod: PodQuery) -> bool:
    """Whether *pod* has claims, or asks for something that a device class may serve."""
    return bool(pod.spec.resource_claims) or any(map(is_dra_extended, incoming_requests(pod.pod)))


def _meanwhile(before: ResourceClaim, now: ResourceClaim | None, *, allocates: bool) -> str | None:
    """What has become of a claim since it was looked at, if that is in the way. Source: B119."""
    if now is None or now.metadata.uid != before.metadata.uid or now.metadata.deletion_timestamp is not None:
        return f"claim {before.key} got deleted in the meantime"
    if allocates and now.status.allocation is not None:
        return f"claim {before.key} got allocated elsewhere in the meantime"
    if not allocates and now.status.allocation is None:
        return f"claim {before.key} got deallocated elsewhere in the meantime"
    return None
