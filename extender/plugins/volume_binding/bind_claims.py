"""Bind a pod's claims: build the API calls, and check that all claims are bound.

Source: pkg/scheduler/framework/plugins/volumebinding/binder.go, volumeBinder.AssumePodVolumes,
volumeBinder.BindPodVolumes (1.36).
"""

from collections.abc import Collection
from dataclasses import dataclass
from typing import Any, Final

import msgspec
import numpy as np

from extender.api.kinds.storage import PersistentVolume, PersistentVolumeClaim
from extender.cache.pod_info import PodInfo
from extender.cache.snapshot import NodeView, Snapshot
from extender.framework.api_plan import ApiCall, ApiPlan
from extender.framework.status import SUCCESS, Status, error_status
from extender.volumes.assume_cache import bind_volume_to_claim, copy_with_selected_node, has_same_version
from extender.volumes.claims import SELECTED_NODE, is_fully_bound
from extender.volumes.find_pod_volumes import PodVolumesResult, check_node_affinity
from extender.volumes.topology import TopologyIndex
from extender.volumes.volume_index import VolumeIndex
from extender.volumes.volume_matching import NO_VOLUME

_TIMED_OUT: Final = error_status("binding volumes: context deadline exceeded")


@dataclass(frozen=True, slots=True)
class BindingInfo:
    """A claim and the existing volume to bind it to.

    Attributes:
        original: the volume before the binding.
        assumed: the volume bound to the claim; the same object if it was bound already.
    """

    claim: PersistentVolumeClaim
    original: PersistentVolume
    assumed: PersistentVolume


@dataclass(frozen=True, slots=True)
class DynamicProvision:
    """A claim for which a volume is provisioned.

    Attributes:
        original: the claim before the binding.
        assumed: the claim with the selected node; the same object if it had that node already.
    """

    original: PersistentVolumeClaim
    assumed: PersistentVolumeClaim


@dataclass(frozen=True, slots=True)
class PodVolumes:
    """The volumes and claims reserved for a pod on a node."""

    node_name: str
    static_bindings: tuple[BindingInfo, ...]
    dynamic_provisions: tuple[DynamicProvision, ...]

    @property
    def volumes(self) -> tuple[PersistentVolume, ...]:
        """The assumed volumes."""
        return tuple(binding.assumed for binding in self.static_bindings)

    @property
    def claims(self) -> tuple[PersistentVolumeClaim, ...]:
        """The assumed claims."""
        return tuple(provision.assumed for provision in self.dynamic_provisions)


def make_pod_volumes(node_name: str, result: PodVolumesResult) -> PodVolumes:
    """Return the volumes and claims to reserve on a node. *result* contains only this node."""
    static_bindings = []
    for claim, choice in zip(result.matches.claims, result.matches.choices, strict=True):
        if choice[0] != NO_VOLUME:
            volume = result.matches.volumes[int(choice[0])]
            static_bindings.append(BindingInfo(claim, volume, bind_volume_to_claim(volume, claim)))
    claims = {provision.claim.key: provision.claim for provision in result.provisions if provision.node_mask[0]}
    dynamic_provisions = tuple(
        DynamicProvision(claim, copy_with_selected_node(claim, node_name)) for claim in claims.values()
    )
    return PodVolumes(node_name, tuple(static_bindings), dynamic_provisions)


def plan_binding(
    pod: PodInfo, pod_volumes: PodVolumes, snapshot: Snapshot, volume_index: VolumeIndex, timeout: float
) -> ApiPlan:
    """Return the API calls that bind the claims, and the condition that all claims are bound.

    The calls are merge patches with the object's resource version. They fail if the object has changed since Reserve.
    An object is not written if it has not changed and *snapshot* shows what would be written. Until then another pod
    may have assumed the same, but may still fail to write it. *timeout* is in seconds.
    """
    calls: list[ApiCall] = []
    written_keys: set[str] = set()
    for binding in pod_volumes.static_bindings:
        volume = snapshot.get_object(PersistentVolume, binding.original.metadata.name)
        is_bound = volume is not None and bind_volume_to_claim(volume, binding.claim) is volume
        if volume is None or not is_bound or not has_same_version(volume, binding.original):
            calls.append(_make_volume_patch(binding, volume or binding.original))
            written_keys.add(binding.original.metadata.name)
    for provision in pod_volumes.dynamic_provisions:
        claim = snapshot.get_object(PersistentVolumeClaim, provision.original.key)
        has_node = claim is not None and copy_with_selected_node(claim, pod_volumes.node_name) is claim
        if claim is None or not has_node or not has_same_version(claim, provision.original):
            calls.append(_make_claim_patch(provision, claim or provision.original))
            written_keys.add(provision.original.key)

    def wait_condition(snapshot: Snapshot) -> Status | None:
        outcome = _check_bindings(pod, pod_volumes, snapshot, volume_index, written_keys)
        return error_status(f"binding volumes: {outcome}") if isinstance(outcome, str) else SUCCESS if outcome else None

    return ApiPlan(tuple(calls), wait_condition, timeout, _TIMED_OUT)


