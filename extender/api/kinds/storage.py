"""Storage: persistent volumes, claims, storage classes, CSI drivers and volume attachments."""

from msgspec import field

from extender.api.kinds.affinity import NodeSelector
from extender.api.kinds.meta import (
    Int32,
    KubernetesObject,
    KubernetesStruct,
    LabelSelector,
    ObjectReference,
    RawQuantity,
    ResourceList,
)
from extender.api.kinds.volumes import (
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


class VolumeNodeAffinity(KubernetesStruct, frozen=True, kw_only=True):
    """The nodes that can use a volume."""

    required: NodeSelector | None = None


class PersistentVolumeSpec(KubernetesStruct, frozen=True, kw_only=True):
    """The spec of a persistent volume; at most one source is set."""

    capacity: ResourceList = field(default_factory=dict)
    access_modes: tuple[str, ...] = ()
    claim_ref: ObjectReference | None = None
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


class PersistentVolumeStatus(KubernetesStruct, frozen=True, kw_only=True):
    """The status of a persistent volume."""

    phase: str = ""


class PersistentVolume(KubernetesObject, frozen=True, kw_only=True):
    """A persistent volume."""

    spec: PersistentVolumeSpec = PersistentVolumeSpec()
    status: PersistentVolumeStatus = PersistentVolumeStatus()


class PersistentVolumeClaimStatus(KubernetesStruct, frozen=True, kw_only=True):
    """The status of a claim."""

    phase: str = ""


class PersistentVolumeClaim(KubernetesObject, frozen=True, kw_only=True):
    """A claim for a persistent volume."""

    spec: PersistentVolumeClaimSpec = PersistentVolumeClaimSpec()
    status: PersistentVolumeClaimStatus = PersistentVolumeClaimStatus()

    @property
    def key(self) -> str:
        """The key of the claim: `namespace/name`."""
        return f"{self.metadata.namespace}/{self.metadata.name}"


class TopologySelectorLabelRequirement(KubernetesStruct, frozen=True, kw_only=True):
    """A node label and its allowed values."""

    key: str = ""
    values: tuple[str, ...] = ()


class TopologySelectorTerm(KubernetesStruct, frozen=True, kw_only=True):
    """A topology term: all label requirements must hold."""

    match_label_expressions: tuple[TopologySelectorLabelRequirement, ...] = ()


class StorageClass(KubernetesObject, frozen=True, kw_only=True):
    """A storage class."""

    provisioner: str = ""
    parameters: dict[str, str] = field(default_factory=dict)
    volume_binding_mode: str | None = None
    allowed_topologies: tuple[TopologySelectorTerm, ...] = ()


class VolumeNodeResources(KubernetesStruct, frozen=True, kw_only=True):
    """The number of volumes of a driver that can be attached to a node; None means no limit."""

    count: Int32 | None = None


class CSINodeDriver(KubernetesStruct, frozen=True, kw_only=True):
    """A CSI driver installed on a node."""

    name: str = ""
    allocatable: VolumeNodeResources | None = None


class CSINodeSpec(KubernetesStruct, frozen=True, kw_only=True):
    """The CSI drivers of a node."""

    drivers: tuple[CSINodeDriver, ...] = ()


class CSINode(KubernetesObject, frozen=True, kw_only=True):
    """The CSI drivers of a node; the object's name is the node's name."""

    spec: CSINodeSpec = CSINodeSpec()


class CSIDriverSpec(KubernetesStruct, frozen=True, kw_only=True):
    """The scheduling-related settings of a CSI driver."""

    storage_capacity: bool | None = None
    prevent_pod_scheduling_if_missing: bool | None = None


class CSIDriver(KubernetesObject, frozen=True, kw_only=True):
    """A CSI driver."""

    spec: CSIDriverSpec = CSIDriverSpec()


class CSIStorageCapacity(KubernetesObject, frozen=True, kw_only=True):
    """The available capacity of a storage class in a topology segment."""

    node_topology: LabelSelector | None = None
    storage_class_name: str = ""
    capacity: RawQuantity | None = None
    maximum_volume_size: RawQuantity | None = None


class VolumeAttachmentSource(KubernetesStruct, frozen=True, kw_only=True):
    """The volume to attach: a persistent volume by name, or an inline volume."""

    persistent_volume_name: str | None = None


class VolumeAttachmentSpec(KubernetesStruct, frozen=True, kw_only=True):
    """The driver, volume and node of an attachment."""

    attacher: str = ""
    source: VolumeAttachmentSource = VolumeAttachmentSource()
    node_name: str = ""


class VolumeAttachment(KubernetesObject, frozen=True, kw_only=True):
    """The attachment of a volume to a node."""

    spec: VolumeAttachmentSpec = VolumeAttachmentSpec()
