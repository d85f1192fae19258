"""CheckNodePIDPressure: keep pods off nodes that are short of process ids.

**Refuses** for good a node with the condition `PIDPressure` at `True`.

**Scores** none.

**Undone by** a node that is added without that condition or loses it.

**Options** none. A predicate of releases up to 1.17; later ones have the taint `node.kubernetes.io/pid-pressure`
instead.

Source: C046, C049.
"""

from typing import ClassVar

from extender.framework.node_pressure import NodePressure
from extender.framework.verdict import Code, Reason


class CheckNodePIDPressure(NodePressure):
    """Reads the conditions in the status of nodes; answers are kept. Source: C046."""

    name: ClassVar[str] = "CheckNodePIDPressure"
    condition = "PIDPressure"
    refusal = Reason("node(s) had pid pressure", Code.UNRESOLVABLE)
