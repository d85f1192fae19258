"""GpuShare with GPUs that DynamicResources allocates, on the real API: shared devices and partitions.

The expected devices follow from the allocator, which takes the first device that fits, and from FGD, which fills the
GPUs that are used. Without GpuShare, NodeResourcesFit spreads the pods over all nodes.
"""

import signal
from collections import defaultdict
from collections.abc import Collection
from typing import Any, Final

from tests.controlplane.api_client import ApiClient, JsonObject, find_condition
from tests.controlplane.control_plane import ControlPlane
from tests.controlplane.process import Process
from tests.controlplane.scheduler_processes import create_all, make_configuration, start_scheduler

DRIVER: Final = "gpu.example.com"
MILLI: Final = "alibabacloud.com/gpu-milli"
COUNT: Final = "alibabacloud.com/gpu-count"
_WORKLOAD: Final = [
    {"cpu": 500, "gpuMilli": 500, "gpuCount": 1, "weight": 0.5},
    {"cpu": 500, "gpuMilli": 1000, "gpuCount": 1, "weight": 0.5},
]


def start(plane: ControlPlane) -> Process:
    """Start `extender schedule` with GpuShare, whose score decides."""
    options = {"scorePolicy": "FGD", "targetWorkload": _WORKLOAD, "dynamicResources": [{"driver": DRIVER}]}
    profile = {
        "schedulerName": "default-scheduler",
        "plugins": {"multiPoint": {"enabled": [{"name": "GpuShare", "weight": 100}]}},
        "pluginConfig": [{"name": "GpuShare", "args": options}],
    }
    return start_scheduler(plane, {**make_configuration(plane), "profiles": [profile]})


def make_node(name: str, **gpus: str) -> JsonObject:
    """Make a node."""
    capacity = {"cpu": "16", "memory": "64Gi", "pods": "100", **gpus}
    return {"kind": "Node", "metadata": {"name": name}, "status": {"capacity": capacity, "allocatable": capacity}}


def make_slice(node: str, devices: list[JsonObject], name: str = "", count: int = 1, **spec: Any) -> JsonObject:
    """Make a slice of a node."""
    pool = {"name": node, "generation": 1, "resourceSliceCount": count}
    body = {"driver": DRIVER, "nodeName": node, "pool": pool, **({"devices": devices} if devices else {}), **spec}
    return {"kind": "ResourceSlice", "metadata": {"name": name or node}, "spec": body}


def make_shared_devices() -> list[JsonObject]:
    """Make two GPUs of 80Gi that claims share."""
    policy = {"default": "1Gi", "validRange": {"min": "1Gi", "step": "1Gi"}}
    capacity = {"memory": {"value": "80Gi", "requestPolicy": policy}}
    return [{"name": f"gpu-{index}", "allowMultipleAllocations": True, "capacity": capacity} for index in range(2)]


def make_partitions() -> list[JsonObject]:
    """Make the partitions of one GPU of 80Gi: all of it, two halves, and four quarters."""
    sizes = {"full": "80Gi", "half-0": "40Gi", "half-1": "40Gi", **{f"quarter-{index}": "20Gi" for index in range(4)}}
    return [
        {
            "name": name,
            "attributes": {"size": {"string": name.partition("-")[0]}},
            "consumesCounters": [{"counterSet": "gpu-0", "counters": {"memory": {"value": memory}}}],
        }
        for name, memory in sizes.items()
    ]


def make_device_class() -> JsonObject:
    """Make the class of the driver's devices."""
    selector = {"cel": {"expression": f'device.driver == "{DRIVER}"'}}
    return {"kind": "DeviceClass", "metadata": {"name": "gpu"}, "spec": {"selectors": [selector]}}


def make_claim_template(name: str, **request: Any) -> JsonObject:
    """Make a template of a claim."""
    devices = {"requests": [{"name": "gpu", "exactly": {"deviceClassName": "gpu", **request}}]}
    meta = {"name": name, "namespace": "default"}
    return {"kind": "ResourceClaimTemplate", "metadata": meta, "spec": {"spec": {"devices": devices}}}


def make_pod(name: str, template: str = "", **requests: str) -> JsonObject:
    """Make a pod with a claim of a template, or without a claim."""
    limits = {name_: value for name_, value in requests.items() if "/" in name_}
    resources: JsonObject = {"requests": {"cpu": "500m", **requests}, "limits": limits}
    spec: JsonObject = {"terminationGracePeriodSeconds": 0}
    if template:
        spec["resourceClaims"] = [{"name": "gpu", "resourceClaimTemplateName": template}]
        resources["claims"] = [{"name": "gpu"}]
    spec["containers"] = [{"name": "app", "image": "app", "resources": resources}]
    return {"kind": "Pod", "metadata": {"name": name, "namespace": "default"}, "spec": spec}


def place(api: ApiClient, name: str, template: str) -> str:
    """Create a pod, and return its node."""
    pod = api.create(make_pod(name, template))
    bound = api.wait_for(pod, lambda obj: "nodeName" in obj["spec"], f"binding of {name}")
    return str(bound["spec"]["nodeName"])