def _make_volume_patch(binding: BindingInfo, stored_volume: PersistentVolume) -> ApiCall:
    original, assumed = binding.original.metadata, binding.assumed.metadata
    stored_annotations = stored_volume.metadata.annotations
    body: dict[str, Any] = {
        "metadata": _make_metadata_patch(original.resource_version, stored_annotations, assumed.annotations)
    }
    if binding.assumed.spec.claim_ref != stored_volume.spec.claim_ref:
        body["spec"] = {"claimRef": msgspec.to_builtins(binding.assumed.spec.claim_ref)}
    return ApiCall("patch", "PersistentVolume", "", original.name, body)


def _make_claim_patch(provision: DynamicProvision, stored_claim: PersistentVolumeClaim) -> ApiCall:
    original, assumed = provision.original.metadata, provision.assumed.metadata
    stored_annotations = stored_claim.metadata.annotations
    body = {"metadata": _make_metadata_patch(original.resource_version, stored_annotations, assumed.annotations)}
    return ApiCall("patch", "PersistentVolumeClaim", original.namespace, original.name, body)


def _make_metadata_patch(resource_version: str, original: dict[str, str], assumed: dict[str, str]) -> dict[str, Any]:
    changed_annotations = {key: text for key, text in assumed.items() if original.get(key) != text}
    return {
        "resourceVersion": resource_version,
        **({"annotations": changed_annotations} if changed_annotations else {}),
    }


def _check_bindings(
    pod: PodInfo,
    pod_volumes: PodVolumes,
    snapshot: Snapshot,
    volume_index: VolumeIndex,
    written_keys: Collection[str],
) -> bool | str:
    """Return True if all claims are bound, False if some are not bound yet, or an error message if binding failed.

    *written_keys* are those of the volumes and claims that PreBind has written.
    """
    row = snapshot.row(pod_volumes.node_name)
    if row is None:
        return f'failed to get node "{pod_volumes.node_name}": node "{pod_volumes.node_name}" not found'
    if pod.uid not in snapshot.pods_on(pod_volumes.node_name):
        return f'pod does not exist any more: pod "{pod.pod.metadata.name}" not found'
    view = snapshot.view(np.array([row], dtype=np.int64))
    for binding in pod_volumes.static_bindings:
        outcome = _check_binding(binding, view, volume_index, written_keys)
        if outcome is not True:
            return outcome
    for provision in pod_volumes.dynamic_provisions:
        outcome = _check_provision(provision, pod_volumes.node_name, view, volume_index, written_keys)
        if outcome is not True:
            return outcome
    return True


def _check_binding(
    binding: BindingInfo, view: NodeView, volume_index: VolumeIndex, written_keys: Collection[str]
) -> bool | str:
    name = binding.original.metadata.name
    volume = view.snapshot.get_object(PersistentVolume, name)
    if volume is None:
        return f'failed to check binding: persistentvolumes "{name}" not found'
    claim = view.snapshot.get_object(PersistentVolumeClaim, binding.claim.key)
    if claim is None:
        return f'failed to check binding: persistentvolumeclaims "{binding.claim.key}" not found'
    if name in written_keys and has_same_version(volume, binding.original):
        return False  # the patch is not observed yet
    message = _check_node_affinity(volume, view, volume_index)
    if message:
        return message
    if volume.spec.claim_ref is None or not volume.spec.claim_ref.uid:
        return f'ClaimRef got reset for pv "{name}"'
    if is_fully_bound(claim) and claim.spec.volume_name != name:
        # A patch of an earlier attempt was executed, too. kube-scheduler would bind the pod.
        return f'pvc "{claim.metadata.name}" is bound to pv "{claim.spec.volume_name}" instead of pv "{name}"'
    return is_fully_bound(claim)


def _check_provision(
    provision: DynamicProvision,
    node_name: str,
    view: NodeView,
    volume_index: VolumeIndex,
    written_keys: Collection[str],
) -> bool | str:
    claim = view.snapshot.get_object(PersistentVolumeClaim, provision.original.key)
    if claim is None:
        return f'failed to check provisioning pvc: persistentvolumeclaims "{provision.original.key}" not found'
    if provision.original.key in written_keys and has_same_version(claim, provision.original):
        return False  # the patch is not observed yet
    annotations = claim.metadata.annotations
    if not annotations:
        return f'selectedNode annotation reset for PVC "{claim.metadata.name}"'
    if annotations.get(SELECTED_NODE) != node_name:
        return f'provisioning failed for PVC "{claim.metadata.name}"'
    if claim.spec.volume_name:
        volume = view.snapshot.get_object(PersistentVolume, claim.spec.volume_name)
        if volume is None:
            return False  # the informer may not have it yet
        message = _check_node_affinity(volume, view, volume_index)
        if message:
            return message
    return is_fully_bound(claim)


def _check_node_affinity(volume: PersistentVolume, view: NodeView, volume_index: VolumeIndex) -> str:
    affinity_result = check_node_affinity(volume, view, TopologyIndex(view), volume_index)
    if affinity_result.undecided[0]:
        return f"failed to translate pv to csi: {affinity_result.error}"
    if affinity_result.matches[0]:
        return ""
    name, node_name = volume.metadata.name, view.names[0]
    return f'pv "{name}" node affinity doesn\'t match node "{node_name}": no matching NodeSelectorTerms'
