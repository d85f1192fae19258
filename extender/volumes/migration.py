"""Volumes of drivers that Kubernetes once contained, as the CSI drivers see them that took over.

Source: B087 and the translation rules of Kubernetes 1.36 (csi-translation-lib).
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final
from urllib.parse import unquote, urlsplit

import msgspec

from extender.objects.affinity import NodeSelector, NodeSelectorRequirement, NodeSelectorTerm
from extender.objects.storage import CSINode, PersistentVolume, PersistentVolumeSpec
from extender.objects.volumes import AzureDiskVolumeSource, Volume

ZONE: Final = "topology.kubernetes.io/zone"
REGION: Final = "topology.kubernetes.io/region"
BETA_ZONE: Final = "failure-domain.beta.kubernetes.io/zone"
BETA_REGION: Final = "failure-domain.beta.kubernetes.io/region"
ZONE_DELIMITER: Final = "__"
"""Between the zones of a volume that lies in several."""

_MIGRATED_PLUGINS: Final = "storage.alpha.kubernetes.io/migrated-plugins"
_AWS_VOLUME: Final = re.compile(r"vol-[^/]*")
_GCE_UNKNOWN: Final = "UNSPECIFIED"


@dataclass(frozen=True, slots=True)
class InTreeDriver:
    """A driver that Kubernetes once contained.

    Attributes:
        name: of the old driver, as storage classes say it.
        driver: the CSI driver that took over.
        field: where volumes of it are described.
        zone_label: the node label that the CSI driver keeps zones in; empty if it leaves node affinity alone.
        migrated: the scheduler looks through the migration.
    """

    name: str
    driver: str
    field: str
    zone_label: str = ""
    migrated: bool = True


DRIVERS: Final = (
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
"""The drivers that volumes can be translated from."""

BY_NAME: Final = {driver.name: driver for driver in DRIVERS}


class TranslationError(ValueError):
    """A volume that has no counterpart in its CSI driver; says why."""


def in_tree_driver(source: Volume | PersistentVolumeSpec) -> InTreeDriver | None:
    """The old driver of a volume; None if it is none of `DRIVERS`."""
    return next((driver for driver in DRIVERS if getattr(source, driver.field) is not None), None)


def migrated_plugins(csi_node: CSINode) -> frozenset[str]:
    """The old drivers that a node says it has migrated."""
    return frozenset(csi_node.metadata.annotations.get(_MIGRATED_PLUGINS, "").split(",")) - {""}


def migrated_plugins_changed(old: CSINode, new: CSINode) -> bool:
    """Whether a node says something else about what it has migrated than before. Source: B101."""
    return old.metadata.annotations.get(_MIGRATED_PLUGINS) != new.metadata.annotations.get(_MIGRATED_PLUGINS)


def inline_handle(volume: Volume) -> str | None:
    """How the CSI driver calls the disk of *volume*, which a pod names itself; None if it is of no migrated driver.

    Raises:
        TranslationError: the disk is unknown to the CSI driver.
    """
    if volume.gce_persistent_disk is not None:
        return _gce_handle("zones", _GCE_UNKNOWN, volume.gce_persistent_disk.pd_name)
    return _handle(volume)


def volume_handle(volume: PersistentVolume) -> str | None:
    """How the CSI driver calls the disk of *volume*; None if it is of no migrated driver.

    Raises:
        TranslationError: the disk is unknown to the CSI driver.
    """
    disk = volume.spec.gce_persistent_disk
    if disk is None:
        return _handle(volume.spec)
    labels = volume.metadata.labels
    zones = (labels.get(BETA_ZONE) or labels.get(ZONE) or _GCE_UNKNOWN).split(ZONE_DELIMITER)
    if len(zones) == 1:
        return _gce_handle("zones", zones[0], disk.pd_name)
    return _gce_handle("regions", _gce_region(zones), disk.pd_name)


def _handle(source: Volume | PersistentVolumeSpec) -> str | None:
    if source.aws_elastic_block_store is not None:
        return _aws_handle(source.aws_elastic_block_store.volume_id)
    if source.azure_disk is not None:
        return _azure_handle(source.azure_disk)
    if source.cinder is not None:
        return source.cinder.volume_id
    return None if source.portworx_volume is None else source.portworx_volume.volume_id


def _aws_handle(volume_id: str) -> str:
    if not volume_id.startswith("aws://"):
        return volume_id
    name = unquote(urlsplit(volume_id).path).strip("/")
    if _AWS_VOLUME.fullmatch(name) is None:
        raise TranslationError(
            f"failed to translate Kubernetes ID to EBS Volume ID Invalid format for AWS volume ({volume_id})"
        )
    return name


def _azure_handle(disk: AzureDiskVolumeSource) -> str:
    if disk.kind is not None and disk.kind.casefold() != "managed":
        raise TranslationError(f"kind({disk.kind}) is not supported in csi migration")
    return disk.disk_uri


def _gce_handle(scope: str, place: str, disk: str) -> str:
    return f"projects/{_GCE_UNKNOWN}/{scope}/{place}/disks/{disk}"


def _gce_region(zones: list[str]) -> str:
    regions: set[str] = set()
    for zone in zones:
        parts = zone.split("-")
        if len(parts) != 3:
            raise TranslationError(
                "failed to get region from zones: "
                f"zone in unexpected format, expected: {{locale}}-{{region}}-{{zone}}, got: {zone}"
            )
        regions.add(f"{parts[0]}-{parts[1]}")
    if len(regions) != 1:
        raise TranslationError(
            f"failed to get region from zones: multiple or no regions gotten from zones, got: {sorted(regions)}"
        )
    return regions.pop()


def translated_affinity(volume: PersistentVolume, driver: InTreeDriver) -> NodeSelector | None:
    """The nodes that *volume* can be used on, in the labels of the CSI driver; None: all nodes.

    Conditions on the zone are put to the CSI driver's own label. Without any, the zone labels of the volume itself
    become a condition of every term. Conditions on the region lose the old beta label.
    """
    affinity = volume.spec.node_affinity
    required = affinity.required if affinity is not None else None
    if not driver.zone_label:
        return required
    terms = required.node_selector_terms if required is not None else ()
    zone, region = _labels_in_use(volume, terms)
    if any(rule.values for rule in _rules(terms, zone)):
        terms = _renamed(terms, zone, driver.zone_label)
    else:
        zones = {part.strip() for part in volume.metadata.labels.get(zone, "").split(ZONE_DELIMITER)} - {""}
        if zones:
            rule = NodeSelectorRequirement(key=driver.zone_label, operator="In", values=tuple(sorted(zones)))
            terms = tuple(
                msgspec.structs.replace(term, match_expressions=(*term.match_expressions, rule))
                for term in terms or (NodeSelectorTerm(),)
            )
    if region == BETA_REGION and any(rule.values for rule in _rules(terms, region)):
        terms = _renamed(terms, region, REGION)
    if required is None and not terms:
        return None
    return NodeSelector(node_selector_terms=terms)


def _rules(terms: tuple[NodeSelectorTerm, ...], key: str) -> Iterator[NodeSelectorRequirement]:
    return (rule for term in terms for rule in term.match_expressions if rule.key == key)


def _labels_in_use(volume: PersistentVolume, terms: tuple[NodeSelectorTerm, ...]) -> tuple[str, str]:
    """The labels of zone and region: those that the volume's node affinity uses, or else its labels."""
    for keys in ({rule.key for term in terms for rule in term.match_expressions}, volume.metadata.labels.keys()):
        if ZONE in keys:
            return ZONE, REGION
        if BETA_ZONE in keys:
            return BETA_ZONE, BETA_REGION
    return ZONE, REGION


def _renamed(terms: tuple[NodeSelectorTerm, ...], old: str, new: str) -> tuple[NodeSelectorTerm, ...]:
    def rule_of(rule: NodeSelectorRequirement) -> NodeSelectorRequirement:
        return msgspec.structs.replace(rule, key=new) if rule.key == old else rule

    return tuple(
        msgspec.structs.replace(term, match_expressions=tuple(rule_of(rule) for rule in term.match_expressions))
        for term in terms
    )
