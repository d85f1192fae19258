"""Claims: which ones a pod has, whether they are bound, what they ask for. Source: B091, B092, B095."""

from collections.abc import Iterator, Mapping
from typing import Final

from extender.cluster.volume_uses import ClaimUse
from extender.objects.pod import Pod
from extender.objects.quantity import ZERO, Quantity, parse
from extender.objects.record import ResourceList
from extender.objects.storage import PersistentVolume, PersistentVolumeClaim

SELECTED_NODE: Final = "volume.kubernetes.io/selected-node"
"""The annotation of a claim that names the node its volume shall be made for."""

BIND_COMPLETED: Final = "pv.kubernetes.io/bind-completed"
"""The annotation of a claim whose binding is finished."""

BOUND_BY_CONTROLLER: Final = "pv.kubernetes.io/bound-by-controller"
"""The annotation of a volume that was bound by the system, not by its maker."""

WAIT_FOR_FIRST_CONSUMER: Final = "WaitForFirstConsumer"

_BETA_CLASS: Final = "volume.beta.kubernetes.io/storage-class"
_STORAGE: Final = "storage"


def claim_keys(pod: Pod, uses: tuple[ClaimUse, ...]) -> Iterator[tuple[ClaimUse, str, str]]:
    """Each claim use of *pod* with the claim's name and its key (`namespace/name`), in the order of the volumes."""
    meta = pod.metadata
    for use in uses:
        name = use.claim_name(meta.name)
        yield use, name, f"{meta.namespace}/{name}"


def names_claim(pod: Pod, uses: tuple[ClaimUse, ...], claim: PersistentVolumeClaim) -> bool:
    """Whether *claim* is among the claims of *pod*, generated ones included."""
    if claim.metadata.namespace != pod.metadata.namespace:
        return False
    return any(name == claim.metadata.name for _, name, _ in claim_keys(pod, uses))


def not_found(name: str) -> str:
    """What is said of a claim that does not exist."""
    return f'persistentvolumeclaim "{name}" not found'


def ownership_fault(pod: Pod, claim: PersistentVolumeClaim) -> str | None:
    """Why *claim* cannot be the one made for a generic ephemeral volume of *pod*; None if it can. Source: B091."""
    controller = next((owner for owner in claim.metadata.owner_references if owner.controller), None)
    if controller is not None and controller.uid == pod.metadata.uid:
        return None
    return f"PVC {claim.key} was not created for pod {pod.key} (pod is not owner)"


def claim_class(claim: PersistentVolumeClaim) -> str:
    """The name of the claim's storage class; empty for none. The old annotation goes before the field."""
    return _class_of(claim.metadata.annotations, claim.spec.storage_class_name or "")


def volume_class(volume: PersistentVolume) -> str:
    """The name of the volume's storage class; empty for none. The old annotation goes before the field."""
    return _class_of(volume.metadata.annotations, volume.spec.storage_class_name)


def _class_of(annotations: Mapping[str, str], name: str) -> str:
    return annotations.get(_BETA_CLASS, name)


def is_fully_bound(claim: PersistentVolumeClaim) -> bool:
    """Whether the claim has its volume for good. Source: B092."""
    return bool(claim.spec.volume_name) and BIND_COMPLETED in claim.metadata.annotations


def requested_storage(claim: PersistentVolumeClaim) -> Quantity | None:
    """How much the claim asks for; None if it does not say."""
    return _storage(claim.spec.resources.requests)


def offered_storage(volume: PersistentVolume) -> Quantity:
    """How much the volume holds, 0 if it does not say."""
    return _storage(volume.spec.capacity) or ZERO


def _storage(amounts: ResourceList) -> Quantity | None:
    raw = amounts.get(_STORAGE)
    return None if raw is None else parse(raw)


def nano(quantity: Quantity) -> int:
    """The exact amount in thousand-millionths, to compare and sort by: no quantity is finer."""
    return int(quantity.unscaled * 10 ** (quantity.scale + 9)) if quantity.unscaled else 0
