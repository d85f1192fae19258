"""What must be written to bind the claims of a placed pod, and how to tell that it came about. Source: B097, B099."""

from dataclasses import dataclass
from typing import Any, Final

import msgspec
import numpy as np

from extender.cluster.pods import PodQuery
from extender.cluster.snapshot import NodeView, Snapshot
from extender.framework.points import Plan, Write
from extender.framework.verdict import SUCCESS, Status, error
from extender.objects.storage import PersistentVolume, PersistentVolumeClaim
from extender.volumes.assumptions import bound_volume, provisioned_claim
from extender.volumes.claims import SELECTED_NODE, is_fully_bound
from extender.volumes.finding import Found, reach_of
from extender.volumes.matching import NONE
from extender.volumes.places import Places
from extender.volumes.stock import Stock

_LATE: Final = error("binding volumes: context deadline exceeded")


@dataclass(frozen=True, slots=True)
class Binding:
    """A volume for a claim.

    Attributes:
        claim: who gets it.
        before: the volume as it is.
        after: as it must become; the very object if nothing is to be written.
    """

    claim: PersistentVolumeClaim
    before: PersistentVolume
    after: PersistentVolume


@dataclass(frozen=True, slots=True)
class Wish:
    """A claim that a volume shall be made for.

    Attributes:
        before: the claim as it is.
        after: with the node it is wanted on; the very object if it says so already.
    """

    before: PersistentVolumeClaim
    after: PersistentVolumeClaim


@dataclass(frozen=True, slots=True)
class Reservation:
    """What was set aside for a pod on a node."""

    node: str
    bindings: tuple[Binding, ...]
    wishes: tuple[Wish, ...]

    @property
    def volumes(self) -> tuple[PersistentVolume, ...]:
        """The volumes as they will be."""
        return tuple(binding.after for binding in self.bindings)

    @property
    def claims(self) -> tuple[PersistentVolumeClaim, ...]:
        """The claims as they will be."""
        return tuple(wish.after for wish in self.wishes)


def reservation(node: str, found: Found) -> Reservation:
    """What to set aside, *found* being about that one node."""
    bindings = []
    for claim, choice in zip(found.matches.claims, found.matches.choices, strict=True):
        if choice[0] != NONE:
            volume = found.matches.volumes[int(choice[0])]
            bindings.append(Binding(claim, volume, bound_volume(volume, claim)))
    claims = {provision.claim.key: provision.claim for provision in found.made if provision.places[0]}
    wishes = tuple(Wish(claim, provisioned_claim(claim, node)) for claim in claims.values())
    return Reservation(node, tuple(bindings), wishes)


def plan(pod: PodQuery, reserved: Reservation, stock: Stock, timeout: float) -> Plan:
    """The writes, then the wait until all claims are bound.

    The writes are merge patches that carry the version they were made from, so that they fail if the object has
    changed since.

    Args:
        pod: placed.
        reserved: for it.
        stock: of the plugin.
        timeout: in seconds.
    """
    writes = [_bind(each) for each in reserved.bindings if each.after is not each.before]
    writes += [_ask(each) for each in reserved.wishes if each.after is not each.before]

    def wait_for(cluster: Snapshot) -> Status | None:
        answer = _progress(pod, reserved, cluster, stock)
        return error(f"binding volumes: {answer}") if isinstance(answer, str) else SUCCESS if answer else None

    return Plan(tuple(writes), wait_for, timeout, _LATE)


def _bind(binding: Binding) -> Write:
    before, after = binding.before.metadata, binding.after.metadata
    body: dict[str, Any] = {"metadata": _meta(before.resource_version, before.annotations, after.annotations)}
    if binding.after.spec is not binding.before.spec:
        body["spec"] = {"claimRef": msgspec.to_builtins(binding.after.spec.claim_ref)}
    return Write("patch", "PersistentVolume", "", before.name, body)


def _ask(wish: Wish) -> Write:
    before, after = wish.before.metadata, wish.after.metadata
    body = {"metadata": _meta(before.resource_version, before.annotations, after.annotations)}
    return Write("patch", "PersistentVolumeClaim", before.namespace, before.name, body)


def _meta(version: str, before: dict[str, str], after: dict[str, str]) -> dict[str, Any]:
    added = {key: text for key, text in after.items() if before.get(key) != text}
    return {"resourceVersion": version, **({"annotations": added} if added else {})}


def _progress(pod: PodQuery, reserved: Reservation, cluster: Snapshot, stock: Stock) -> bool | str:
    """True: all claims are bound. False: not yet. A text: it will not come about, and why."""
    row = cluster.row(reserved.node)
    if row is None:
        return f'failed to get node "{reserved.node}": node "{reserved.node}" not found'
    if pod.uid not in cluster.pods_on(reserved.node):
        return f'pod does not exist any more: pod "{pod.pod.metadata.name}" not found'
    view = cluster.view(np.array([row], dtype=np.int64))
    for binding in reserved.bindings:
        answer = _bound(binding, view, stock)
        if answer is not True:
            return answer
    for wish in reserved.wishes:
        answer = _made(wish, reserved.node, view, stock)
        if answer is not True:
            return answer
    return True


def _bound(binding: Binding, view: NodeView, stock: Stock) -> bool | str:
    name = binding.before.metadata.name
    volume = view.snapshot.find(PersistentVolume, name)
    if volume is None:
        return f'failed to check binding: persistentvolumes "{name}" not found'
    claim = view.snapshot.find(PersistentVolumeClaim, binding.claim.key)
    if claim is None:
        return f'failed to check binding: persistentvolumeclaims "{binding.claim.key}" not found'
    if binding.after is not binding.before and _is_old(volume, binding.before):
        return False
    fault = _out_of_reach(volume, view, stock)
    if fault:
        return fault
    if volume.spec.claim_ref is None or not volume.spec.claim_ref.uid:
        return f'ClaimRef got reset for pv "{name}"'
    return is_fully_bound(claim)


def _made(wish: Wish, node: str, view: NodeView, stock: Stock) -> bool | str:
    claim = view.snapshot.find(PersistentVolumeClaim, wish.before.key)
    if claim is None:
        return f'failed to check provisioning pvc: persistentvolumeclaims "{wish.before.key}" not found'
    if wish.after is not wish.before and _is_old(claim, wish.before):
        return False
    annotations = claim.metadata.annotations
    if not annotations:
        return f'selectedNode annotation reset for PVC "{claim.metadata.name}"'
    if annotations.get(SELECTED_NODE) != node:
        return f'provisioning failed for PVC "{claim.metadata.name}"'
    if claim.spec.volume_name:
        volume = view.snapshot.find(PersistentVolume, claim.spec.volume_name)
        if volume is None:
            return False  # it may only not be known yet
        fault = _out_of_reach(volume, view, stock)
        if fault:
            return fault
    return is_fully_bound(claim)


def _is_old(known: PersistentVolume | PersistentVolumeClaim, before: PersistentVolume | PersistentVolumeClaim) -> bool:
    """Whether what is known is still what was there before our write."""
    return known.metadata.resource_version == before.metadata.resource_version


def _out_of_reach(volume: PersistentVolume, view: NodeView, stock: Stock) -> str:
    reach = reach_of(volume, view, Places(view), stock)
    if reach.unknown[0]:
        return f"failed to translate pv to csi: {reach.fault}"
    if reach.usable[0]:
        return ""
    name, node = volume.metadata.name, view.names[0]
    return f'pv "{name}" node affinity doesn\'t match node "{node}": no matching NodeSelectorTerms'
