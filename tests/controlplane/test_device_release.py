"""Devices of a job that ended are allocated to the next job."""

from typing import Final

from tests.controlplane import scheduling_scenario
from tests.controlplane.api_client import ApiClient, JsonObject
from tests.controlplane.control_plane import ControlPlane
from tests.controlplane.scheduling_scenario import device_spec, make_device_claim, make_pod

_CAPACITY: Final = {"cpu": "4", "memory": "8Gi", "pods": "10"}
_JOBS: Final = 3
_ATTACHED: Final = {"driver": "gpu.example.com", "pool": "gamma", "device": "gpu-0", "request": "gpu"}


def test_a_device_is_allocated_again_after_its_claim_was_freed_and_deleted(
    control_plane: ControlPlane, api: ApiClient
) -> None:
    """Each job gets the only device; its claim is freed and deleted before the scheduler looks at claims again."""
    node = {"kind": "Node", "metadata": {"name": "gamma", "labels": {scheduling_scenario.HOST: "gamma"}}}
    api.create({**node, "status": {"capacity": _CAPACITY, "allocatable": _CAPACITY}})
    pool = {"name": "gamma", "generation": 1, "resourceSliceCount": 1}
    resource_slice = {"driver": "gpu.example.com", "nodeName": "gamma", "pool": pool, "devices": [{"name": "gpu-0"}]}
    api.create({"kind": "DeviceClass", "metadata": {"name": "gpu"}, "spec": {}})
    api.create({"kind": "ResourceSlice", "metadata": {"name": "gamma-gpus"}, "spec": resource_slice})
    control_plane.start_extender({})
    for number in range(_JOBS):
        claim = api.create(make_device_claim(f"claim-{number}"))
        pod = api.create(make_pod(f"job-{number}", **device_spec(f"claim-{number}")))
        api.wait_for(pod, lambda obj: bool(obj["spec"].get("nodeName")), "binding")
        _end_job(api, pod, claim)


def test_a_claim_that_is_allocated_on_an_unschedulable_node_is_deallocated(
    control_plane: ControlPlane, api: ApiClient
) -> None:
    """The claim was allocated for a pod that is gone; the new pod gets a device of the other node.

    Source: pkg/scheduler/framework/plugins/dynamicresources/dynamicresources.go, DynamicResources.PostFilter (1.36).
    """
    api.create({"kind": "DeviceClass", "metadata": {"name": "gpu"}, "spec": {}})
    for name, cordoned in (("gamma", True), ("delta", False)):
        node = {"kind": "Node", "metadata": {"name": name, "labels": {scheduling_scenario.HOST: name}}}
        status = {"capacity": _CAPACITY, "allocatable": _CAPACITY}
        api.create({**node, "spec": {"unschedulable": cordoned}, "status": status})
        pool = {"name": name, "generation": 1, "resourceSliceCount": 1}
        spec = {"driver": "gpu.example.com", "nodeName": name, "pool": pool, "devices": [{"name": "gpu-0"}]}
        api.create({"kind": "ResourceSlice", "metadata": {"name": f"{name}-gpus"}, "spec": spec})
    claim = api.create(make_device_claim("claim"))
    field = {"matchFields": [{"key": "metadata.name", "operator": "In", "values": ["gamma"]}]}
    allocation = {"devices": {"results": [_ATTACHED]}, "nodeSelector": {"nodeSelectorTerms": [field]}}
    reference = {"kind": "ResourceClaim", "metadata": {"name": "claim", "namespace": "default"}}
    api.patch(reference, {"metadata": {"finalizers": ["resource.kubernetes.io/delete-protection"]}})
    api.patch(reference, {"status": {"allocation": allocation}}, "status")
    control_plane.start_extender({})
    pod = api.create(make_pod("job", **device_spec("claim")))
    bound_pod = api.wait_for(pod, lambda obj: bool(obj["spec"].get("nodeName")), "binding")
    assert bound_pod["spec"]["nodeName"] == "delta"
    device = api.get("ResourceClaim", claim["metadata"]["name"], "default")["status"]["allocation"]["devices"]
    assert [result["pool"] for result in device["results"]] == ["delta"]


def _end_job(api: ApiClient, pod: JsonObject, claim: JsonObject) -> None:
    """Delete the pod, and free and delete the claim as kube-controller-manager does."""
    api.delete(pod)
    reference = {"kind": "ResourceClaim", "metadata": {"name": claim["metadata"]["name"], "namespace": "default"}}
    api.patch(reference, {"status": {"allocation": None, "reservedFor": None}}, "status")
    api.patch(reference, {"metadata": {"finalizers": None}})
    api.delete(reference)
