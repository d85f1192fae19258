"""Assumed PVs and PVCs: changed objects that are not yet written to the API server.

An assumed object is valid while the stored object has the same resource version. A newer stored object replaces it.
"""

from dataclasses import dataclass, field

import msgspec

from extender.api.kinds.meta import ObjectReference
from extender.api.kinds.storage import PersistentVolume, PersistentVolumeClaim
from extender.cache.snapshot import Snapshot
from extender.volumes.claims import BOUND_BY_CONTROLLER, SELECTED_NODE


def is_volume_bound_to_claim(volume: PersistentVolume, claim: PersistentVolumeClaim) -> bool:
    """Return whether the claim reference of *volume* refers to *claim*. The reference may lack the uid."""
    claim_ref = volume.spec.claim_ref
    if claim_ref is None or (claim_ref.namespace, claim_ref.name) != (claim.metadata.namespace, claim.metadata.name):
        return False
    return not claim_ref.uid or claim_ref.uid == claim.metadata.uid


def bind_volume_to_claim(volume: PersistentVolume, claim: PersistentVolumeClaim) -> PersistentVolume:
    """Return *volume* bound to *claim*; the same object if it is already bound.

    Source: pkg/scheduler/framework/plugins/volumebinding/binder.go, volumeBinder.AssumePodVolumes (1.36).
    """
    meta, spec = volume.metadata, volume.spec
    annotations = meta.annotations
    if not is_volume_bound_to_claim(volume, claim) and BOUND_BY_CONTROLLER not in annotations:
        annotations = {**annotations, BOUND_BY_CONTROLLER: "yes"}
    ref = spec.claim_ref
    has_full_reference = ref is not None and (ref.namespace, ref.name, ref.uid) == (
        claim.metadata.namespace,
        claim.metadata.name,
        claim.metadata.uid,
    )
    if has_full_reference and annotations is meta.annotations:
        return volume
    return msgspec.structs.replace(
        volume,
        metadata=msgspec.structs.replace(meta, annotations=annotations),
        spec=spec if has_full_reference else msgspec.structs.replace(spec, claim_ref=_make_claim_reference(claim)),
    )


def _make_claim_reference(claim: PersistentVolumeClaim) -> ObjectReference:
    meta = claim.metadata
    return ObjectReference(
        api_version="v1",
        kind="PersistentVolumeClaim",
        namespace=meta.namespace,
        name=meta.name,
        uid=meta.uid,
        resource_version=meta.resource_version,
    )


def copy_with_selected_node(claim: PersistentVolumeClaim, node_name: str) -> PersistentVolumeClaim:
    """Return *claim* with the selected-node annotation set to *node_name*; the same object if it is already set.

    Source: pkg/scheduler/framework/plugins/volumebinding/binder.go, volumeBinder.AssumePodVolumes (1.36).
    """
    meta = claim.metadata
    if meta.annotations.get(SELECTED_NODE) == node_name:
        return claim
    annotations = {**meta.annotations, SELECTED_NODE: node_name}
    return msgspec.structs.replace(claim, metadata=msgspec.structs.replace(meta, annotations=annotations))


@dataclass(slots=True)
class AssumeCache:
    """Assumed PVs and PVCs. Each profile has its own cache.

    Attributes:
        volumes: assumed PVs by name.
        claims: assumed PVCs by `namespace/name`.
    """

    volumes: dict[str, PersistentVolume] = field(default_factory=dict)
    claims: dict[str, PersistentVolumeClaim] = field(default_factory=dict)

    def get_latest_volume(self, stored_volume: PersistentVolume) -> PersistentVolume:
        """Return the assumed version of *stored_volume* if it is valid, else *stored_volume*."""
        assumed_volume = self.volumes.get(stored_volume.metadata.name, stored_volume)
        return assumed_volume if has_same_version(assumed_volume, stored_volume) else stored_volume

    def get_latest_claim(self, stored_claim: PersistentVolumeClaim) -> PersistentVolumeClaim:
        """Return the assumed version of *stored_claim* if it is valid, else *stored_claim*."""
        assumed_claim = self.claims.get(stored_claim.key, stored_claim)
        return assumed_claim if has_same_version(assumed_claim, stored_claim) else stored_claim

    def assume(
        self, volumes: tuple[PersistentVolume, ...], claims: tuple[PersistentVolumeClaim, ...], snapshot: Snapshot
    ) -> str | None:
        """Assume the changed *volumes* and *claims*. On an error, assume none of them.

        Returns:
            None, or an error message if the resource version of a stored object differs.
        """
        self.volumes = {
            name: volume for name, volume in self.volumes.items() if _get_version_error(volume, snapshot) is None
        }
        self.claims = {key: claim for key, claim in self.claims.items() if _get_version_error(claim, snapshot) is None}
        assumed_objects: tuple[PersistentVolume | PersistentVolumeClaim, ...] = (*volumes, *claims)
        for assumed_object in assumed_objects:
            error = _get_version_error(assumed_object, snapshot)
            if error is not None:
                return error
        self.volumes.update({volume.metadata.name: volume for volume in volumes})
        self.claims.update({claim.key: claim for claim in claims})
        return None

    def restore(self, volumes: tuple[PersistentVolume, ...], claims: tuple[PersistentVolumeClaim, ...]) -> None:
        """Remove *volumes* and *claims* from the cache. An object that was assumed again later stays in the cache."""
        for volume in volumes:
            if self.volumes.get(volume.metadata.name) is volume:
                del self.volumes[volume.metadata.name]
        for claim in claims:
            if self.claims.get(claim.key) is claim:
                del self.claims[claim.key]


def has_same_version(
    first: PersistentVolume | PersistentVolumeClaim, second: PersistentVolume | PersistentVolumeClaim
) -> bool:
    """Return whether both objects have the same resource version."""
    return first.metadata.resource_version == second.metadata.resource_version


def _get_version_error(assumed_object: PersistentVolume | PersistentVolumeClaim, snapshot: Snapshot) -> str | None:
    key = assumed_object.key if isinstance(assumed_object, PersistentVolumeClaim) else assumed_object.metadata.name
    stored_object = snapshot.get_object(type(assumed_object), key)
    if stored_object is None:
        return f'"{key}" not found'
    if has_same_version(assumed_object, stored_object):
        return None
    versions = f"stored: {stored_object.metadata.resource_version}, assume: {assumed_object.metadata.resource_version}"
    return f'"{key}" is out of sync ({versions})'
