"""Describe why the unbound claims of a pod cannot be bound."""

from collections.abc import Iterator
from typing import Final

from extender.api.kinds.storage import PersistentVolume, PersistentVolumeClaim, StorageClass
from extender.cache.snapshot import Snapshot
from extender.cycle.explain_pod import PodExplanation
from extender.volumes.claims import (
    BIND_COMPLETED,
    WAIT_FOR_FIRST_CONSUMER,
    get_claim_class,
    get_volume_class,
    is_fully_bound,
    resolve_claim_uses,
)

_VOLUME_BINDING: Final = "VolumeBinding"
_AVAILABLE: Final = "Available"


def format_unbound_claim_lines(explanation: PodExplanation, snapshot: Snapshot) -> list[str]:
    """Return a line for each reason why a claim cannot be bound, or no lines if VolumeBinding accepts the pod."""
    if not _is_rejected_by_volume_binding(explanation):
        return []
    pod = explanation.pod
    lines: list[str] = []
    for _, _, key in resolve_claim_uses(pod.pod, pod.signature.volume_uses.claims):
        claim = snapshot.get_object(PersistentVolumeClaim, key)
        if claim is not None and not is_fully_bound(claim):
            lines += [f"    {key}: {obstacle}" for obstacle in _describe_obstacles(claim, snapshot)]
    return ["", "  Claims without a volume", *lines] if lines else []


def _is_rejected_by_volume_binding(explanation: PodExplanation) -> bool:
    status = explanation.diagnosis.pre_filter_run.status if explanation.diagnosis else None
    if status is not None:
        return status.plugin == _VOLUME_BINDING
    return any(_VOLUME_BINDING in node_status.rejections for node_status in explanation.nodes.values())


def _describe_obstacles(claim: PersistentVolumeClaim, snapshot: Snapshot) -> Iterator[str]:
    if claim.spec.volume_name:
        yield f"names {claim.spec.volume_name}, but is not marked as bound; annotate the claim with {BIND_COMPLETED}"
        return
    name = get_claim_class(claim)
    storage_class = snapshot.get_object(StorageClass, name) if name else None
    if storage_class is None:
        yield f'there is no StorageClass "{name}"' if name else "it has no StorageClass, so it must be bound beforehand"
    elif storage_class.volume_binding_mode != WAIT_FOR_FIRST_CONSUMER:
        yield f'its StorageClass "{name}" binds claims immediately, but this claim is not bound'
    else:
        for volume in snapshot.objects(PersistentVolume).values():
            if get_volume_class(volume) == name and volume.spec.claim_ref is None and volume.status.phase != _AVAILABLE:
                phase = volume.status.phase
                phase_text = f"is {phase}" if phase else "has no status.phase"
                yield f"volume {volume.metadata.name} {phase_text}, but only {_AVAILABLE} volumes are bound"
