"""AzureDiskLimits limits the number of Azure disks of a node.

**Rejects** a node if the distinct Azure disks of the node's pods and of the pod to schedule exceed the node's limit.
Disks of claims count. A claim without a volume counts if the provisioner of its class is `kubernetes.io/azure-disk`.
The limit is the node's allocatable `attachable-volumes-azure-disk`, else 16. Nodes where the driver is migrated to CSI
are checked by NodeVolumeLimits. Preemption may help.

**Scores** no node.

**Requeued on** a deleted pod, a new node, or a new claim.

**Options** none. The environment variable `KUBE_MAX_PD_VOLS` replaces the default limit if it is an integer above 0.
Only older releases have this plugin. A v1 profile can enable it only in `multiPoint`. kube-scheduler rejects its name
at the extension points and in `pluginConfig`.

Source: pkg/scheduler/framework/plugins/nodevolumelimits/non_csi.go, defaultMaxAzureDiskVolumes, getMaxVolLimitFromEnv
(1.21); pkg/scheduler/apis/config/validation/validation.go, invalidPluginsByVersion (1.36).
"""

from typing import ClassVar

from extender.plugin_parts.non_csi_limits import NonCSILimits
from extender.volumes.in_tree_limits import AZURE_DISK


class AzureDiskLimits(NonCSILimits):
    """Limits Azure disks by node.

    Source: pkg/scheduler/framework/plugins/nodevolumelimits/non_csi.go, defaultMaxAzureDiskVolumes (1.21).
    """

    name: ClassVar[str] = "AzureDiskLimits"
    driver = AZURE_DISK
