"""HAMi's protocol 2.10.0: the documented examples, requests, decisions that its device plugin can decode, and locks."""

from typing import Any

import numpy as np
import pytest

from extender.framework.api_plan import ApiPlan
from extender.framework.status import Status
from extender.plugins.gpu_share import hami
from extender.plugins.gpu_share.device_table import DeviceTable
from extender.plugins.gpu_share.hami import Allocation, HamiRequest, RegisteredDevice
from extender.plugins.gpu_share.plugin import GpuShare
from extender.testing import make_cluster, make_node, make_pod, run_plugin
from tests.unit.plugins.gpu_share.gpu_builders import gpu_node, read_devices, shared_pod
from tests.unit.plugins.gpu_share.test_plugin import TOO_FEW, Scheduler

NOW = 1_705_054_796.7
DOCUMENTED_NODE = (
    "GPU-00552014-5c87-89ac-b1a6-7b53aa24b0ec,10,32768,100,NVIDIA-Tesla V100-PCIE-32GB,0,true:"
    "GPU-0fc3eda5-e98b-a25b-5b0d-cf5c855d1448,10,32768,100,NVIDIA-Tesla V100-PCIE-32GB,0,true:"
)
DOCUMENTED_POD = (
    "GPU-0fc3eda5-e98b-a25b-5b0d-cf5c855d1448,NVIDIA,3000,0:;GPU-0fc3eda5-e98b-a25b-5b0d-cf5c855d1448,NVIDIA,5000,0:;"
)


def decode_as_device_plugin(text: str) -> list[list[tuple[str, str, int, int]]]:
    """Decode the annotation as docs/develop/protocol.md of HAMi 2.10.0 describes it.

    Each container ends with `;`, each device with `:`, and a device has four fields that commas separate: the UUID, the
    keyword of the device type, the memory and the cores.
    """
    assert text.endswith(";")
    containers = []
    for part in text[:-1].split(";"):
        assert part == "" or part.endswith(":")
        devices = [device.split(",") for device in part.split(":") if device]
        assert all(len(fields) == 4 for fields in devices)
        containers.append([(uuid, kind, int(memory), int(cores)) for uuid, kind, memory, cores in devices])
    return containers


def hami_node(name: str, devices: int = 2, memory: int = 16_000, split: int = 10, lock: str = "") -> Any:
    """Return a node whose GPUs the device plugin registered as JSON, and whose kubelet reports the shares."""
    node = make_node(name, cpu="32", **dict[str, Any]({hami.GPU: str(devices * split)}))
    fields = '{{"id":"{0}-{1}","index":{1},"count":{2},"devmem":{3},"devcore":100,"type":"NVIDIA-T4","health":true}}'
    text = ",".join(fields.format(name, index, split, memory) for index in range(devices))
    node["metadata"]["annotations"] = {hami.REGISTERED: f"[{text}]", **({hami.LOCK: lock} if lock else {})}
    return node


def hami_pod(name: str, node: str = "", allocated: str = "", **resources: str) -> Any:
    """Return a pod that requests `nvidia.com/<resource>`."""
    annotations = {hami.ALLOCATED: allocated} if allocated else {}
    requests: dict[str, Any] = {f"nvidia.com/{key.replace('_', '-')}": value for key, value in resources.items()}
    return make_pod(name, node=node, annotations=annotations, cpu="1", **requests)


def test_the_documented_annotations_are_read() -> None:
    first, second = hami.parse_registered_devices(DOCUMENTED_NODE)
    assert first == RegisteredDevice("GPU-00552014-5c87-89ac-b1a6-7b53aa24b0ec", 10, 32768, True)
    assert second.id == "GPU-0fc3eda5-e98b-a25b-5b0d-cf5c855d1448"
    assert hami.decode_allocations({hami.TO_ALLOCATE: DOCUMENTED_POD}) == [
        Allocation("GPU-0fc3eda5-e98b-a25b-5b0d-cf5c855d1448", 3000, 0),
        Allocation("GPU-0fc3eda5-e98b-a25b-5b0d-cf5c855d1448", 5000, 0),
    ]
    # The device plugin erases the first annotation while it gives the pod its GPUs.
    assert hami.decode_allocations({hami.TO_ALLOCATE: ";;", hami.ALLOCATED: "u,NVIDIA,7,50:;"}) == [
        Allocation("u", 7, 50)
    ]


