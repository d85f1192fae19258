"""TopologyPlacementGenerator generates one placement per topology domain for a pod group.

**Rejects** no node. For a pod group with a topology constraint it generates one placement for each value of the
constraint's node label. Nodes without the label are in no placement. If pods of the group are already scheduled, only
the placement of their domain is generated. If they are in several domains or on a node without the label, generation
fails. A group without a constraint gets a single placement with all nodes.

**Scores** no node.

**Requeued on** no event. The group is retried after its backoff.

**Options** none. The plugin is alpha. It is on by default only with the feature gate `TopologyAwareWorkloadScheduling`.
"""

from typing import ClassVar

from extender.cache.snapshot import Snapshot
from extender.framework.pod_group_points import Placement, PodGroupInfo
from extender.framework.status import Status, error_status
from extender.plugin_parts.scheduled_members import list_scheduled_members


class TopologyPlacementGenerator:
    """Generates one placement for each value of a node label."""

    name: ClassVar[str] = "TopologyPlacementGenerator"

    def generate_placements(self, pod_group: PodGroupInfo, snapshot: Snapshot) -> tuple[Placement, ...] | Status:
        """Return one placement for each topology domain, or an error.

        Source: pkg/scheduler/framework/plugins/topologyaware/topology_placement.go,
        TopologyPlacement.GeneratePlacements (1.36).
        """
        group_object = snapshot.get_group(pod_group.group_key)
        if group_object is None:
            return error_status(f'podgroup.scheduling.k8s.io "{pod_group.name}" not found')
        constraints = group_object.spec.scheduling_constraints
        if constraints is None or not constraints.topology:
            return (Placement(),)
        key = constraints.topology[0].key
        required_domain = _get_scheduled_pods_domain(pod_group, key, snapshot)
        if isinstance(required_domain, Status):
            return required_domain
        domains: dict[str, list[str]] = {}
        for node in snapshot.nodes:
            domain = node.metadata.labels.get(key)
            if domain is not None and required_domain in {None, domain}:
                domains.setdefault(domain, []).append(node.metadata.name)
        return tuple(Placement(domain, frozenset(names)) for domain, names in domains.items())


def _get_scheduled_pods_domain(pod_group: PodGroupInfo, key: str, snapshot: Snapshot) -> str | Status | None:
    """Return the topology domain of the group's scheduled pods; None if no pod is scheduled; a status on errors."""
    scheduled_pods = list_scheduled_members(pod_group, snapshot)
    if isinstance(scheduled_pods, Status):
        return scheduled_pods
    scheduled_domain: str | None = None
    for pod in scheduled_pods:
        row = snapshot.row(pod.node_name)
        if row is None:
            return _make_domain_error(
                f'getting node for pod {pod.key}: nodeinfo not found for node name "{pod.node_name}"'
            )
        domain = snapshot.nodes[row].metadata.labels.get(key)
        if domain is None:
            return _make_domain_error(f"no topology domain found for pod {pod.key}")
        if scheduled_domain is not None and scheduled_domain != domain:
            return _make_domain_error(f"more than 1 domain found for pod group: {scheduled_domain}, {domain}")
        scheduled_domain = domain
    return scheduled_domain


def _make_domain_error(message: str) -> Status:
    return error_status(f"cannot determine domain for already scheduled pods: {message}")
