"""CheckNodeDiskPressure rejects nodes that are short of disk space.

**Rejects** a node whose condition `DiskPressure` is `True`. The rejection is unresolvable.

**Scores** no node.

**Requeued on** a node that is added without this condition, or loses it.

**Options** none. Releases up to 1.17 have this predicate. Later releases use the taint
`node.kubernetes.io/disk-pressure` instead.

Source: pkg/scheduler/algorithm/predicates/predicates.go, CheckNodeDiskPressurePredicate;
pkg/scheduler/core/generic_scheduler.go, nodesWherePreemptionMightHelp (1.14).
"""

from typing import ClassVar

from extender.framework.status import Code, Reason
from extender.plugin_parts.node_pressure import NodePressureFilter


class CheckNodeDiskPressure(NodePressureFilter):
    """Rejects nodes with disk pressure.

    Source: pkg/scheduler/algorithm/predicates/predicates.go, CheckNodeDiskPressurePredicate (1.14).
    """

    name: ClassVar[str] = "CheckNodeDiskPressure"
    condition = "DiskPressure"
    rejection_reason = Reason("node(s) had disk pressure", Code.UNRESOLVABLE)