@pytest.mark.parametrize(
    "text",
    [
        "",
        "GPU-1",
        "GPU-1,10,x,100,T4,0,true:",
        "GPU-1,10,1000000000,100,T4,0,true:",
        "[{]",
        '[{"id": 1}]',
        '[{"id": "a", "count": 1000000000}]',
        '[{"id": "a", "devmem": -1}]',
        "[" + " " * 300_000 + "]",
    ],
)
def test_an_invalid_registration_registers_no_gpu(text: str) -> None:
    assert hami.parse_registered_devices(text) == ()


def test_a_decision_has_the_documented_format() -> None:
    """The second of two containers gets 3,000 MiB and all cores of the second documented GPU."""
    devices = hami.parse_registered_devices(DOCUMENTED_NODE)
    request = HamiRequest(1, 3000, 100, 0, container=1, container_count=2)
    annotations = hami.make_decision_annotations(request, devices, (1,), "node67-4v100", NOW)
    text = annotations["hami.io/vgpu-devices-to-allocate"]
    assert decode_as_device_plugin(text) == [[], [("GPU-0fc3eda5-e98b-a25b-5b0d-cf5c855d1448", "NVIDIA", 3000, 0)]]
    assert annotations == {
        "hami.io/vgpu-devices-to-allocate": ";GPU-0fc3eda5-e98b-a25b-5b0d-cf5c855d1448,NVIDIA,3000,0:;",
        "hami.io/vgpu-devices-allocated": text,
        "hami.io/vgpu-node": "node67-4v100",
        "hami.io/vgpu-time": "1705054796",
        "hami.io/bind-time": "1705054796",
        "hami.io/bind-phase": "allocating",
    }


@pytest.mark.parametrize(
    ("resources", "expected"),
    [
        ({"gpu": "1"}, (1000, 1)),
        ({"gpu": "2"}, (1000, 2)),
        ({"gpu": "1", "gpumem": "4000"}, (250, 1)),
        ({"gpu": "1", "gpumem": "4001"}, (251, 1)),
        ({"gpu": "1", "gpumem_percentage": "30", "gpucores": "50"}, (500, 1)),
        ({"gpu": "1", "gpumem": "32000"}, (2000, 1)),
        ({"gpu": "2", "gpumem": "4000"}, (1000, 2)),
    ],
)
def test_a_request_is_the_larger_part_of_memory_and_cores(resources: dict[str, str], expected: tuple[int, int]) -> None:
    request = hami.read_hami_request(make_cluster(hami_pod("p", **resources)).pod("p"))
    assert isinstance(request, HamiRequest)
    gpu_request = request.make_gpu_request(16_000)
    assert (gpu_request.milli, gpu_request.count) == expected


def test_a_pod_without_the_resource_has_no_request() -> None:
    assert hami.read_hami_request(make_cluster(make_pod("p", cpu="1")).pod("p")) is None


@pytest.mark.parametrize(
    ("pod", "message"),
    [
        (hami_pod("p", gpu="65"), "a pod can request 1 to 64 GPUs, got 65"),
        (hami_pod("p", gpu="1", gpucores="101"), "nvidia.com/gpumem-percentage and nvidia.com/gpucores must be 100 or"),
        (
            make_pod("p", **dict[str, Any]({hami.GPU: "1", "alibabacloud.com/gpu-milli": "300"})),
            "a pod can request either nvidia.com/gpu or alibabacloud.com/gpu-milli",
        ),
        (
            make_pod("p", annotations={"nvidia.com/use-gputype": "A100"}, **dict[str, Any]({hami.GPU: "1"})),
            "annotation nvidia.com/use-gputype is not supported",
        ),
    ],
)
def test_a_request_that_is_not_supported_is_rejected_with_its_reason(pod: Any, message: str) -> None:
    assert message in (run_plugin(GpuShare, make_cluster(hami_node("a"), pod), "p").message or "")


