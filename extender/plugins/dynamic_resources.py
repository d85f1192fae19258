"""DynamicResources: pods that claim devices wait for their claims. Allocating devices is not part of this yet.

What is here: the check of a pod's claims before it is queued, and all answers for pods that claim nothing. What is
not: choosing devices. For a pod with claims, or with an extended resource that a device class serves, the attempt
therefore ends as an error that says so; no node is chosen and none is called unfit.

**Refuses** for good a pod whose claims are not in order: not created yet, missing, being deleted, or made for another
pod. Not asked for pods without claims.

**Scores** 0 for every node for pods without claims; it is never skipped.

**Undone by** changes of claims, of the pod's generated claims, of device classes, of resource slices, and nodes that
come or change their labels or allocatable resources.

**Options** `filterTimeout`: how long the search for devices on one node may take, `10s`; `0s` is without limit.
`bindingTimeout`: how long to wait for binding conditions, `10m0s`, at least `1s`. Each exists only while its feature
gates are on (`DRASchedulerFilterTimeout`; `DRADeviceBindingConditions` and `DRAResourceClaimDeviceStatus`).

Source: B109 to B111, B115, B116, B125, B126, G043.
"""

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

import msgspec
import numpy as np

from extender.cluster.arrays import IntArray
from extender.cluster.device_classes import classes_by_resource
from extender.cluster.pods import PodQuery
from extender.cluster.snapshot import NodeView, Snapshot
from extender.config import durations
from extender.config.faults import Fault
from extender.config.gates import FeatureGates
from extender.config.paths import child
from extender.config.validate import invalid
from extender.decide.rescue import Attempt
from extender.framework.changes import Action, Change, Hint, Registration, Resource
from extender.framework.normalize import in_proportion
from extender.framework.points import SKIP, PostFiltered, PreFiltered
from extender.framework.setup import Setup
from extender.framework.verdict import Code, Reason, Rejection, Status, error, unresolvable, unschedulable
from extender.objects.devices import DeviceClass, ResourceClaim
from extender.objects.pod import Pod, PodResourceClaim
from extender.objects.requests import is_dra_extended

_NOTHING_TO_FREE = PostFiltered(unschedulable("no new claims to deallocate"))
_DISABLED = PostFiltered(unschedulable("plugin disabled"))
_NOT_ASKED = PostFiltered(error("not found"))
_UNPREPARED = Reason("not found", Code.ERROR)
_UNSUPPORTED = error("DynamicResources: allocating devices is not supported; the pod claims some")


class DynamicResourcesOptions(msgspec.Struct, frozen=True, rename="camel"):
    """Options of DynamicResources: Go durations, null where the feature gate is off. Source: B126, G043."""

    filter_timeout: str | None = None
    binding_timeout: str | None = None

    @classmethod
    def defaulted(cls, raw: Mapping[str, Any], gates: FeatureGates) -> Mapping[str, Any]:
        """*raw* with the durations in their shortest form, and the defaults of the gates that are on."""
        body = dict(raw)
        for key, default, on in (
            ("filterTimeout", "10s", "DRASchedulerFilterTimeout" in gates),
            ("bindingTimeout", "10m0s", _waits_for_conditions(gates)),
        ):
            written = body.get(key)
            if written is None and on:
                body[key] = default
            elif isinstance(written, str):
                try:
                    body[key] = durations.render(durations.parse(written))
                except ValueError:
                    continue  # `faults` says what is wrong with it
        return body

    def faults(self, path: str, gates: FeatureGates) -> list[Fault]:
        """Source: G043."""
        found: list[Fault] = []
        for key, written, least, too_short, on, forbidden in (
            (
                "filterTimeout",
                self.filter_timeout,
                0.0,
                "must be zero or positive",
                "DRASchedulerFilterTimeout" in gates,
                "DRASchedulingFilterTimeout feature gate is disabled",
            ),
            (
                "bindingTimeout",
                self.binding_timeout,
                1.0,
                "must be at least 1 second",
                _waits_for_conditions(gates),
                "DRADeviceBindingConditions or DRAResourceClaimDeviceStatus feature gate is disabled",
            ),
        ):
            where = child(path, key)
            if written is None:
                continue
            try:
                seconds = durations.parse(written)
            except ValueError as fault:
                found.append(Fault(where, f'{fault}: write it like "1m30s" or "100ms"'))
                continue
            if not on:
                found.append(Fault(where, f"Forbidden: {forbidden}"))
            elif seconds < least:
                found.append(invalid(where, written, too_short))
        return found


def _waits_for_conditions(gates: FeatureGates) -> bool:
    return "DRADeviceBindingConditions" in gates and "DRAResourceClaimDeviceStatus" in gates


