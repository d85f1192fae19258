"""CheckNodePIDPressure keeps pods off nodes that are short of process IDs.

**Rejects** a node, unresolvable, whose condition `PIDPressure` is `True`.

**Scores** no node.

**Requeued on** a node that is added without this condition, or loses it.

**Options** none. A predicate of releases up to 1.17. Later releases use the taint `node.kubernetes.io/pid-pressure`
instead.

Source: pkg/scheduler/algorithm/predicates/predicates.go, CheckNodePIDPressurePredicate;
pkg/scheduler/core/generic_scheduler.go, nodesWherePreemptionMightHelp (1.14).
"""

from typing import ClassVar

from extender.framework.status import Code, Reason
from extender.plugin_parts.node_pressure import NodePressure


class CheckNodePIDPressure(NodePressure):
    """Rejects nodes with PID pressure.

    Source: pkg/scheduler/algorithm/predicates/predicates.go, CheckNodePIDPressurePredicate (1.14).
    """

    name: ClassVar[str] = "CheckNodePIDPressure"
    condition = "PIDPressure"
    rejection_reason = Reason("node(s) had pid pressure", Code.UNRESOLVABLE)
