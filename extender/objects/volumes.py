"""Volume sources: the ones a pod names inline, and the ones persistent volumes share with them."""

from msgspec import field

from extender.objects.meta import LabelSelector, ObjectMeta
from extender.objects.record import Int32, Record, ResourceList


class GCEPersistentDiskVolumeSource(Record, frozen=True, kw_only=True):
    """A disk of Google Compute Engine."""

    pd_name: str = ""
    fs_type: str = ""
    partition: Int32 = 0
    read_only: bool = False


class AWSElasticBlockStoreVolumeSource(Record, frozen=True, kw_only=True):
    """A disk of Amazon EBS."""

    volume_id: str = field(default="", name="volumeID")
    fs_type: str = ""
    partition: Int32 = 0
    read_only: bool = False


class ISCSIVolumeSource(Record, frozen=True, kw_only=True):
    """An iSCSI disk, identified by its qualified name."""

    target_portal: str = ""
    iqn: str = ""
    lun: Int32 = 0
    read_only: bool = False


class RBDVolumeSource(Record, frozen=True, kw_only=True):
    """A Ceph block device."""

    monitors: tuple[str, ...] = ()
    image: str = ""
    pool: str = ""
    read_only: bool = False


class AzureDiskVolumeSource(Record, frozen=True, kw_only=True):
    """A disk of Azure."""

    disk_name: str = ""
    disk_uri: str = field(default="", name="diskURI")
    kind: str | None = None
    read_only: bool | None = None


class AzureFileVolumeSource(Record, frozen=True, kw_only=True):
    """A file share of Azure; `secret_namespace` occurs on persistent volumes only."""

    secret_name: str = ""
    share_name: str = ""
    secret_namespace: str | None = None
    read_only: bool = False


class CinderVolumeSource(Record, frozen=True, kw_only=True):
    """A disk of OpenStack Cinder."""

    volume_id: str = field(default="", name="volumeID")
    fs_type: str = ""
    read_only: bool = False


class PortworxVolumeSource(Record, frozen=True, kw_only=True):
    """A Portworx volume."""

    volume_id: str = field(default="", name="volumeID")
    fs_type: str = ""
    read_only: bool = False


class VsphereVirtualDiskVolumeSource(Record, frozen=True, kw_only=True):
    """A disk of vSphere."""

    volume_path: str = ""
    fs_type: str = ""


class CSIVolumeSource(Record, frozen=True, kw_only=True):
    """An inline volume of a CSI driver, which lives as long as its pod."""

    driver: str = ""
    read_only: bool | None = None
    fs_type: str | None = None
    volume_attributes: dict[str, str] = field(default_factory=dict)


class CSIPersistentVolumeSource(Record, frozen=True, kw_only=True):
    """A persistent volume of a CSI driver."""

    driver: str = ""
    volume_handle: str = ""
    read_only: bool = False
    fs_type: str = ""
    volume_attributes: dict[str, str] = field(default_factory=dict)


class PersistentVolumeClaimVolumeSource(Record, frozen=True, kw_only=True):
    """A claim of the pod's namespace."""

    claim_name: str = ""
    read_only: bool = False


class VolumeResourceRequirements(Record, frozen=True, kw_only=True):
    """How much storage a claim asks for."""

    requests: ResourceList = field(default_factory=dict)
    limits: ResourceList = field(default_factory=dict)


class PersistentVolumeClaimSpec(Record, frozen=True, kw_only=True):
    """What a claim asks for. An absent storage class and an empty one differ."""

    access_modes: tuple[str, ...] = ()
    selector: LabelSelector | None = None
    resources: VolumeResourceRequirements = VolumeResourceRequirements()
    volume_name: str = ""
    storage_class_name: str | None = None
    volume_mode: str | None = None
    volume_attributes_class_name: str | None = None


class PersistentVolumeClaimTemplate(Record, frozen=True, kw_only=True):
    """The claim made for a generic ephemeral volume."""

    metadata: ObjectMeta = ObjectMeta()
    spec: PersistentVolumeClaimSpec = PersistentVolumeClaimSpec()


class EphemeralVolumeSource(Record, frozen=True, kw_only=True):
    """A generic ephemeral volume: a claim that is made for the pod and owned by it."""

    volume_claim_template: PersistentVolumeClaimTemplate | None = None


class ImageVolumeSource(Record, frozen=True, kw_only=True):
    """An image mounted as a volume."""

    reference: str = ""
    pull_policy: str = ""


class Volume(Record, frozen=True, kw_only=True):
    """One volume of a pod; at most one source is set, none of them for kinds that scheduling does not read."""

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
