"""Nodes, slices and pods whose GPUs DynamicResources allocates, for the tests of GpuShare."""

from typing import Any

from extender.testing import make_node, make_pod

DRIVER = "gpu.example.com"
V1 = "resource.k8s.io/v1"


def device_class(name: str = "gpu") -> dict[str, Any]:
    """Return a device class with the devices of the driver."""
    selector = {"cel": {"expression": f"device.driver == '{DRIVER}'"}}
    return {"apiVersion": V1, "kind": "DeviceClass", "metadata": {"name": name}, "spec": {"selectors": [selector]}}


def shared_device(name: str, memory: str = "80Gi") -> dict[str, Any]:
    """Return a GPU that claims share by memory, in steps of 1Gi."""
    policy = {"default": "1Gi", "validRange": {"min": "1Gi", "step": "1Gi"}}
    capacity = {"memory": {"value": memory, "requestPolicy": policy}}
    return {"name": name, "allowMultipleAllocations": True, "capacity": capacity}


def device_slice(node: str, devices: list[dict[str, Any]], *, name: str = "", **spec: Any) -> dict[str, Any]:
    """Return a slice with *devices* of a node."""
    pool = {"name": node, "generation": 1, "resourceSliceCount": spec.pop("count", 1)}
    body = {"driver": DRIVER, "nodeName": node, "pool": pool, "devices": devices, **spec}
    return {"apiVersion": V1, "kind": "ResourceSlice", "metadata": {"name": name or f"slice-{node}"}, "spec": body}


def partitioned_gpu(node: str) -> list[dict[str, Any]]:
    """Return the slices of a node with one GPU of 80Gi: the whole GPU, two halves and four quarters."""
    counters = [{"name": "gpu-0", "counters": {"memory": {"value": "80Gi"}}}]
    sizes = {"full": "80Gi", "half-0": "40Gi", "half-1": "40Gi", **{f"quarter-{index}": "20Gi" for index in range(4)}}
    devices = [
        {
            "name": name,
            "attributes": {"size": {"string": name.partition("-")[0]}},
            "consumesCounters": [{"counterSet": "gpu-0", "counters": {"memory": {"value": memory}}}],
        }
        for name, memory in sizes.items()
    ]
    counter_slice = device_slice(node, [], name=f"counters-{node}", count=2, sharedCounters=counters)
    del counter_slice["spec"]["devices"]
    return [device_slice(node, devices, count=2), counter_slice]


def memory_claim(name: str, memory: str, *allocated: dict[str, Any], node: str = "") -> dict[str, Any]:
    """Return a claim for a part of one GPU."""
    return claim(name, {"capacity": {"requests": {"memory": memory}}}, *allocated, node=node)


def claim(name: str, request: dict[str, Any], *allocated: dict[str, Any], node: str = "") -> dict[str, Any]:
    """Return a claim, and with *allocated* its devices on *node*."""
    exactly = {"deviceClassName": "gpu", "allocationMode": "ExactCount", "count": 1, **request}
    obj: dict[str, Any] = {
        "apiVersion": V1,
        "kind": "ResourceClaim",
        "metadata": {"name": name, "namespace": "default", "uid": f"uid-{name}"},
        "spec": {"devices": {"requests": [{"name": "gpu", "exactly": exactly}]}},
    }
    if allocated:
        results = [{"request": "gpu", "driver": DRIVER, "pool": node, **device} for device in allocated]
        obj["status"] = {"allocation": {"devices": {"results": results}}}
    return obj


def share(device: str, memory: str) -> dict[str, Any]:
    """Return a share of a GPU in the status of a claim."""
    share_id = "a671734a-e8e5-11e4-8fde-42010af09327"
    return {"device": device, "shareID": share_id, "consumedCapacity": {"memory": memory}}


def claim_pod(name: str, *claims: str, node: str = "", **requests: str) -> dict[str, Any]:
    """Return a pod with these claims."""
    spec = {
        "resourceClaims": [{"name": f"gpu-{number}", "resourceClaimName": item} for number, item in enumerate(claims)]
    }
    pod = dict(make_pod(name, node=node, spec=spec, **dict[str, Any]({"cpu": "1", **requests})))
    pod["metadata"]["uid"] = f"uid-{name}"
    return pod


def gpu_nodes(*names: str) -> list[dict[str, Any]]:
    """Return nodes with 16 CPUs and two shared GPUs of 80Gi each, and the device class."""
    nodes = [dict(make_node(name, cpu="16")) for name in names]
    slices = [device_slice(name, [shared_device("gpu-0"), shared_device("gpu-1")]) for name in names]
    return [*nodes, *slices, device_class()]
