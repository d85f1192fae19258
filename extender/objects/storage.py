"""Persistent storage: volumes, claims, classes, and what CSI drivers say about nodes."""

from msgspec import field

from extender.objects.affinity import NodeSelector
from extender.objects.meta import KubernetesObject, LabelSelector, ObjectReference
from extender.objects.record import Int32, RawQuantity, Record, ResourceList
from extender.objects.volumes import (
    AWSElasticBlockStoreVolumeSource,
    AzureDiskVolumeSource,
    AzureFileVolumeSource,
    CinderVolumeSource,
    CSIPersistentVolumeSource,
    GCEPersistentDiskVolumeSource,
    ISCSIVolumeSource,
    PersistentVolumeClaimSpec,
    PortworxVolumeSource,
    RBDVolumeSource,
    VsphereVirtualDiskVolumeSource,
)


class VolumeNodeAffinity(Record, frozen=True, kw_only=True):
    """The nodes a volume can be used on."""

    required: NodeSelector | None = None


class PersistentVolumeSpec(Record, frozen=True, kw_only=True):
    """A volume: size, where it can be used, who claims it; at most one source is set."""

    capacity: ResourceList = field(default_factory=dict)
    access_modes: tuple[str, ...] = ()
    claim_ref: ObjectReference | None = None
    persistent_volume_reclaim_policy: str = ""
    storage_class_name: str = ""
    volume_mode: str | None = None
    volume_attributes_class_name: str | None = None
    node_affinity: VolumeNodeAffinity | None = None
    gce_persistent_disk: GCEPersistentDiskVolumeSource | None = None
    aws_elastic_block_store: AWSElasticBlockStoreVolumeSource | None = None
    iscsi: ISCSIVolumeSource | None = None
    rbd: RBDVolumeSource | None = None
    azure_disk: AzureDiskVolumeSource | None = None
    azure_file: AzureFileVolumeSource | None = None
    cinder: CinderVolumeSource | None = None
    portworx_volume: PortworxVolumeSource | None = None
    vsphere_volume: VsphereVirtualDiskVolumeSource | None = None
    csi: CSIPersistentVolumeSource | None = None


class PersistentVolumeStatus(Record, frozen=True, kw_only=True):
    """What has become of a volume."""

    phase: str = ""


class PersistentVolume(KubernetesObject, frozen=True, kw_only=True):
    """A volume that outlives pods."""

    spec: PersistentVolumeSpec = PersistentVolumeSpec()
    status: PersistentVolumeStatus = PersistentVolumeStatus()


class PersistentVolumeClaimStatus(Record, frozen=True, kw_only=True):
    """What has become of a claim."""

    phase: str = ""
    access_modes: tuple[str, ...] = ()
    capacity: ResourceList = field(default_factory=dict)


class PersistentVolumeClaim(KubernetesObject, frozen=True, kw_only=True):
    """A request for a volume."""

    spec: PersistentVolumeClaimSpec = PersistentVolumeClaimSpec()
    status: PersistentVolumeClaimStatus = PersistentVolumeClaimStatus()

    @property
    def key(self) -> str:
        """The claim as `namespace/name`."""
        return f"{self.metadata.namespace}/{self.metadata.name}"


class TopologySelectorLabelRequirement(Record, frozen=True, kw_only=True):
    """A node label and the values it may have."""

    key: str = ""
    values: tuple[str, ...] = ()


class TopologySelectorTerm(Record, frozen=True, kw_only=True):
    """All label requirements must hold."""

    match_label_expressions: tuple[TopologySelectorLabelRequirement, ...] = ()


class StorageClass(KubernetesObject, frozen=True, kw_only=True):
    """A way to make volumes."""

    provisioner: str = ""
    parameters: dict[str, str] = field(default_factory=dict)
    reclaim_policy: str | None = None
    allow_volume_expansion: bool | None = None
    volume_binding_mode: str | None = None
    allowed_topologies: tuple[TopologySelectorTerm, ...] = ()


class VolumeNodeResources(Record, frozen=True, kw_only=True):
    """How many volumes of a driver a node takes; absent means no limit."""

    count: Int32 | None = None


class CSINodeDriver(Record, frozen=True, kw_only=True):
    """A CSI driver installed on a node."""

    name: str = ""
    node_id: str = field(default="", name="nodeID")
    topology_keys: tuple[str, ...] = ()
    allocatable: VolumeNodeResources | None = None


class CSINodeSpec(Record, frozen=True, kw_only=True):
    """The CSI drivers of a node."""

    drivers: tuple[CSINodeDriver, ...] = ()


class CSINode(KubernetesObject, frozen=True, kw_only=True):
    """What CSI drivers say about the node of the same name."""

    spec: CSINodeSpec = CSINodeSpec()


class CSIDriverSpec(Record, frozen=True, kw_only=True):
    """How a CSI driver wants to be treated."""

    attach_required: bool | None = None
    storage_capacity: bool | None = None
    prevent_pod_scheduling_if_missing: bool | None = None


class CSIDriver(KubernetesObject, frozen=True, kw_only=True):
    """A CSI driver of the cluster."""

    spec: CSIDriverSpec = CSIDriverSpec()


class CSIStorageCapacity(KubernetesObject, frozen=True, kw_only=True):
    """Storage left for a class on the nodes of a topology segment."""

    node_topology: LabelSelector | None = None
    storage_class_name: str = ""
    capacity: RawQuantity | None = None
    maximum_volume_size: RawQuantity | None = None


class VolumeAttachmentSource(Record, frozen=True, kw_only=True):
    """The volume to attach: a persistent one by name, or an inline one."""

    persistent_volume_name: str | None = None
    inline_volume_spec: PersistentVolumeSpec | None = None


class VolumeAttachmentSpec(Record, frozen=True, kw_only=True):
    """Which driver attaches what to which node."""

    attacher: str = ""
    source: VolumeAttachmentSource = VolumeAttachmentSource()
    node_name: str = ""


class VolumeAttachmentStatus(Record, frozen=True, kw_only=True):
    """Whether the volume is attached."""

    attached: bool = False


class VolumeAttachment(KubernetesObject, frozen=True, kw_only=True):
    """A volume attached, or to be attached, to a node."""

    spec: VolumeAttachmentSpec = VolumeAttachmentSpec()
    status: VolumeAttachmentStatus = VolumeAttachmentStatus()
