"""CheckNodePIDPressure rejects nodes that are short of process IDs.

**Rejects** a node whose condition `PIDPressure` is `True`. The rejection is unresolvable.

**Scores** no node.

**Requeued on** a node that is added without this condition, or loses it.

**Options** none. Releases up to 1.17 have this predicate. Later releases use the taint
`node.kubernetes.io/pid-pressure` instead.

Source: pkg/scheduler/algorithm/predicates/predicates.go, CheckNodePIDPressurePredicate;
pkg/scheduler/core/generic_scheduler.go, nodesWherePreemptionMightHelp (1.14).
"""

from typing import ClassVar

from extender.framework.status import Code, Reason
from extender.plugin_parts.node_pressure import NodePressureFilter


class CheckNodePIDPressure(NodePressureFilter):
    """Rejects nodes with PID pressure.

    Source: pkg/scheduler/algorithm/predicates/predicates.go, CheckNodePIDPressurePredicate (1.14).
    """

    name: ClassVar[str] = "CheckNodePIDPressure"
    condition = "PIDPressure"
    rejection_reason = Reason("node(s) had pid pressure", Code.UNRESOLVABLE)
