"""AzureDiskLimits, CinderLimits, EBSLimits and GCEPDLimits limit the number of disks of one in-tree driver on a node.

**Rejects** a node if the distinct disks of the node's pods and of the pod to schedule exceed the node's limit. Disks of
claims count. A claim without a volume counts if the provisioner of its class is that of the driver. The limit is an
allocatable resource of the node. A node without it has the default limit:

| Plugin | Provisioner | Resource | Default limit |
| --- | --- | --- | --- |
| AzureDiskLimits | `kubernetes.io/azure-disk` | `attachable-volumes-azure-disk` | 16 |
| CinderLimits | `kubernetes.io/cinder` | `attachable-volumes-cinder` | 256 |
| EBSLimits | `kubernetes.io/aws-ebs` | `attachable-volumes-aws-ebs` | 39; 25 for instances of the Nitro system |
| GCEPDLimits | `kubernetes.io/gce-pd` | `attachable-volumes-gce-pd` | 16 |

Nodes where the driver is migrated to CSI are checked by NodeVolumeLimits. Preemption may help.

**Scores** no node.

**Requeued on** a deleted pod, a new node, or a new claim.

**Options** none. The environment variable `KUBE_MAX_PD_VOLS` replaces the default limits if it is an integer above 0.
Only older releases have these plugins. A v1 profile can enable them only in `multiPoint`. kube-scheduler rejects their
names at the extension points and in `pluginConfig`.

Source: pkg/scheduler/framework/plugins/nodevolumelimits/non_csi.go, getMaxEBSVolume, getMaxVolumeFunc,
defaultMaxGCEPDVolumes, defaultMaxAzureDiskVolumes, getMaxVolLimitFromEnv (1.21);
pkg/scheduler/apis/config/validation/validation.go, invalidPluginsByVersion (1.36).
"""

from collections.abc import Sequence
from typing import Any, ClassVar

from extender.cache.pod_info import PodInfo
from extender.cache.snapshot import NodeView
from extender.framework.events import ActionType, ClusterEventWithHint, EventResource
from extender.framework.status import Reason, Rejection
from extender.volumes.in_tree_limits import (
    AZURE_DISK,
    CINDER,
    EBS,
    GCE_PD,
    DiskLimitChecker,
    LimitedDriver,
    read_environment_limit,
)

_MAX_VOLUME_COUNT_EXCEEDED = Reason("node(s) exceed max volume count")


class _NonCSILimits:
    """Rejects nodes whose number of disks would exceed the limit. The counts are cached.

    Attributes:
        driver: the in-tree volume plugin and its default limit.
    """

    driver: ClassVar[LimitedDriver]

    def __init__(self) -> None:
        self._limit_checker = DiskLimitChecker(self.driver, read_environment_limit())

    def filter(self, pod: PodInfo, nodes: NodeView, state: Any) -> Sequence[Rejection]:  # noqa: ARG002
        nodes_over_limit = self._limit_checker.find_nodes_over_limit(pod, nodes)
        return () if nodes_over_limit is None else (Rejection(nodes_over_limit, _MAX_VOLUME_COUNT_EXCEEDED),)

    def events_to_register(self) -> Sequence[ClusterEventWithHint]:
        """Return the events that may lower a count or raise a limit."""
        return (
            ClusterEventWithHint(EventResource.NODE, ActionType.ADD | ActionType.UPDATE_NODE_ALLOCATABLE),
            ClusterEventWithHint(EventResource.POD, ActionType.DELETE),
            ClusterEventWithHint(EventResource.PERSISTENT_VOLUME_CLAIM, ActionType.ADD),
        )


class AzureDiskLimits(_NonCSILimits):
    """Limits Azure disks by node."""

    name: ClassVar[str] = "AzureDiskLimits"
    driver = AZURE_DISK


class CinderLimits(_NonCSILimits):
    """Limits OpenStack Cinder disks by node."""

    name: ClassVar[str] = "CinderLimits"
    driver = CINDER


class EBSLimits(_NonCSILimits):
    """Limits Amazon EBS disks by node."""

    name: ClassVar[str] = "EBSLimits"
    driver = EBS


class GCEPDLimits(_NonCSILimits):
    """Limits GCE persistent disks by node."""

    name: ClassVar[str] = "GCEPDLimits"
    driver = GCE_PD
