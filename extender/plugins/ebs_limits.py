"""EBSLimits: no node gets more Amazon EBS disks than it takes.

**Refuses** a node that would have more Amazon EBS disks than its limit, each counted once: those of its pods and
those of the pod. Disks behind claims count; a claim without a volume counts if its class is provisioned by
`kubernetes.io/aws-ebs`. The limit is the allocatable `attachable-volumes-aws-ebs` of the node, else 39, or 25 if its
instance type is of the Nitro system. A node that says it migrated the driver to CSI is left to NodeVolumeLimits.
Preemption may help.

**Scores** none.

**Undone by** the end of a pod, a new node, or the creation of a claim.

**Options** none. The environment variable `KUBE_MAX_PD_VOLS` replaces the default limit if it is a whole number above
0. A plugin of older releases: a v1 profile can enable it in `multiPoint` only, since kube-scheduler refuses its name
at the extension points and in `pluginConfig`.

Source: C036, C041, G025.
"""

from collections.abc import Sequence
from typing import Any, ClassVar

from extender.cluster.pods import PodQuery
from extender.cluster.snapshot import NodeView
from extender.framework.changes import Action, Registration, Resource
from extender.framework.verdict import Reason, Rejection
from extender.volumes.in_tree_limits import EBS, InTreeLimits, limit_of_environment

_TOO_MANY = Reason("node(s) exceed max volume count")


class EBSLimits:
    """Counts disks by node; the counts are kept."""

    name: ClassVar[str] = "EBSLimits"

    def __init__(self) -> None:
        self._limits = InTreeLimits(EBS, limit_of_environment())

    def filter(self, pod: PodQuery, nodes: NodeView, notes: Any) -> Sequence[Rejection]:  # noqa: ARG002
        """Source: C036."""
        full = self._limits.exceeded(pod, nodes)
        return () if full is None else (Rejection(full, _TOO_MANY),)

    def events(self) -> Sequence[Registration]:
        """What may lower the count or raise the limit."""
        return (
            Registration(Resource.NODE, Action.ADD | Action.UPDATE_NODE_ALLOCATABLE),
            Registration(Resource.POD, Action.DELETE),
            Registration(Resource.PERSISTENT_VOLUME_CLAIM, Action.ADD),
        )
