"""Base class of plugins that limit the disks of one in-tree volume plugin on a node.

Source: pkg/scheduler/framework/plugins/nodevolumelimits/non_csi.go, getMaxEBSVolume, defaultMaxGCEPDVolumes,
defaultMaxAzureDiskVolumes (1.21).
"""

from collections.abc import Sequence
from typing import Any, ClassVar

from extender.cache.pod_info import PodInfo
from extender.cache.snapshot import NodeView
from extender.framework.events import ActionType, ClusterEventWithHint, EventResource
from extender.framework.status import Reason, Rejection
from extender.volumes.in_tree_limits import DiskLimitChecker, LimitedDriver, read_environment_limit

_MAX_VOLUME_COUNT_EXCEEDED = Reason("node(s) exceed max volume count")


class NonCSILimits:
    """Rejects nodes whose number of disks would exceed the limit. The counts are cached.

    Attributes:
        driver: the in-tree volume plugin and its default limit.
    """

    driver: ClassVar[LimitedDriver]

    def __init__(self) -> None:
        self._limit_checker = DiskLimitChecker(self.driver, read_environment_limit())

    def filter(self, pod: PodInfo, nodes: NodeView, state: Any) -> Sequence[Rejection]:  # noqa: ARG002
        """Reject the nodes that would exceed their limit with the pod."""
        nodes_over_limit = self._limit_checker.find_nodes_over_limit(pod, nodes)
        return () if nodes_over_limit is None else (Rejection(nodes_over_limit, _MAX_VOLUME_COUNT_EXCEEDED),)

    def events_to_register(self) -> Sequence[ClusterEventWithHint]:
        """Return the events that may lower a count or raise a limit."""
        return (
            ClusterEventWithHint(EventResource.NODE, ActionType.ADD | ActionType.UPDATE_NODE_ALLOCATABLE),
            ClusterEventWithHint(EventResource.POD, ActionType.DELETE),
            ClusterEventWithHint(EventResource.PERSISTENT_VOLUME_CLAIM, ActionType.ADD),
        )
