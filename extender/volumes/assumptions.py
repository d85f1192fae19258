"""Volumes and claims as they will be once what was promised to pods is written to the API server.

An assumption holds as long as the object it was made from is the newest known: whatever the API server says later is
right, and the assumption is forgotten. Source: B097.
"""

from dataclasses import dataclass, field

import msgspec

from extender.cluster.snapshot import Snapshot
from extender.objects.meta import ObjectReference
from extender.objects.storage import PersistentVolume, PersistentVolumeClaim
from extender.volumes.claims import BOUND_BY_CONTROLLER, SELECTED_NODE


def is_bound_to(volume: PersistentVolume, claim: PersistentVolumeClaim) -> bool:
    """Whether *volume* is meant for *claim*, by us, by its maker or by the system."""
    ref = volume.spec.claim_ref
    if ref is None or (ref.namespace, ref.name) != (claim.metadata.namespace, claim.metadata.name):
        return False
    return not ref.uid or ref.uid == claim.metadata.uid


def bound_volume(volume: PersistentVolume, claim: PersistentVolumeClaim) -> PersistentVolume:
    """*volume* bound to *claim*; the very object if it is that already. Source: B097."""
    meta, spec = volume.metadata, volume.spec
    annotations = meta.annotations
    if not is_bound_to(volume, claim) and BOUND_BY_CONTROLLER not in annotations:
        annotations = {**annotations, BOUND_BY_CONTROLLER: "yes"}
    ref = spec.claim_ref
    named = ref is not None and (ref.namespace, ref.name, ref.uid) == (
        claim.metadata.namespace,
        claim.metadata.name,
        claim.metadata.uid,
    )
    if named and annotations is meta.annotations:
        return volume
    return msgspec.structs.replace(
        volume,
        metadata=msgspec.structs.replace(meta, annotations=annotations),
        spec=spec if named else msgspec.structs.replace(spec, claim_ref=_reference(claim)),
    )


def _reference(claim: PersistentVolumeClaim) -> ObjectReference:
    meta = claim.metadata
    return ObjectReference(
        api_version="v1",
        kind="PersistentVolumeClaim",
        namespace=meta.namespace,
        name=meta.name,
        uid=meta.uid,
        resource_version=meta.resource_version,
    )


def provisioned_claim(claim: PersistentVolumeClaim, node: str) -> PersistentVolumeClaim:
    """*claim* with the wish that its volume be made for *node*; the very object if it says so already. Source: B097."""
    meta = claim.metadata
    if meta.annotations.get(SELECTED_NODE) == node:
        return claim
    annotations = {**meta.annotations, SELECTED_NODE: node}
    return msgspec.structs.replace(claim, metadata=msgspec.structs.replace(meta, annotations=annotations))


@dataclass(slots=True)
class Assumptions:
    """What was promised. Belongs to one plugin.

    Attributes:
        volumes: by name.
        claims: by `namespace/name`.
    """

    volumes: dict[str, PersistentVolume] = field(default_factory=dict)
    claims: dict[str, PersistentVolumeClaim] = field(default_factory=dict)

    def volume(self, known: PersistentVolume) -> PersistentVolume:
        """*known*, or what it was promised to be."""
        assumed = self.volumes.get(known.metadata.name)
        return assumed if assumed is not None and _same_version(assumed, known) else known

    def claim(self, known: PersistentVolumeClaim) -> PersistentVolumeClaim:
        """*known*, or what it was promised to be."""
        assumed = self.claims.get(known.key)
        return assumed if assumed is not None and _same_version(assumed, known) else known

    def make(
        self, volumes: tuple[PersistentVolume, ...], claims: tuple[PersistentVolumeClaim, ...], cluster: Snapshot
    ) -> str | None:
        """Assume that the objects are like this; if one has changed in *cluster*, none, and the answer says which."""
        self._forget_old(cluster)
        for volume in volumes:
            if (
                fault := _stale(volume.metadata.name, cluster.find(PersistentVolume, volume.metadata.name), volume)
            ) is not None:
                return fault
        for claim in claims:
            if (fault := _stale(claim.key, cluster.find(PersistentVolumeClaim, claim.key), claim)) is not None:
                return fault
        self.volumes.update({volume.metadata.name: volume for volume in volumes})
        self.claims.update({claim.key: claim for claim in claims})
        return None

    def take_back(self, volumes: tuple[PersistentVolume, ...], claims: tuple[PersistentVolumeClaim, ...]) -> None:
        """Forget that the objects were assumed like this; assumptions made by others since stay."""
        for volume in volumes:
            if self.volumes.get(volume.metadata.name) is volume:
                del self.volumes[volume.metadata.name]
        for claim in claims:
            if self.claims.get(claim.key) is claim:
                del self.claims[claim.key]

    def _forget_old(self, cluster: Snapshot) -> None:
        for name, volume in list(self.volumes.items()):
            if _stale(name, cluster.find(PersistentVolume, name), volume) is not None:
                del self.volumes[name]
        for key, claim in list(self.claims.items()):
            if _stale(key, cluster.find(PersistentVolumeClaim, key), claim) is not None:
                del self.claims[key]


def _same_version(
    assumed: PersistentVolume | PersistentVolumeClaim, known: PersistentVolume | PersistentVolumeClaim
) -> bool:
    return assumed.metadata.resource_version == known.metadata.resource_version


def _stale(
    key: str, known: PersistentVolume | PersistentVolumeClaim | None, assumed: PersistentVolume | PersistentVolumeClaim
) -> str | None:
    if known is None:
        return f'"{key}" not found'
    if _same_version(assumed, known):
        return None
    versions = f"stored: {known.metadata.resource_version}, assume: {assumed.metadata.resource_version}"
    return f'"{key}" is out of sync ({versions})'
