"""Claims of a pod that have no volume, and what keeps them from getting one, in more words than kube-scheduler's."""

from collections.abc import Iterator
from typing import Final

from extender.cluster.snapshot import Snapshot
from extender.decide.examine import Examination
from extender.objects.storage import PersistentVolume, PersistentVolumeClaim, StorageClass
from extender.volumes.claims import (
    BIND_COMPLETED,
    WAIT_FOR_FIRST_CONSUMER,
    claim_class,
    claim_keys,
    is_fully_bound,
    volume_class,
)

_PLUGIN: Final = "VolumeBinding"
_AVAILABLE: Final = "Available"


def unbound_claims(examination: Examination, cluster: Snapshot) -> list[str]:
    """A line for each thing that is wrong with a claim or its volumes; nothing if volumes do not keep the pod."""
    if not _refused(examination):
        return []
    pod = examination.pod
    lines: list[str] = []
    for _, _, key in claim_keys(pod.pod, pod.shape.volumes.claims):
        claim = cluster.find(PersistentVolumeClaim, key)
        if claim is not None and not is_fully_bound(claim):
            lines += [f"    {key}: {why}" for why in _obstacles(claim, cluster)]
    return ["", "  Claims without a volume", *lines] if lines else []


def _refused(examination: Examination) -> bool:
    before = examination.attempt.before.status if examination.attempt else None
    if before is not None:
        return before.plugin == _PLUGIN
    return any(_PLUGIN in verdict.refusals for verdict in examination.nodes.values())


def _obstacles(claim: PersistentVolumeClaim, cluster: Snapshot) -> Iterator[str]:
    if claim.spec.volume_name:
        yield f"names {claim.spec.volume_name} and is not marked as bound: annotate it with {BIND_COMPLETED}"
        return
    name = claim_class(claim)
    storage_class = cluster.find(StorageClass, name) if name else None
    if storage_class is None:
        yield f'there is no StorageClass "{name}"' if name else "it has no StorageClass, so it must be bound beforehand"
    elif storage_class.volume_binding_mode != WAIT_FOR_FIRST_CONSUMER:
        yield f'its StorageClass "{name}" has it bound before the pod is scheduled, and it is not'
    else:
        for volume in cluster.objects(PersistentVolume).values():
            if volume_class(volume) == name and volume.spec.claim_ref is None and volume.status.phase != _AVAILABLE:
                phase = volume.status.phase
                said = f"is {phase}" if phase else "has no status.phase"
                yield f"volume {volume.metadata.name} {said}, and only those that are {_AVAILABLE} are bound"
