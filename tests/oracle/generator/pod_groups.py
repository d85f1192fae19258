"""Makes pod groups of random pods: gangs that fit or lack room, other policies, and topology constraints."""

from typing import Any, Final

from tests.oracle.generator.builder import ClusterBuilder, Raw

_API_VERSIONS: Final = {"1.36": "scheduling.k8s.io/v1alpha2", "1.37": "scheduling.k8s.io/v1beta1"}
_GATES: Final = {
    "1.36": {"GangScheduling": 0.95, "TopologyAwareWorkloadScheduling": 0.4, "WorkloadAwarePreemption": 0.5},
    "1.37": {"TopologyAwareWorkloadScheduling": 0.4, "PodGroupPreemptionPolicy": 0.2},
}
"""The probability of each feature gate, by Kubernetes minor; GenericWorkload is always on."""

TOPOLOGY_KEYS: Final = ("topology.kubernetes.io/zone", "example.com/rack", "kubernetes.io/hostname")
"""The label keys of topology constraints."""


def add_pod_groups(builder: ClusterBuilder, version: str) -> dict[str, bool]:
    """Make pod groups of pods that are there, and return the feature gates.

    Args:
        builder: the cluster; each of its pods gets into one group at most.
        version: the Kubernetes minor, such as `1.36`.
    """
    gates = {name: True for name, chance in _GATES[version].items() if builder.chance(chance)}
    if version == "1.36" and "GangScheduling" not in gates:
        gates.pop("WorkloadAwarePreemption", None)
    pods = [item for item in builder.items if item["kind"] == "Pod"]
    for number in range(builder.rng.randint(1, 3)):
        free = [pod for pod in pods if "schedulingGroup" not in pod["spec"]]
        if not free:
            break
        namespace = builder.pick(free)["metadata"]["namespace"]
        free = [pod for pod in free if pod["metadata"]["namespace"] == namespace]
        pending = [pod for pod in free if "nodeName" not in pod["spec"]]
        bound = [pod for pod in free if "nodeName" in pod["spec"]]
        members = builder.sample(pending, 1, 5) + builder.sample(bound, 0, builder.pick((0, 0, 1, 3)))
        add_pod_group(builder, version, f"group-{number}", namespace, members)
    return {"GenericWorkload": True, **gates}


def add_pod_group(builder: ClusterBuilder, version: str, name: str, namespace: str, members: list[Raw]) -> None:
    """Make *members* a pod group of one priority; the object of the group is sometimes missing."""
    priority = builder.pick((0, 1000, 2000, 2000))
    policy = "Never" if builder.chance(0.1) else "PreemptLowerPriority"
    resources = members[0]["spec"]["containers"][0]["resources"] if members and builder.chance(0.4) else None
    for pod in members:
        spec = pod["spec"]
        spec["schedulingGroup"] = {"podGroupName": name}
        if version == "1.36":
            # Whether kube-scheduler 1.36 nominates a member depends on the order in which the members arrive.
            pod["status"].pop("nominatedNodeName", None)
        if builder.chance(0.95):
            spec["priority"] = priority
        if builder.chance(0.97):
            spec["preemptionPolicy"] = policy
        if resources is not None:
            spec["containers"][0]["resources"] = resources
    if builder.chance(0.04):
        return
    group: dict[str, Any] = {"schedulingPolicy": {"basic": {}}}
    if builder.chance(0.85):
        # Mostly all members, sometimes more than there are.
        least = max(1, len(members) - builder.pick((0, 0, 0, 1, 1, 2, -1)))
        group["schedulingPolicy"] = {"gang": {"minCount": least}}
    if builder.chance(0.4):
        group["schedulingConstraints"] = {"topology": [{"key": builder.pick(TOPOLOGY_KEYS)}]}
    if builder.chance(0.6):
        whole: tuple[Any, Any] = ("PodGroup", "Pod") if version == "1.36" else ({"all": {}}, {"single": {}})
        group["disruptionMode"] = builder.pick(whole)
    if builder.chance(0.95):
        group["priority"] = priority
    if version == "1.37" and builder.chance(0.3):
        group["preemptionPolicy"] = policy
    builder.add(_API_VERSIONS[version], "PodGroup", name, namespace, spec=group)
