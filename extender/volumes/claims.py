"""Names, binding state, class and size of PVCs.

Source: component-helpers/storage/volume/pv_helpers.go, FindMatchingVolume (1.36).
"""

from collections.abc import Iterator, Mapping
from typing import Final

from extender.api.kinds.meta import ResourceList
from extender.api.kinds.pod import Pod
from extender.api.kinds.storage import PersistentVolume, PersistentVolumeClaim
from extender.api.quantity import ZERO, Quantity, parse
from extender.basics.visible_text import quote
from extender.cache.tables.volume_uses import PVCUse

SELECTED_NODE: Final = "volume.kubernetes.io/selected-node"
"""The annotation of a claim that names the node to provision its volume for."""

BIND_COMPLETED: Final = "pv.kubernetes.io/bind-completed"
"""The annotation of a fully bound claim."""

BOUND_BY_CONTROLLER: Final = "pv.kubernetes.io/bound-by-controller"
"""The annotation of a volume that a controller or scheduler bound to its claim."""

WAIT_FOR_FIRST_CONSUMER: Final = "WaitForFirstConsumer"

NO_PROVISIONER: Final = "kubernetes.io/no-provisioner"
"""The provisioner of classes whose volumes exist before their claims."""

_BETA_CLASS: Final = "volume.beta.kubernetes.io/storage-class"
_STORAGE: Final = "storage"


def resolve_claim_uses(pod: Pod, uses: tuple[PVCUse, ...]) -> Iterator[tuple[PVCUse, str, str]]:
    """Yield each claim use of *pod* with the claim's name and key (`namespace/name`), in the order of the volumes."""
    meta = pod.metadata
    for use in uses:
        name = use.get_claim_name(meta.name)
        yield use, name, f"{meta.namespace}/{name}"


def uses_claim(pod: Pod, uses: tuple[PVCUse, ...], claim: PersistentVolumeClaim) -> bool:
    """Return whether *pod* uses *claim*, directly or through an ephemeral volume."""
    if claim.metadata.namespace != pod.metadata.namespace:
        return False
    return any(name == claim.metadata.name for _, name, _ in resolve_claim_uses(pod, uses))


def format_not_found_message(name: str) -> str:
    """Return the error message for a claim that does not exist. The API server accepts any text as its name.

    Source: apimachinery/pkg/api/errors/errors.go, NewNotFound (1.36).
    """
    return f"persistentvolumeclaim {quote(name)} not found"


def get_ownership_error(pod: Pod, claim: PersistentVolumeClaim) -> str | None:
    """Return an error message if *claim* was not created for an ephemeral volume of *pod*, else None.

    Source: pkg/scheduler/framework/plugins/volumebinding/volume_binding.go, VolumeBinding.podHasPVCs (1.36).
    """
    if claim.metadata.is_controlled_by(pod.metadata.uid):
        return None
    return f"PVC {claim.key} was not created for pod {pod.key} (pod is not owner)"


def get_claim_class(claim: PersistentVolumeClaim) -> str:
    """Return the name of the claim's storage class, empty if it has none. The beta annotation overrides the field."""
    return _get_storage_class_name(claim.metadata.annotations, claim.spec.storage_class_name or "")


def get_volume_class(volume: PersistentVolume) -> str:
    """Return the name of the volume's storage class, empty if it has none. The beta annotation overrides the field."""
    return _get_storage_class_name(volume.metadata.annotations, volume.spec.storage_class_name)


def _get_storage_class_name(annotations: Mapping[str, str], name: str) -> str:
    return annotations.get(_BETA_CLASS, name)


def is_fully_bound(claim: PersistentVolumeClaim) -> bool:
    """Return whether the claim has a volume and its binding is complete.

    Source: pkg/scheduler/framework/plugins/volumebinding/binder.go, volumeBinder.GetPodVolumeClaims (1.36).
    """
    return bool(claim.spec.volume_name) and BIND_COMPLETED in claim.metadata.annotations


def get_requested_storage(claim: PersistentVolumeClaim) -> Quantity | None:
    """Return the storage that the claim requests; None if it requests none."""
    return _parse_storage(claim.spec.resources.requests)


def get_volume_capacity(volume: PersistentVolume) -> Quantity:
    """Return the storage capacity of the volume; 0 if it states none."""
    return _parse_storage(volume.spec.capacity) or ZERO


def _parse_storage(amounts: ResourceList) -> Quantity | None:
    quantity_text = amounts.get(_STORAGE)
    return None if quantity_text is None else parse(quantity_text)


def to_nanos(quantity: Quantity) -> int:
    """Return the exact amount in nano units, the finest unit of a quantity, for comparison and sorting."""
    return int(quantity.unscaled * 10 ** (quantity.scale + 9)) if quantity.unscaled else 0
