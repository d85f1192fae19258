"""TopologyPlacementGenerator: a pod group that wants one rack or zone is tried in each of them.

**Refuses** no node. Gives, for a pod group with a topology constraint, one placement for each value of that node label;
nodes without the label are in none. Members that have nodes already pin the group to theirs; it is an error if theirs
are several, or without the label. A group without a constraint has one placement, all nodes.

**Scores** none.

**Undone by** nothing: the group is tried again after its backoff.

**Options** none. Alpha: on by default only with the feature gate `TopologyAwareWorkloadScheduling`.

Source: B133.
"""

from typing import ClassVar

from extender.cluster.snapshot import Snapshot
from extender.framework.group_points import GroupQuery, Placement
from extender.framework.verdict import Status, error
from extender.objects.groups import PodGroup


class TopologyPlacementGenerator:
    """Groups nodes by one label."""

    name: ClassVar[str] = "TopologyPlacementGenerator"

    def placement_generate(self, group: GroupQuery, cluster: Snapshot) -> tuple[Placement, ...] | Status:
        """Source: B133."""
        known = cluster.find(PodGroup, group.key)
        if known is None:
            return error(f'podgroup.scheduling.k8s.io "{group.name}" not found')
        constraints = known.spec.scheduling_constraints
        if constraints is None or not constraints.topology:
            return (Placement(),)
        key = constraints.topology[0].key
        pinned = _pinned(group, key, cluster)
        if isinstance(pinned, Status):
            return pinned
        domains: dict[str, list[str]] = {}
        for node in cluster.nodes:
            domain = node.metadata.labels.get(key)
            if domain is not None and pinned in {None, domain}:
                domains.setdefault(domain, []).append(node.metadata.name)
        return tuple(Placement(domain, frozenset(names)) for domain, names in domains.items())


def _pinned(group: GroupQuery, key: str, cluster: Snapshot) -> str | Status | None:
    """The domain of the members that have nodes; None if none has."""
    found: str | None = None
    for pod in cluster.group(group.key).placed.values():
        row = cluster.row(pod.node_name)
        if row is None:
            return _unknown(f'getting node for pod {pod.key}: nodeinfo not found for node name "{pod.node_name}"')
        domain = cluster.nodes[row].metadata.labels.get(key)
        if domain is None:
            return _unknown(f"no topology domain found for pod {pod.key}")
        if found is not None and found != domain:
            return _unknown(f"more than 1 domain found for pod group: {found}, {domain}")
        found = domain
    return found


def _unknown(why: str) -> Status:
    return error(f"cannot determine domain for already scheduled pods: {why}")