def test_two_containers_with_gpus_are_rejected() -> None:
    pod = hami_pod("p", gpu="1")
    pod["spec"]["containers"].append({**pod["spec"]["containers"][0], "name": "second"})
    message = run_plugin(GpuShare, make_cluster(hami_node("a"), pod), "p").message or ""
    assert "only one container of a pod can request nvidia.com/gpu" in message


def test_the_table_reads_registered_gpus_and_the_pods_on_them() -> None:
    table, devices = read_devices(
        hami_node("a", devices=3, split=2),
        gpu_node("b"),
        hami_pod("p1", "a", "a-1,NVIDIA,4000,10:;", gpu="1"),
        hami_pod("p2", "a", "a-1,NVIDIA,1600,30:;", gpu="1"),
        hami_pod("p3", "a", gpu="1", gpumem="8000"),
    )
    # Two pods share the second GPU, which is the maximum; the pod without an annotation takes half a GPU.
    assert devices.free[0, :3].tolist() == [500, 0, 1000]
    assert devices.memory.tolist() == [16_000, 0]
    assert devices.device_count.tolist() == [3, 2]
    assert table.find_hami_memory() == 16_000
    assert [device.id for device in table.get_registered_devices("a")] == ["a-0", "a-1", "a-2"]


def test_the_gpus_of_removed_nodes_are_forgotten() -> None:
    cluster = make_cluster(hami_node("a"), hami_node("b"), gpu_node("c"))
    table, cache = DeviceTable(), cluster.cache
    table.get(cache.snapshot().view())
    cache.remove_node("a")
    table.get(cache.snapshot().view())
    assert list(table._registered) == ["b"]
    assert len(table.get_registered_devices("b")) == 2


def test_amounts_that_any_pod_may_write_do_not_disturb_other_pods() -> None:
    """A pod's annotation is not validated by the API server, and neither is the amount of an extended resource."""
    huge = f"a-0,NVIDIA,{'9' * 5000},0:a-0,NVIDIA,1,{'9' * 4000}:a-0,NVIDIA,999999999,999999999:;"
    requested = hami_pod("p2", "b", gpu="1", gpumem="9" * 18)
    _, devices = read_devices(hami_node("a"), hami_node("b"), hami_pod("p1", "a", huge, gpu="1"), requested)
    assert devices.free[:, :2].tolist() == [[0, 1000], [1000, 1000]]
    cluster = make_cluster(hami_node("a"), hami_node("b"), requested, hami_pod("next", gpu="1", gpumem="8000"))
    assert run_plugin(GpuShare, cluster, "next").rejected == {}
    message = "a pod can request at most 999999999 of nvidia.com/gpumem, got 1000000000"
    pod = make_cluster(hami_pod("p", gpu="1", gpumem="1G")).pod("p")
    assert hami.read_hami_request(pod) == message


def test_memory_counts_in_proportion_to_that_of_the_node() -> None:
    cluster = make_cluster(
        hami_node("small", memory=8_000),
        hami_node("large", memory=32_000),
        gpu_node("other"),
        hami_pod("used", "large", "large-0,NVIDIA,20000,0:large-1,NVIDIA,20000,0:;", gpu="2"),
        hami_pod("ten", gpu="1", gpumem="10000"),
        hami_pod("fourteen", gpu="1", gpumem="14000"),
        shared_pod("shared", 100),
    )
    assert run_plugin(GpuShare, cluster, "ten").rejected == {"other": TOO_FEW, "small": TOO_FEW}
    assert run_plugin(GpuShare, cluster, "fourteen").rejected == dict.fromkeys(("small", "large", "other"), TOO_FEW)
    assert run_plugin(GpuShare, cluster, "shared").rejected == dict.fromkeys(("small", "large"), TOO_FEW)


def test_each_milli_is_that_of_the_nodes_memory() -> None:
    request = HamiRequest(1, 4000, 100, 0, 0, 1)
    milli = hami.compute_milli_by_node(request, np.array([8000, 0, 16_000], dtype=np.int64)).tolist()
    assert (milli[0], milli[2]) == (500, 250)
    assert milli[1] > 1000, "no GPU"


