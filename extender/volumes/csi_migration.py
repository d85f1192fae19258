"""Translate volumes of in-tree drivers to volumes of the CSI drivers that replaced them.

Source: csi-translation-lib/translate.go, CSITranslator;
pkg/scheduler/framework/plugins/nodevolumelimits/csi.go, CSILimits.getCSIDriverInfo (1.36).
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final
from urllib.parse import unquote, urlsplit

import msgspec

from extender.api.kinds.affinity import NodeSelector, NodeSelectorRequirement, NodeSelectorTerm
from extender.api.kinds.storage import CSINode, PersistentVolume, PersistentVolumeSpec
from extender.api.kinds.volumes import Volume

ZONE: Final = "topology.kubernetes.io/zone"
REGION: Final = "topology.kubernetes.io/region"
BETA_ZONE: Final = "failure-domain.beta.kubernetes.io/zone"
BETA_REGION: Final = "failure-domain.beta.kubernetes.io/region"
ZONE_DELIMITER: Final = "__"
"""The separator between zones in the zone label of a volume."""

_MIGRATED_PLUGINS: Final = "storage.alpha.kubernetes.io/migrated-plugins"
_AWS_VOLUME: Final = re.compile(r"vol-[^/]*")
_GCE_UNKNOWN: Final = "UNSPECIFIED"


@dataclass(frozen=True, slots=True)
class InTreeDriver:
    """An in-tree volume driver.

    Attributes:
        name: the driver's name in storage classes.
        csi_driver: the name of the CSI driver that replaced it.
        source_field: the field of `Volume` and `PersistentVolumeSpec` for volumes of the driver.
        zone_label: the CSI driver's node label for zones; empty if the translation does not change node affinity.
        migrated: whether the scheduler translates volumes of the driver.
    """

    name: str
    csi_driver: str
    source_field: str
    zone_label: str = ""
    migrated: bool = True


IN_TREE_DRIVERS: Final = (
    InTreeDriver(
        "kubernetes.io/aws-ebs", "ebs.csi.aws.com", "aws_elastic_block_store", "topology.ebs.csi.aws.com/zone"
    ),
    InTreeDriver("kubernetes.io/gce-pd", "pd.csi.storage.gke.io", "gce_persistent_disk", "topology.gke.io/zone"),
    InTreeDriver("kubernetes.io/azure-disk", "disk.csi.azure.com", "azure_disk"),
    InTreeDriver(
        "kubernetes.io/cinder", "cinder.csi.openstack.org", "cinder", "topology.cinder.csi.openstack.org/zone"
    ),
    InTreeDriver("kubernetes.io/portworx-volume", "pxd.portworx.com", "portworx_volume"),
    InTreeDriver("kubernetes.io/azure-file", "file.csi.azure.com", "azure_file", migrated=False),
    InTreeDriver("kubernetes.io/vsphere-volume", "csi.vsphere.vmware.com", "vsphere_volume", migrated=False),
)
"""The in-tree drivers whose volumes can be translated."""

IN_TREE_DRIVERS_BY_NAME: Final = {driver.name: driver for driver in IN_TREE_DRIVERS}


class TranslationError(ValueError):
    """A volume cannot be translated to its CSI driver."""


def find_in_tree_driver(source: Volume | PersistentVolumeSpec) -> InTreeDriver | None:
    """Return the in-tree driver of a volume; None if its driver is not in `IN_TREE_DRIVERS`."""
    return next((driver for driver in IN_TREE_DRIVERS if getattr(source, driver.source_field) is not None), None)


def get_migrated_plugins(csi_node: CSINode) -> frozenset[str]:
    """Return the in-tree drivers that the CSINode lists as migrated."""
    return frozenset(csi_node.metadata.annotations.get(_MIGRATED_PLUGINS, "").split(",")) - {""}


def have_migrated_plugins_changed(old_csi_node: CSINode, new_csi_node: CSINode) -> bool:
    """Return whether the annotation of migrated plugins changed. An empty one is the same as none.

    Source: pkg/scheduler/framework/plugins/volumebinding/volume_binding.go,
    VolumeBinding.isSchedulableAfterCSINodeChange (1.36).
    """
    old_plugins, new_plugins = (
        csi_node.metadata.annotations.get(_MIGRATED_PLUGINS, "") for csi_node in (old_csi_node, new_csi_node)
    )
    return old_plugins != new_plugins


def get_inline_csi_handle(volume: Volume) -> str | None:
    """Return the CSI volume handle of an inline volume; None if its driver is not migrated.

    Raises:
        TranslationError: the volume cannot be translated.
    """
    if volume.gce_persistent_disk is not None:
        return _format_gce_handle("zones", _GCE_UNKNOWN, volume.gce_persistent_disk.pd_name)
    return _get_source_csi_handle(volume)


def get_persistent_volume_csi_handle(volume: PersistentVolume) -> str | None:
    """Return the CSI volume handle of a persistent volume; None if its driver is not migrated.

    Raises:
        TranslationError: the volume cannot be translated.
    """
    disk = volume.spec.gce_persistent_disk
    if disk is None:
        return _get_source_csi_handle(volume.spec)
    labels = volume.metadata.labels
    zones = (labels.get(BETA_ZONE) or labels.get(ZONE) or _GCE_UNKNOWN).split(ZONE_DELIMITER)
    if len(zones) == 1:
        return _format_gce_handle("zones", zones[0], disk.pd_name)
    return _format_gce_handle("regions", _get_gce_region(zones), disk.pd_name)


def _get_source_csi_handle(source: Volume | PersistentVolumeSpec) -> str | None:
    if source.aws_elastic_block_store is not None:
        return _get_aws_handle(source.aws_elastic_block_store.volume_id)
    if (azure_disk := source.azure_disk) is not None:
        if azure_disk.kind is not None and azure_disk.kind.casefold() != "managed":
            raise TranslationError(f"kind({azure_disk.kind}) is not supported in csi migration")
        return azure_disk.disk_uri
    if source.cinder is not None:
        return source.cinder.volume_id
    return None if source.portworx_volume is None else source.portworx_volume.volume_id


def _get_aws_handle(volume_id: str) -> str:
    if not volume_id.startswith("aws://"):
        return volume_id
    aws_volume_id = unquote(urlsplit(volume_id).path).strip("/")
    if _AWS_VOLUME.fullmatch(aws_volume_id) is None:
        raise TranslationError(
            f"failed to translate Kubernetes ID to EBS Volume ID Invalid format for AWS volume ({volume_id})"
        )
    return aws_volume_id


def _format_gce_handle(scope: str, location: str, disk: str) -> str:
    return f"projects/{_GCE_UNKNOWN}/{scope}/{location}/disks/{disk}"


def _get_gce_region(zones: list[str]) -> str:
    regions: set[str] = set()
    for zone in zones:
        segments = zone.split("-")
        if len(segments) != 3:
            raise TranslationError(
                "failed to get region from zones: "
                f"zone in unexpected format, expected: {{locale}}-{{region}}-{{zone}}, got: {zone}"
            )
        regions.add(f"{segments[0]}-{segments[1]}")
    if len(regions) != 1:
        raise TranslationError(
            f"failed to get region from zones: multiple or no regions gotten from zones, got: {sorted(regions)}"
        )
    return regions.pop()


def translate_node_affinity(volume: PersistentVolume, driver: InTreeDriver) -> NodeSelector | None:
    """Translate the node affinity of *volume* to the labels of the CSI driver; None matches all nodes.

    Requirements on the zone label are changed to the CSI driver's label. If there are none, the zones in the volume's
    labels become a requirement of every term. Requirements on the beta region label are changed to the stable label.
    """
    affinity = volume.spec.node_affinity
    required = affinity.required if affinity is not None else None
    if not driver.zone_label:
        return required
    terms = required.node_selector_terms if required is not None else ()
    zone_key, region_key = _get_zone_and_region_keys(volume, terms)
    if any(requirement.values for requirement in _find_requirements_with_key(terms, zone_key)):
        terms = _rename_key(terms, zone_key, driver.zone_label)
    else:
        zones = {name.strip() for name in volume.metadata.labels.get(zone_key, "").split(ZONE_DELIMITER)} - {""}
        if zones:
            requirement = NodeSelectorRequirement(key=driver.zone_label, operator="In", values=tuple(sorted(zones)))
            terms = tuple(
                msgspec.structs.replace(term, match_expressions=(*term.match_expressions, requirement))
                for term in terms or (NodeSelectorTerm(),)
            )
    if region_key == BETA_REGION and any(
        requirement.values for requirement in _find_requirements_with_key(terms, region_key)
    ):
        terms = _rename_key(terms, region_key, REGION)
    if required is None and not terms:
        return None
    return NodeSelector(node_selector_terms=terms)


def _find_requirements_with_key(terms: tuple[NodeSelectorTerm, ...], key: str) -> Iterator[NodeSelectorRequirement]:
    return (requirement for term in terms for requirement in term.match_expressions if requirement.key == key)


def _get_zone_and_region_keys(volume: PersistentVolume, terms: tuple[NodeSelectorTerm, ...]) -> tuple[str, str]:
    """Return the zone and region keys in the volume's node affinity, else in its labels, else the stable keys."""
    affinity_keys = {requirement.key for term in terms for requirement in term.match_expressions}
    for keys in (affinity_keys, volume.metadata.labels.keys()):
        if ZONE in keys:
            return ZONE, REGION
        if BETA_ZONE in keys:
            return BETA_ZONE, BETA_REGION
    return ZONE, REGION


def _rename_key(terms: tuple[NodeSelectorTerm, ...], old_key: str, new_key: str) -> tuple[NodeSelectorTerm, ...]:
    def rename(requirement: NodeSelectorRequirement) -> NodeSelectorRequirement:
        return msgspec.structs.replace(requirement, key=new_key) if requirement.key == old_key else requirement

    return tuple(
        msgspec.structs.replace(term, match_expressions=tuple(map(rename, term.match_expressions))) for term in terms
    )
