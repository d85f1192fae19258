"""Volume sources of pods and of persistent volumes."""

from msgspec import field

from extender.api.kinds.meta import KubernetesStruct, LabelSelector, ResourceList


class GCEPersistentDiskVolumeSource(KubernetesStruct, frozen=True, kw_only=True):
    """A Google Compute Engine persistent disk."""

    pd_name: str = ""
    read_only: bool = False


class AWSElasticBlockStoreVolumeSource(KubernetesStruct, frozen=True, kw_only=True):
    """An Amazon EBS volume."""

    volume_id: str = field(default="", name="volumeID")


class ISCSIVolumeSource(KubernetesStruct, frozen=True, kw_only=True):
    """An iSCSI disk, identified by its qualified name."""

    iqn: str = ""
    read_only: bool = False


class RBDVolumeSource(KubernetesStruct, frozen=True, kw_only=True):
    """A Ceph block device."""

    monitors: tuple[str, ...] = ()
    image: str = ""
    pool: str = ""
    read_only: bool = False


class AzureDiskVolumeSource(KubernetesStruct, frozen=True, kw_only=True):
    """An Azure disk."""

    disk_name: str = ""
    disk_uri: str = field(default="", name="diskURI")
    kind: str | None = None


class AzureFileVolumeSource(KubernetesStruct, frozen=True, kw_only=True):
    """An Azure file share."""


class CinderVolumeSource(KubernetesStruct, frozen=True, kw_only=True):
    """An OpenStack Cinder volume."""

    volume_id: str = field(default="", name="volumeID")


class PortworxVolumeSource(KubernetesStruct, frozen=True, kw_only=True):
    """A Portworx volume."""

    volume_id: str = field(default="", name="volumeID")


class VsphereVirtualDiskVolumeSource(KubernetesStruct, frozen=True, kw_only=True):
    """A vSphere disk."""


class CSIVolumeSource(KubernetesStruct, frozen=True, kw_only=True):
    """An inline CSI volume with the lifetime of its pod."""

    driver: str = ""


class CSIPersistentVolumeSource(KubernetesStruct, frozen=True, kw_only=True):
    """A persistent CSI volume."""

    driver: str = ""
    volume_handle: str = ""


class PersistentVolumeClaimVolumeSource(KubernetesStruct, frozen=True, kw_only=True):
    """A claim in the namespace of the pod."""

    claim_name: str = ""
    read_only: bool = False


class VolumeResourceRequirements(KubernetesStruct, frozen=True, kw_only=True):
    """The storage requests and limits of a claim."""

    requests: ResourceList = field(default_factory=dict)


class PersistentVolumeClaimSpec(KubernetesStruct, frozen=True, kw_only=True):
    """The spec of a claim. An absent storage class name does not mean the same as an empty name."""

    access_modes: tuple[str, ...] = ()
    selector: LabelSelector | None = None
    resources: VolumeResourceRequirements = VolumeResourceRequirements()
    volume_name: str = ""
    storage_class_name: str | None = None
    volume_mode: str | None = None
    volume_attributes_class_name: str | None = None


class EphemeralVolumeSource(KubernetesStruct, frozen=True, kw_only=True):
    """A generic ephemeral volume. Its claim is created for the pod and is owned by the pod."""


class ImageVolumeSource(KubernetesStruct, frozen=True, kw_only=True):
    """An image mounted as a volume."""

    reference: str = ""


class Volume(KubernetesStruct, frozen=True, kw_only=True):
    """A volume of a pod. At most one source is set; sources that scheduling does not read are absent."""

    name: str = ""
    gce_persistent_disk: GCEPersistentDiskVolumeSource | None = None
    aws_elastic_block_store: AWSElasticBlockStoreVolumeSource | None = None
    iscsi: ISCSIVolumeSource | None = None
    rbd: RBDVolumeSource | None = None
    azure_disk: AzureDiskVolumeSource | None = None
    azure_file: AzureFileVolumeSource | None = None
    cinder: CinderVolumeSource | None = None
    portworx_volume: PortworxVolumeSource | None = None
    vsphere_volume: VsphereVirtualDiskVolumeSource | None = None
    csi: CSIVolumeSource | None = None
    persistent_volume_claim: PersistentVolumeClaimVolumeSource | None = None
    ephemeral: EphemeralVolumeSource | None = None
    image: ImageVolumeSource | None = None
