"""Makes trees of composite pod groups above random pod groups, with topology constraints and missing parents."""

from typing import Any, Final

from tests.oracle.generator.builder import ClusterBuilder, Raw
from tests.oracle.generator.pod_groups import TOPOLOGY_KEYS, add_pod_group

_NEVER: Final = "Never"


def add_composite_pod_groups(builder: ClusterBuilder) -> dict[str, bool]:
    """Make trees of pods that are there, and return the feature gates; only for Kubernetes 1.37.

    Args:
        builder: the cluster; each of its pods gets into one group at most.
    """
    pods = [item for item in builder.items if item["kind"] == "Pod"]
    for number in range(builder.rng.randint(1, 2)):
        free = [pod for pod in pods if "schedulingGroup" not in pod["spec"]]
        if not free:
            break
        namespace = builder.pick(free)["metadata"]["namespace"]
        free = [pod for pod in free if pod["metadata"]["namespace"] == namespace]
        _Tree(builder, namespace, f"tree-{number}", free).add()
    gates = {"PodGroupPreemptionPolicy": True} if builder.chance(0.2) else {}
    return {"GenericWorkload": True, "TopologyAwareWorkloadScheduling": True, "CompositePodGroup": True, **gates}


class _Tree:
    """A tree of groups whose pods have one priority and one preemption policy."""

    def __init__(self, builder: ClusterBuilder, namespace: str, name: str, pods: list[Raw]) -> None:
        self._builder, self._namespace, self._name, self._pods = builder, namespace, name, pods
        self._priority = builder.pick((0, 1000, 2000, 2000))
        self._policy = _NEVER if builder.chance(0.1) else "PreemptLowerPriority"
        self._count = 0
        self._groups: list[Raw] = []

    def add(self) -> None:
        """Add the groups of the tree."""
        root = self._add_composite(None, depth=1)
        self._add_children(root, depth=2)
        for group in self._groups:
            if self._builder.chance(0.01):
                self._builder.items.remove(group)  # its children wait for it

    def _add_children(self, parent: Raw, depth: int) -> None:
        builder = self._builder
        children = builder.pick((1, 2, 2, 3))
        for _ in range(children):
            if depth < 4 and builder.chance(0.25):
                composite = self._add_composite(parent["metadata"]["name"], depth)
                self._add_children(composite, depth + 1)
            else:
                self._add_leaf(parent["metadata"]["name"])
        gang = parent["spec"]["schedulingPolicy"].get("gang")
        if gang is not None:
            gang["minGroupCount"] = max(1, children - builder.pick((0, 0, 1, 1, 1, 2)) + builder.chance(0.03))

    def _add_composite(self, parent: str | None, depth: int) -> Raw:
        builder = self._builder
        self._count += 1
        spec: dict[str, Any] = {"schedulingPolicy": {"basic": {}}}
        if builder.chance(0.75):
            spec["schedulingPolicy"] = {"gang": {"minGroupCount": 1}}
        if parent is not None:
            spec["parentCompositePodGroupName"] = parent
        if builder.chance(0.3 if depth == 1 else 0.2):
            spec["schedulingConstraints"] = {"topology": [{"key": builder.pick(TOPOLOGY_KEYS)}]}
        if builder.chance(0.6):
            spec["disruptionMode"] = builder.pick(({"all": {}}, {"single": {}}))
        # The priority and the policy of the root count; those of other groups need not be the same.
        if builder.chance(0.95):
            spec["priority"] = self._priority if depth == 1 or builder.chance(0.9) else 1500
        if builder.chance(0.3):
            spec["preemptionPolicy"] = self._policy
        metadata = {"creationTimestamp": f"2026-02-01T00:0{builder.rng.randint(0, 3)}:00Z"}
        group = builder.add(
            "scheduling.k8s.io/v1alpha3", "CompositePodGroup", f"{self._name}-composite-{self._count}",
            self._namespace, metadata=metadata, spec=spec,
        )  # fmt: skip
        self._groups.append(group)
        return group

    def _add_leaf(self, parent: str) -> None:
        builder = self._builder
        self._count += 1
        pending = [pod for pod in self._pods if "nodeName" not in pod["spec"] and "schedulingGroup" not in pod["spec"]]
        bound = [pod for pod in self._pods if "nodeName" in pod["spec"] and "schedulingGroup" not in pod["spec"]]
        members = builder.sample(pending, 1 if builder.chance(0.9) else 0, 3)
        members += builder.sample(bound, 0, builder.pick((0, 0, 0, 1, 2)))
        name = f"{self._name}-group-{self._count}"
        add_pod_group(builder, "1.37", name, self._namespace, members)
        for pod in members:
            pod["spec"]["priority"], pod["spec"]["preemptionPolicy"] = self._priority, self._policy
        group = builder.items[-1]
        if group["kind"] == "PodGroup" and group["metadata"]["name"] == name:
            group["metadata"]["creationTimestamp"] = f"2026-02-01T00:0{builder.rng.randint(0, 3)}:00Z"
            group["spec"]["parentCompositePodGroupName"] = parent
            self._groups.append(group)