class FixedClock:
    """A clock that stands still."""

    def monotonic(self) -> float:
        return 0.0

    def now(self) -> float:
        return NOW


def place(*objects: Any) -> ApiPlan | Status:
    """Place the pod p on the only node, and return PreBind's result."""
    cluster = make_cluster(*objects)
    scheduler = Scheduler(cluster.cache, "BestFit")
    scheduler.plugin._clock = FixedClock()
    result = scheduler.place(cluster.pod("p"), assume_first=True)
    assert result is not None
    return result[1]


def test_pre_bind_locks_the_node_and_then_writes_the_decision() -> None:
    used = hami_pod("used", "a", "a-1,NVIDIA,4000,0:;", gpu="1")
    plan = place(hami_node("a"), used, hami_pod("p", gpu="1", gpumem_percentage="50"))
    assert isinstance(plan, ApiPlan)
    lock, decision = plan.calls
    assert (lock.verb, lock.kind, lock.name) == ("patch", "Node", "a")
    assert lock.body["metadata"]["annotations"] == {"hami.io/mutex.lock": "2024-01-12T10:19:56Z,default,p"}
    assert "resourceVersion" in lock.body["metadata"], "a lock that another process wrote is not replaced"
    assert (decision.kind, decision.name, decision.subresource) == ("Pod", "p", "status")
    text = decision.body["metadata"]["annotations"]["hami.io/vgpu-devices-to-allocate"]
    assert decode_as_device_plugin(text) == [[("a-1", "NVIDIA", 8000, 0)]]


@pytest.mark.parametrize(
    ("lock", "owner"),
    [
        ("2024-01-12T10:19:00Z,shop,web", "shop/web"),
        ("2024-01-12T10:19:00Z", "HAMi"),
        ("2024-01-12T10:14:00Z,shop,web", ""),
        ("2024-01-12T10:19:00Z,default,p", ""),
        ("invalid", ""),
    ],
    ids=["another pod", "unknown owner", "expired", "the pod itself", "invalid"],
)
def test_a_locked_node_is_an_error_until_the_lock_expires(lock: str, owner: str) -> None:
    result = place(hami_node("a", lock=lock), hami_pod("p", gpu="1"))
    if owner:
        assert isinstance(result, Status)
        assert result.message == f'node "a" is locked for the GPUs of {owner}'
    else:
        assert isinstance(result, ApiPlan)


def test_unreserve_unlocks_the_node_only_if_the_lock_was_written() -> None:
    cluster = make_cluster(hami_node("a"), hami_pod("p", gpu="1"))
    scheduler = Scheduler(cluster.cache, "BestFit")
    snapshot = cluster.cache.snapshot()
    info = snapshot.make_pod_info(cluster.pod("p"))
    state = scheduler.plugin.pre_filter(info, snapshot).state
    assert scheduler.plugin.reserve(info, "a", snapshot, state) is None
    plan = scheduler.plugin.pre_bind(info, "a", snapshot, state)
    assert scheduler.plugin.unreserve(info, "a", state) == ()
    assert scheduler.plugin.reserve(info, "a", snapshot, state) is None
    plan.calls[0].on_written("7")
    (unlock,) = scheduler.plugin.unreserve(info, "a", state)
    assert (unlock.kind, unlock.body) == ("Node", {"metadata": {"annotations": {"hami.io/mutex.lock": None}}})
    assert scheduler.plugin.unreserve(info, "a", state) == ()


def test_learnt_pods_count_with_the_memory_of_the_nodes() -> None:
    cluster = make_cluster(hami_node("a"), hami_pod("p", gpu="1", gpumem="4000"))
    scheduler = Scheduler(cluster.cache, "FGD", learned=True)
    assert scheduler.place(cluster.pod("p"), assume_first=True) is not None
    assert [(pod.gpu_milli, pod.gpu_count) for pod in scheduler.plugin._workload.target.pods] == [(250, 1)]
