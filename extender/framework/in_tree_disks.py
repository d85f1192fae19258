"""Plugins that count the disks of one in-tree volume plugin by node.

Source: C036 to C039, C041.
"""

from collections.abc import Sequence
from typing import Any, ClassVar

from extender.cluster.pods import PodQuery
from extender.cluster.snapshot import NodeView
from extender.framework.changes import Action, Registration, Resource
from extender.framework.verdict import Reason, Rejection
from extender.volumes.in_tree_limits import InTreeLimits, LimitedDriver, limit_of_environment

_TOO_MANY = Reason("node(s) exceed max volume count")


class InTreeDiskLimits:
    """Counts disks by node; the counts are kept.

    Attributes:
        driver: whose disks count, and how many a node takes.
    """

    driver: ClassVar[LimitedDriver]

    def __init__(self) -> None:
        self._limits = InTreeLimits(self.driver, limit_of_environment())

    def filter(self, pod: PodQuery, nodes: NodeView, notes: Any) -> Sequence[Rejection]:  # noqa: ARG002
        """The nodes that would have too many disks."""
        full = self._limits.exceeded(pod, nodes)
        return () if full is None else (Rejection(full, _TOO_MANY),)

    def events(self) -> Sequence[Registration]:
        """What may lower the count or raise the limit."""
        return (
            Registration(Resource.NODE, Action.ADD | Action.UPDATE_NODE_ALLOCATABLE),
            Registration(Resource.POD, Action.DELETE),
            Registration(Resource.PERSISTENT_VOLUME_CLAIM, Action.ADD),
        )
