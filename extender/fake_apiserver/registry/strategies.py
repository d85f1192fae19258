"""Prepare objects for create and update, and validate updates, for all resources except pods."""

from collections.abc import Callable, Mapping
from typing import Final

from extender.fake_apiserver.registry.api_errors import StatusCause, new_invalid
from extender.fake_apiserver.registry.pod_defaults import set_defaults
from extender.fake_apiserver.registry.resources import PRIORITY_CLASSES, Object

_PrepareForCreate = Callable[[Object], Object]


def _prepare_node(node: Object) -> Object:
    status = dict(node.get("status") or {})
    if status.get("capacity") and not status.get("allocatable"):
        status["allocatable"] = status["capacity"]
    status.setdefault("daemonEndpoints", {"kubeletEndpoint": {"Port": 0}})
    return {**node, "spec": node.get("spec") or {}, "status": status}


def _prepare_namespace(namespace: Object) -> Object:
    meta = namespace["metadata"]
    labels = {**(meta.get("labels") or {}), "kubernetes.io/metadata.name": meta["name"]}
    spec = {"finalizers": ["kubernetes"], **(namespace.get("spec") or {})}
    return {**namespace, "metadata": {**meta, "labels": labels}, "spec": spec, "status": {"phase": "Active"}}


def _prepare_persistent_volume_claim(claim: Object) -> Object:
    spec = {"volumeMode": "Filesystem", **(claim.get("spec") or {})}
    return {**claim, "spec": spec, "status": {"phase": "Pending"}}


def _prepare_persistent_volume(volume: Object) -> Object:
    defaults = {"persistentVolumeReclaimPolicy": "Retain", "volumeMode": "Filesystem"}
    return {**volume, "spec": {**defaults, **(volume.get("spec") or {})}, "status": {"phase": "Pending"}}


def _prepare_storage_class(storage_class: Object) -> Object:
    return {"reclaimPolicy": "Delete", "volumeBindingMode": "Immediate", **storage_class}


def _prepare_priority_class(priority_class: Object) -> Object:
    return {"value": 0, "preemptionPolicy": "PreemptLowerPriority", **priority_class}


def _prepare_service(service: Object) -> Object:
    spec = {"type": "ClusterIP", "sessionAffinity": "None", **(service.get("spec") or {})}
    if spec["type"] == "ClusterIP":
        spec.setdefault("clusterIP", "None")
    return {**service, "spec": spec, "status": {"loadBalancer": {}}}


def _prepare_disruption_budget(budget: Object) -> Object:
    counts = ("currentHealthy", "desiredHealthy", "disruptionsAllowed", "expectedPods")
    return {**budget, "spec": budget.get("spec") or {}, "status": dict.fromkeys(counts, 0)}


def _prepare_csi_driver(driver: Object) -> Object:
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


def _prepare_resource_claim(claim: Object) -> Object:
    return {**claim, "spec": _set_device_defaults(claim.get("spec") or {}), "status": {}}


def _prepare_resource_claim_template(template: Object) -> Object:
    template_spec = template.get("spec") or {}
    return {**template, "spec": {**template_spec, "spec": _set_device_defaults(template_spec.get("spec") or {})}}


def _set_device_defaults(spec: Object) -> Object:
    """Set the device count of each request.

    Source: pkg/apis/resource/v1/defaults.go, SetDefaults_ExactDeviceRequest (1.36).
    """
    devices = spec.get("devices") or {}
    if not devices.get("requests"):
        return spec
    return {
        **spec,
        "devices": {**devices, "requests": [_set_request_defaults(request) for request in devices["requests"]]},
    }


def _set_request_defaults(request: Object) -> Object:
    defaulted_request = dict(request)
    if request.get("exactly"):
        defaulted_request["exactly"] = _set_device_count(request["exactly"])
    if request.get("firstAvailable"):
        defaulted_request["firstAvailable"] = [
            _set_device_count(subrequest) for subrequest in request["firstAvailable"]
        ]
    return defaulted_request


def _set_device_count(request: Object) -> Object:
    defaulted_request = {"allocationMode": "ExactCount", **request}
    return (
        {"count": 1, **defaulted_request} if defaulted_request["allocationMode"] == "ExactCount" else defaulted_request
    )


def _prepare_replicated_workload(workload: Object) -> Object:
    spec = {"replicas": 1, **(workload.get("spec") or {})}
    template = spec.get("template")
    if isinstance(template, dict) and isinstance(template.get("spec"), dict):
        spec["template"] = {**template, "spec": set_defaults(template["spec"], template=True)}
    return {**workload, "spec": spec, "status": {"replicas": 0}}


_PREPARE_FOR_CREATE: Final[Mapping[str, _PrepareForCreate]] = {
    "CSIDriver": _prepare_csi_driver,
    "Namespace": _prepare_namespace,
    "Node": _prepare_node,
    "PersistentVolume": _prepare_persistent_volume,
    "PersistentVolumeClaim": _prepare_persistent_volume_claim,
    "PodDisruptionBudget": _prepare_disruption_budget,
    "PriorityClass": _prepare_priority_class,
    "ReplicaSet": _prepare_replicated_workload,
    "ReplicationController": _prepare_replicated_workload,
    "ResourceClaim": _prepare_resource_claim,
    "ResourceClaimTemplate": _prepare_resource_claim_template,
    "Service": _prepare_service,
    "StatefulSet": _prepare_replicated_workload,
    "StorageClass": _prepare_storage_class,
}


def prepare_for_create(kind: str, content: Object, *, has_status: bool) -> Object:
    """Return a new object with defaults and an initial status.

    A node keeps the status in the request, because kubelets create nodes with a status.
    """
    if prepare := _PREPARE_FOR_CREATE.get(kind):
        return prepare(content)
    return {**content, "status": {}} if has_status else content


def validate_update(kind: str, old: Object, new: Object) -> None:
    """Reject an invalid update of an object of *kind*.

    Raises:
        StatusError: 422 if the value of a PriorityClass changes.
    """
    if kind == "PriorityClass" and old.get("value", 0) != new.get("value", 0):
        cause = StatusCause("value", "FieldValueForbidden", "Forbidden: may not be changed in an update.")
        raise new_invalid(PRIORITY_CLASSES, new["metadata"]["name"], [cause])


def prepare_for_update(kind: str, content: Object) -> Object:
    """Return an updated object with defaults."""
    return _prepare_node(content) if kind == "Node" else content
