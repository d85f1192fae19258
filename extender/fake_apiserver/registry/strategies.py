"""Prepare objects for create and update, and validate updates, for all resources except pods."""

from collections.abc import Callable, Mapping
from typing import Final

from extender.fake_apiserver.registry.api_errors import StatusCause, new_invalid
from extender.fake_apiserver.registry.pod_defaults import set_defaults
from extender.fake_apiserver.registry.resources import PRIORITY_CLASSES, Object

_DEFAULT_FIELDS: Final[Mapping[str, Object]] = {
    "PriorityClass": {"value": 0, "preemptionPolicy": "PreemptLowerPriority"},
    "StorageClass": {"reclaimPolicy": "Delete", "volumeBindingMode": "Immediate"},
}
"""The default fields of new objects by kind."""

_DEFAULT_SPECS: Final[Mapping[str, Object]] = {
    "CSIDriver": {
        "attachRequired": True,
        "fsGroupPolicy": "ReadWriteOnceWithFSType",
        "podInfoOnMount": False,
        "requiresRepublish": False,
        "seLinuxMount": False,
        "storageCapacity": False,
        "volumeLifecycleModes": ["Persistent"],
    },
    "PersistentVolume": {"persistentVolumeReclaimPolicy": "Retain", "volumeMode": "Filesystem"},
    "PersistentVolumeClaim": {"volumeMode": "Filesystem"},
    "PodDisruptionBudget": {},
}
"""The default fields of the spec of new objects by kind."""

_INITIAL_STATUSES: Final[Mapping[str, Object]] = {
    "PersistentVolume": {"phase": "Pending"},
    "PersistentVolumeClaim": {"phase": "Pending"},
    "PodDisruptionBudget": {"currentHealthy": 0, "desiredHealthy": 0, "disruptionsAllowed": 0, "expectedPods": 0},
}
"""The status of new objects by kind; empty for other kinds with a status."""


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


def _prepare_service(service: Object) -> Object:
    spec = {"type": "ClusterIP", "sessionAffinity": "None", **(service.get("spec") or {})}
    if spec["type"] == "ClusterIP":
        spec.setdefault("clusterIP", "None")
    return {**service, "spec": spec, "status": {"loadBalancer": {}}}


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


_PREPARE_FOR_CREATE: Final[Mapping[str, Callable[[Object], Object]]] = {
    "Namespace": _prepare_namespace,
    "Node": _prepare_node,
    "ReplicaSet": _prepare_replicated_workload,
    "ReplicationController": _prepare_replicated_workload,
    "ResourceClaim": lambda claim: {**claim, "spec": _set_device_defaults(claim.get("spec") or {}), "status": {}},
    "ResourceClaimTemplate": _prepare_resource_claim_template,
    "Service": _prepare_service,
    "StatefulSet": _prepare_replicated_workload,
}


def prepare_for_create(kind: str, content: Object, *, has_status: bool) -> Object:
    """Return a new object with defaults and an initial status.

    A node keeps the status in the request, because kubelets create nodes with a status.
    """
    if prepare := _PREPARE_FOR_CREATE.get(kind):
        return prepare(content)
    prepared_content = {**_DEFAULT_FIELDS.get(kind, {}), **content}
    if kind in _DEFAULT_SPECS:
        prepared_content["spec"] = {**_DEFAULT_SPECS[kind], **(content.get("spec") or {})}
    if has_status:
        prepared_content["status"] = _INITIAL_STATUSES.get(kind, {})
    return prepared_content


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
