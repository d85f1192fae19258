"""CheckNodeDiskPressure: keep pods off nodes that are short of disk space.

**Refuses** for good a node with the condition `DiskPressure` at `True`.

**Scores** none.

**Undone by** a node that is added without that condition or loses it.

**Options** none. A predicate of releases up to 1.17; later ones have the taint `node.kubernetes.io/disk-pressure`
instead.

Source: C045, C049.
"""

from typing import ClassVar

from extender.framework.node_pressure import NodePressure
from extender.framework.verdict import Code, Reason


class CheckNodeDiskPressure(NodePressure):
    """Reads the conditions in the status of nodes; answers are kept. Source: C045."""

    name: ClassVar[str] = "CheckNodeDiskPressure"
    condition = "DiskPressure"
    refusal = Reason("node(s) had disk pressure", Code.UNRESOLVABLE)
