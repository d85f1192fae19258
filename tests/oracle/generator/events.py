"""Makes random changes of the objects of a scenario, for which the queueing hints are compared."""

from copy import deepcopy
from typing import Any, Final

from tests.oracle.generator.builder import ClusterBuilder, Raw

_RESOURCES: Final = {
    "Node": "Node",
    "PersistentVolume": "PersistentVolume",
    "PersistentVolumeClaim": "PersistentVolumeClaim",
    "StorageClass": "storage.k8s.io/StorageClass",
    "CSINode": "storage.k8s.io/CSINode",
    "CSIDriver": "storage.k8s.io/CSIDriver",
    "CSIStorageCapacity": "storage.k8s.io/CSIStorageCapacity",
    "VolumeAttachment": "storage.k8s.io/VolumeAttachment",
    "ResourceClaim": "resource.k8s.io/ResourceClaim",
    "ResourceSlice": "resource.k8s.io/ResourceSlice",
    "DeviceClass": "resource.k8s.io/DeviceClass",
    "PodGroup": "scheduling.k8s.io/PodGroup",
    "CompositePodGroup": "scheduling.k8s.io/CompositePodGroup",
}
"""kube-scheduler's names of event resources, by kind."""


_UNSCHEDULED_POD: Final = {"1.36": "UnschedulablePod", "1.37": "UnscheduledPod"}
"""kube-scheduler's name of the event resource of a pod without a node, by Kubernetes minor."""


def make_events(builder: ClusterBuilder, items: list[Raw], version: str) -> list[Raw]:
    """Return changes of some objects: additions, deletions, and updates from an object that has parts of another."""
    events: list[Raw] = []
    for kind, resource in _RESOURCES.items():
        objects = [item for item in items if item["kind"] == kind]
        count = 4 if kind == "Node" else 2
        events += [_change(builder, resource, objects) for _ in range(count) if objects]
    pods = [item for item in items if item["kind"] == "Pod" and item["status"]["phase"] not in ("Succeeded", "Failed")]
    assigned = [pod for pod in pods if pod["spec"].get("nodeName")]
    pending = [pod for pod in pods if not pod["spec"].get("nodeName")]
    events += [_change(builder, "AssignedPod", assigned, ("nodeName",)) for _ in range(5) if assigned]
    for pod in builder.sample(pending, 0, 3):
        old = _mix(builder, pod, pending, ("nodeName", "schedulerName"))
        events.append({"resource": "TargetPod", "action": "Update", "old": old, "new": pod, "target": True})
    members = [pod for pod in pending if "schedulingGroup" in pod["spec"]]
    events += [{"resource": _UNSCHEDULED_POD[version], "action": "Add", "old": None, "new": pod} for pod in members[:2]]
    return events


def _change(builder: ClusterBuilder, resource: str, objects: list[Raw], fixed: tuple[str, ...] = ()) -> Raw:
    item = builder.pick(objects)
    action = builder.pick(("Add", "Delete", "Update", "Update", "Update"))
    if action == "Update":
        return {"resource": resource, "action": action, "old": _mix(builder, item, objects, fixed), "new": item}
    sides = (None, item) if action == "Add" else (item, None)
    return {"resource": resource, "action": action, "old": sides[0], "new": sides[1]}


def _mix(builder: ClusterBuilder, item: Raw, objects: list[Raw], fixed: tuple[str, ...]) -> Raw:
    """Return *item* with some parts of another object. The *fixed* fields of its spec stay."""
    mixed, other = deepcopy(item), deepcopy(builder.pick(objects))
    for target, source, names in (
        (mixed, other, ("spec", "status", "data")),
        (mixed["metadata"], other["metadata"], ("labels", "annotations")),
    ):
        for name in names:
            if builder.chance(0.5):
                target.pop(name, None)
                if name in source:
                    target[name] = source[name]
    spec: dict[str, Any] = mixed.get("spec", {})
    for name in fixed:
        spec.pop(name, None)
        if name in item["spec"]:
            spec[name] = item["spec"][name]
    return mixed
