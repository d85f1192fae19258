"""What the server fills in and checks for kinds other than pods when they are created or changed."""

from collections.abc import Callable, Mapping
from typing import Final

from extender.sandbox.pod_defaults import with_defaults
from extender.sandbox.refusals import Wrong, invalid
from extender.sandbox.served import PRIORITY_CLASSES, Object

_Rule = Callable[[Object], Object]


def _node(node: Object) -> Object:
    status = dict(node.get("status") or {})
    if status.get("capacity") and not status.get("allocatable"):
        status["allocatable"] = status["capacity"]
    status.setdefault("daemonEndpoints", {"kubeletEndpoint": {"Port": 0}})
    return {**node, "spec": node.get("spec") or {}, "status": status}


def _namespace(namespace: Object) -> Object:
    meta = namespace["metadata"]
    labels = {**(meta.get("labels") or {}), "kubernetes.io/metadata.name": meta["name"]}
    spec = {"finalizers": ["kubernetes"], **(namespace.get("spec") or {})}
    return {**namespace, "metadata": {**meta, "labels": labels}, "spec": spec, "status": {"phase": "Active"}}


def _claim(claim: Object) -> Object:
    spec = {"volumeMode": "Filesystem", **(claim.get("spec") or {})}
    return {**claim, "spec": spec, "status": {"phase": "Pending"}}


def _volume(volume: Object) -> Object:
    defaults = {"persistentVolumeReclaimPolicy": "Retain", "volumeMode": "Filesystem"}
    return {**volume, "spec": {**defaults, **(volume.get("spec") or {})}, "status": {"phase": "Pending"}}


def _storage_class(cls: Object) -> Object:
    return {"reclaimPolicy": "Delete", "volumeBindingMode": "Immediate", **cls}


def _priority_class(cls: Object) -> Object:
    return {"value": 0, "preemptionPolicy": "PreemptLowerPriority", **cls}


def _service(service: Object) -> Object:
    spec = {"type": "ClusterIP", "sessionAffinity": "None", **(service.get("spec") or {})}
    if spec["type"] == "ClusterIP":
        spec.setdefault("clusterIP", "None")
    return {**service, "spec": spec, "status": {"loadBalancer": {}}}


def _budget(budget: Object) -> Object:
    counts = ("currentHealthy", "desiredHealthy", "disruptionsAllowed", "expectedPods")
    return {**budget, "spec": budget.get("spec") or {}, "status": dict.fromkeys(counts, 0)}


def _driver(driver: Object) -> Object:
    defaults = {
        "attachRequired": True,
        "fsGroupPolicy": "ReadWriteOnceWithFSType",
        "podInfoOnMount": False,
        "requiresRepublish": False,
        "seLinuxMount": False,
        "storageCapacity": False,
        "volumeLifecycleModes": ["Persistent"],
    }
    return {**driver, "spec": {**defaults, **(driver.get("spec") or {})}}


def _device_claim(claim: Object) -> Object:
    return {**claim, "spec": _device_spec(claim.get("spec") or {}), "status": {}}


def _device_claim_template(template: Object) -> Object:
    outer = template.get("spec") or {}
    return {**template, "spec": {**outer, "spec": _device_spec(outer.get("spec") or {})}}


def _device_spec(spec: Object) -> Object:
    """With the number of devices each request is for. Source: pkg/apis/resource/v1/defaults.go."""
    devices = spec.get("devices") or {}
    if not devices.get("requests"):
        return spec
    return {**spec, "devices": {**devices, "requests": [_device_request(each) for each in devices["requests"]]}}


def _device_request(request: Object) -> Object:
    filled = dict(request)
    if request.get("exactly"):
        filled["exactly"] = _counted(request["exactly"])
    if request.get("firstAvailable"):
        filled["firstAvailable"] = [_counted(each) for each in request["firstAvailable"]]
    return filled


def _counted(wanted: Object) -> Object:
    filled = {"allocationMode": "ExactCount", **wanted}
    return {"count": 1, **filled} if filled["allocationMode"] == "ExactCount" else filled


def _workload(workload: Object) -> Object:
    spec = {"replicas": 1, **(workload.get("spec") or {})}
    template = spec.get("template")
    if isinstance(template, dict) and isinstance(template.get("spec"), dict):
        spec["template"] = {**template, "spec": with_defaults(template["spec"], template=True)}
    return {**workload, "spec": spec, "status": {"replicas": 0}}


_CREATED: Final[Mapping[str, _Rule]] = {
    "CSIDriver": _driver,
    "Namespace": _namespace,
    "Node": _node,
    "PersistentVolume": _volume,
    "PersistentVolumeClaim": _claim,
    "PodDisruptionBudget": _budget,
    "PriorityClass": _priority_class,
    "ReplicaSet": _workload,
    "ReplicationController": _workload,
    "ResourceClaim": _device_claim,
    "ResourceClaimTemplate": _device_claim_template,
    "Service": _service,
    "StatefulSet": _workload,
    "StorageClass": _storage_class,
}


def created(kind: str, thing: Object, *, status_apart: bool) -> Object:
    """An object as it is stored when it is created: with defaults, and without a status of the caller's.

    Nodes keep theirs: kubelets create them with it.
    """
    if rule := _CREATED.get(kind):
        return rule(thing)
    return {**thing, "status": {}} if status_apart else thing


def check_update(kind: str, old: Object, new: Object) -> None:
    """Refuse a change that the kind does not allow.

    Raises:
        RefusedError: 422.
    """
    if kind == "PriorityClass" and old.get("value", 0) != new.get("value", 0):
        wrong = Wrong("value", "FieldValueForbidden", "Forbidden: may not be changed in an update.")
        raise invalid(PRIORITY_CLASSES, new["metadata"]["name"], [wrong])


def updated(kind: str, thing: Object) -> Object:
    """An object as it is stored when it is changed: defaults that hold then, too."""
    return _node(thing) if kind == "Node" else thing