class DynamicResources:
    """Knows the claims of pods; does not allocate (see the module)."""

    name: ClassVar[str] = "DynamicResources"
    options: ClassVar[type[DynamicResourcesOptions]] = DynamicResourcesOptions

    def __init__(self, setup: Setup[DynamicResourcesOptions]) -> None:
        self._on = "DynamicResourceAllocation" in setup.gates
        self._serves_extended = "DRAExtendedResource" in setup.gates

    def pre_enqueue(self, pod: PodQuery, cluster: Snapshot) -> Status | None:
        """Source: B110."""
        if not self._on or not pod.spec.resource_claims:
            return None
        found = _claims(pod.pod, cluster)
        return found if isinstance(found, Status) else None

    def pre_filter(self, pod: PodQuery, cluster: Snapshot) -> PreFiltered:
        """Skips pods that claim nothing. Source: B111."""
        if not self._on:
            return SKIP
        claims = _claims(pod.pod, cluster) if pod.spec.resource_claims else ()
        if isinstance(claims, Status):
            return PreFiltered(status=claims)
        if claims or (self._serves_extended and _wants_served_resource(pod, cluster)):
            return PreFiltered(status=_UNSUPPORTED)
        return SKIP

    def filter(self, pod: PodQuery, nodes: NodeView, notes: Any) -> Sequence[Rejection]:  # noqa: ARG002
        """No pod comes this far but where `pre_filter` is switched off; as upstream, every node is an error then."""
        return (Rejection(np.ones(len(nodes), dtype=np.bool_), _UNPREPARED),) if self._on else ()

    def post_filter(self, pod: PodQuery, cluster: Snapshot, attempt: Attempt) -> PostFiltered:  # noqa: ARG002
        """A pod that claims nothing has nothing to give back. Source: B115.

        As upstream, it is an error if the attempt ended before `pre_filter` was asked; preemption is not tried then.
        """
        if not self._on:
            return _DISABLED
        before = attempt.feasibility.before
        asked = self.name in before.skipped or self.name in before.notes
        return _NOTHING_TO_FREE if asked else _NOT_ASKED

    def score(self, pod: PodQuery, nodes: NodeView, notes: Any) -> IntArray:  # noqa: ARG002  the point's signature
        """0: no alternative of a request was chosen. Source: B116."""
        return np.zeros(len(nodes), dtype=np.int64)

    def normalize(self, pod: PodQuery, raw: IntArray, nodes: NodeView, notes: Any) -> IntArray:  # noqa: ARG002
        """Source: B116."""
        return in_proportion(raw)

    def events(self) -> Sequence[Registration]:
        """Source: B125."""
        if not self._on:
            return ()
        changed = Action.ADD | Action.UPDATE
        node = Action.ADD | Action.UPDATE_NODE_LABEL | Action.UPDATE_NODE_ALLOCATABLE
        return (
            Registration(Resource.NODE, node),
            Registration(Resource.RESOURCE_CLAIM, changed, _after_claim_change),
            Registration(Resource.POD, Action.UPDATE_POD_GENERATED_RESOURCE_CLAIM, _after_pod_change),
            Registration(Resource.DEVICE_CLASS, changed),
            Registration(Resource.RESOURCE_SLICE, changed),
        )


def _claims(pod: Pod, cluster: Snapshot) -> tuple[ResourceClaim, ...] | Status:
    """The claims of *pod*, or why they are not in order. Source: B110."""
    found: list[ResourceClaim] = []
    for entry in pod.spec.resource_claims:
        name, generated = _claim_name(pod, entry)
        if isinstance(name, Status):
            return name
        if name is None:
            continue
        key = f"{pod.metadata.namespace}/{name}"
        claim = cluster.find(ResourceClaim, key)
        if claim is None:
            return unresolvable(f'could not find ResourceClaim "{key}"')
        if claim.metadata.deletion_timestamp is not None:
            return unresolvable(f'resourceclaim "{name}" is being deleted')
        if generated and not _is_controlled(claim, pod):
            return unresolvable(f"ResourceClaim {key} was not created for Pod {pod.key} (Pod is not owner)")
        found.append(claim)
    return tuple(found)


def _claim_name(pod: Pod, entry: PodResourceClaim) -> tuple[str | Status | None, bool]:
    """The name of the claim (None: none is needed), and whether it was generated for the pod."""
    if entry.resource_claim_name is not None:
        return entry.resource_claim_name, False
    meta = pod.metadata
    if entry.resource_claim_template_name is None:
        what = f'pod "{meta.namespace}/{meta.name}", spec.resourceClaim "{entry.name}"'
        return unresolvable(f"{what}: none of the supported fields are set"), False
    for status in pod.status.resource_claim_statuses:
        if status.name == entry.name:
            return status.resource_claim_name, True
    return unresolvable(f'pod "{meta.namespace}/{meta.name}": ResourceClaim not created yet'), True


def _is_controlled(claim: ResourceClaim, pod: Pod) -> bool:
    controller = next((owner for owner in claim.metadata.owner_references if owner.controller), None)
    return controller is not None and controller.uid == pod.metadata.uid


def _wants_served_resource(pod: PodQuery, cluster: Snapshot) -> bool:
    """Whether a device class serves an extended resource that the pod asks for. Source: B034, B114."""
    names = cluster.vocabulary.resources
    asked = {name for number, _ in pod.shape.asked if is_dra_extended(name := names[number])}
    return bool(asked) and not asked.isdisjoint(classes_by_resource(cluster.objects(DeviceClass).values()))


def _after_claim_change(pod: PodQuery, change: Change) -> Hint:
    """A pod whose other claims are not in order is woken too; `pre_enqueue` keeps it out then."""
    old: ResourceClaim | None = change.old
    new: ResourceClaim = change.new
    if old is not None and old.status.allocation is not None and new.status.allocation is None:
        return Hint.QUEUE
    names = [_claim_name(pod.pod, entry)[0] for entry in pod.spec.resource_claims]
    if new.metadata.namespace != pod.namespace or new.metadata.name not in names:
        return Hint.SKIP
    return Hint.SKIP if old is not None and old.status == new.status else Hint.QUEUE


def _after_pod_change(pod: PodQuery, change: Change) -> Hint:
    """Whether the claims are in order is asked again by `pre_enqueue`."""
    return Hint.QUEUE if change.new.metadata.uid == pod.pod.metadata.uid else Hint.SKIP