def sum_memory_by_device(api: ApiClient, pods: Collection[str]) -> dict[tuple[str, str], int]:
    """Return the GiB that the claims of *pods* consume of each device, when all of them are allocated."""

    def is_allocated(claim: JsonObject) -> bool:
        owners = {owner["name"] for owner in claim["metadata"].get("ownerReferences", ())}
        return not owners.isdisjoint(pods) and "allocation" in claim.get("status", {})

    claims = api.wait_until(
        "ResourceClaim", lambda objects: sum(map(is_allocated, objects.values())) == len(pods), "allocated claims"
    )
    memory: dict[tuple[str, str], int] = defaultdict(int)
    for claim in filter(is_allocated, claims.values()):
        for result in claim["status"]["allocation"]["devices"]["results"]:
            amount = result.get("consumedCapacity", {}).get("memory", "0Gi")
            memory[result["pool"], result["device"]] += int(amount.removesuffix("Gi"))
    return dict(memory)


def test_halves_fill_the_shared_gpus_one_after_another(control_plane: ControlPlane, api: ApiClient) -> None:
    """Each second half goes to the GPU of the half before. The scheduler is killed between them."""
    nodes = ["a", "b", "c", "d"]
    create_all(api, [make_node(name) for name in nodes])
    create_all(api, [make_slice(name, make_shared_devices()) for name in nodes])
    template = make_claim_template("half", capacity={"requests": {"memory": "40Gi"}})
    create_all(api, [make_device_class(), template])
    control_plane.start_controllers("resourceclaim-controller")
    scheduler, pods = start(control_plane), list[str]()
    for number in range(4):
        first = place(api, f"first-{number}", "half")
        if number % 2:
            scheduler.signal(signal.SIGKILL)
            scheduler.wait()
            scheduler = start(control_plane)
        assert place(api, f"second-{number}", "half") == first
        pods += [f"first-{number}", f"second-{number}"]
        assert sorted(sum_memory_by_device(api, pods).values()) == [80] * (number + 1)


def test_quarters_take_the_partitions_of_a_used_gpu(control_plane: ControlPlane, api: ApiClient) -> None:
    """A half and two quarters fill a GPU. FGD scores a quarter 40 on a free GPU, and 50 on a half used one."""
    counters = [{"name": "gpu-0", "counters": {"memory": {"value": "80Gi"}}}]
    for name in ("e", "f", "g"):
        api.create(make_node(name))
        api.create(make_slice(name, make_partitions(), count=2))
        api.create(make_slice(name, [], f"{name}-counters", count=2, sharedCounters=counters))
    api.create(make_device_class())
    for size in ("half", "quarter"):
        expression = f'device.attributes["{DRIVER}"].size == "{size}"'
        api.create(make_claim_template(size, selectors=[{"cel": {"expression": expression}}]))
    control_plane.start_controllers("resourceclaim-controller")
    start(control_plane)
    node = place(api, "half", "half")
    assert [place(api, f"quarter-{number}", "quarter") for number in range(2)] == [node, node]
    devices = sum_memory_by_device(api, ["half", "quarter-0", "quarter-1"])
    assert set(devices) == {(node, "half-0"), (node, "quarter-0"), (node, "quarter-1")}
    assert place(api, "next", "quarter") != node


def test_pods_that_request_gpus_in_two_ways_do_not_share_a_node(control_plane: ControlPlane, api: ApiClient) -> None:
    """The node has two GPUs in both ways. The pod of 300 milli came before its slice."""
    node = api.create(make_node("both", **{COUNT: "2", MILLI: "2k"}))
    create_all(api, [make_device_class(), make_claim_template("half", capacity={"requests": {"memory": "40Gi"}})])
    control_plane.start_controllers("resourceclaim-controller")
    start(control_plane)
    first = api.create(make_pod("first", **{MILLI: "300"}))
    api.wait_for(first, lambda obj: "nodeName" in obj["spec"], "binding of first")
    api.create(make_slice(node["metadata"]["name"], make_shared_devices()))
    messages = {}
    for name, pod in (
        ("claim", make_pod("claim", "half")),
        ("milli", make_pod("milli", **{MILLI: "300"})),
    ):
        pending = api.wait_for(api.create(pod), is_rejected_by_gpu_share, f"the rejection of {name}")
        messages[name] = find_condition(pending, "PodScheduled")["message"].partition(". ")[0]
    assert messages == {
        "claim": "0/1 nodes are available: 1 node(s) had GPUs for resource claims that pods without claims use",
        "milli": "0/1 nodes are available: 1 node(s) had GPUs that only resource claims can allocate",
    }
    api.delete(first)
    claim_pod = {"kind": "Pod", "metadata": {"name": "claim", "namespace": "default"}}
    api.wait_for(claim_pod, lambda obj: "nodeName" in obj["spec"], "binding of claim")


def is_rejected_by_gpu_share(pod: JsonObject) -> bool:
    """Return whether the scheduler wrote that GpuShare rejected the node of *pod*."""
    conditions = pod["status"].get("conditions", ())
    return any("claims" in condition.get("message", "") and "GPUs" in condition["message"] for condition in conditions)
