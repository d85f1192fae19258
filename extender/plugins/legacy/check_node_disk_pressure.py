"""CheckNodeDiskPressure keeps pods off nodes that are short of disk space.

**Rejects** a node, unresolvable, whose condition `DiskPressure` is `True`.

**Scores** no node.

**Requeued on** a node that is added without this condition, or loses it.

**Options** none. A predicate of releases up to 1.17. Later releases use the taint `node.kubernetes.io/disk-pressure`
instead.

Source: pkg/scheduler/algorithm/predicates/predicates.go, CheckNodeDiskPressurePredicate;
pkg/scheduler/core/generic_scheduler.go, nodesWherePreemptionMightHelp (1.14).
"""

from typing import ClassVar

from extender.framework.status import Code, Reason
from extender.plugin_parts.node_pressure import NodePressure


class CheckNodeDiskPressure(NodePressure):
    """Rejects nodes with disk pressure.

    Source: pkg/scheduler/algorithm/predicates/predicates.go, CheckNodeDiskPressurePredicate (1.14).
    """

    name: ClassVar[str] = "CheckNodeDiskPressure"
    condition = "DiskPressure"
    rejection_reason = Reason("node(s) had disk pressure", Code.UNRESOLVABLE)
