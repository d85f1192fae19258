"""CinderLimits: no node gets more OpenStack Cinder disks than it takes.

**Refuses** a node that would have more OpenStack Cinder disks than its limit, each counted once: those of its pods
and those of the pod. Disks behind claims count; a claim without a volume counts if its class is provisioned by
`kubernetes.io/cinder`. The limit is the allocatable `attachable-volumes-cinder` of the node, else 256. A node that
says it migrated the driver to CSI is left to NodeVolumeLimits. Preemption may help.

**Scores** none.

**Undone by** the end of a pod, a new node, or the creation of a claim.

**Options** none. The environment variable `KUBE_MAX_PD_VOLS` replaces the default limit if it is a whole number above
0. A plugin of older releases: a v1 profile can enable it in `multiPoint` only, since kube-scheduler refuses its name
at the extension points and in `pluginConfig`.

Source: C039, C041, G025.
"""

from typing import ClassVar

from extender.framework.in_tree_disks import InTreeDiskLimits
from extender.volumes.in_tree_limits import CINDER


class CinderLimits(InTreeDiskLimits):
    """Counts disks by node; the counts are kept. Source: C039."""

    name: ClassVar[str] = "CinderLimits"
    driver = CINDER
