"""HAMi's protocol for NVIDIA GPUs, version 2.10.0: registered devices, requests, and the annotations of a decision.

HAMi's device plugin writes the GPUs of a node to an annotation of the node. It reads the annotations of a bound pod,
gives the pod these GPUs, and limits their memory and cores. The lock on the node names the pod that it reads next.

Source: Project-HAMi/HAMi docs/develop/protocol.md; pkg/device/devices.go, EncodePodSingleDevice, DecodePodDevices,
UnMarshalNodeDevices, DecodeNodeDevices; pkg/device/nvidia/device.go, NvidiaGPUDevices.GenerateResourceRequests,
NvidiaGPUDevices.PatchAnnotations; pkg/util/nodelock/nodelock.go, SetNodeLock, ParseNodeLock (2.10.0).
"""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from functools import lru_cache
from typing import Final, NamedTuple

import msgspec

from extender.api import quantity
from extender.api.kinds.pod import Container, Pod
from extender.api.timestamps import format_time
from extender.cache.tables.arrays import IntArray
from extender.plugins.gpu_share.gpu_request import MAX_DEVICES, MILLI_PER_GPU, GpuRequest

GPU: Final = "nvidia.com/gpu"
MEMORY: Final = "nvidia.com/gpumem"
MEMORY_PERCENTAGE: Final = "nvidia.com/gpumem-percentage"
CORES: Final = "nvidia.com/gpucores"

REGISTERED: Final = "hami.io/node-nvidia-register"
TO_ALLOCATE: Final = "hami.io/vgpu-devices-to-allocate"
ALLOCATED: Final = "hami.io/vgpu-devices-allocated"
LOCK: Final = "hami.io/mutex.lock"

_UNSUPPORTED: Final = (
    "nvidia.com/use-gputype",
    "nvidia.com/nouse-gputype",
    "nvidia.com/use-gpuuuid",
    "nvidia.com/nouse-gpuuuid",
    "nvidia.com/vgpu-mode",
)
_LOCK_SECONDS: Final = 300.0
_MAX_TEXT: Final = 262_144
"""Annotations of an object have at most 256 KiB."""

_MAX_AMOUNT: Final = 999_999_999
"""Limit of the memory in MiB, the cores and the shares of a GPU, so that all amounts are 64-bit integers."""


class RegisteredDevice(msgspec.Struct, frozen=True):
    """A GPU of a node.

    Attributes:
        id: the UUID.
        count: the number of pods that may share it.
        devmem: the memory in MiB.
        health: whether it can be used.
    """

    id: str
    count: int = 1
    devmem: int = 0
    health: bool = False


class Allocation(NamedTuple):
    """A GPU of a container: its UUID, the memory in MiB and the cores in per cent."""

    uuid: str
    memory: int
    cores: int


@dataclass(frozen=True, slots=True)
class HamiRequest:
    """The request of the only container that requests GPUs.

    Attributes:
        count: the number of GPUs.
        memory: the memory of each GPU in MiB; 0 if `memory_percent` counts.
        memory_percent: the memory of each GPU in per cent.
        cores: the cores of each GPU in per cent; 0 if they are not limited.
        container: the position of the container; init containers come first.
        container_count: the number of all containers.
    """

    count: int
    memory: int
    memory_percent: int
    cores: int
    container: int
    container_count: int

    def get_memory(self, device_memory: int) -> int:
        """Return the memory in MiB on a GPU with *device_memory* MiB."""
        return self.memory or device_memory * self.memory_percent // 100

    def make_gpu_request(self, device_memory: int) -> GpuRequest:
        """Return the request on GPUs with *device_memory* MiB. A pod with several GPUs gets whole ones.

        The milli are the larger of the parts of memory and cores. They are more than 1,000 if the memory does not
        suffice.
        """
        milli = compute_milli(self.get_memory(device_memory), self.cores, device_memory)
        return GpuRequest(max(milli, MILLI_PER_GPU) if self.count > 1 else milli, self.count)


def compute_milli(memory: int, cores: int, device_memory: int) -> int:
    """Return the larger of the parts of memory in MiB and cores in per cent, in milli of a GPU, at least 1."""
    return max(1, -(-memory * MILLI_PER_GPU // max(1, device_memory)), cores * MILLI_PER_GPU // 100)


@lru_cache(maxsize=16_384)
def parse_registered_devices(text: str) -> tuple[RegisteredDevice, ...]:
    """Return the GPUs in the node's annotation: JSON, or the older form with colons; empty if it is invalid."""
    if len(text) > _MAX_TEXT:
        return ()
    try:
        if text.lstrip().startswith("["):
            devices = msgspec.json.decode(text, type=tuple[RegisteredDevice, ...])
        else:
            parts = [part.split(",") for part in text.split(":") if part]
            devices = tuple(
                RegisteredDevice(fields[0], int(fields[1]), int(fields[2]), fields[6] == "true") for fields in parts
            )
    except (ValueError, IndexError):
        return ()
    if not all(0 <= amount <= _MAX_AMOUNT for device in devices for amount in (device.count, device.devmem)):
        return ()
    return devices[:MAX_DEVICES]


def read_hami_request(pod: Pod) -> HamiRequest | str | None:
    """Return the request, None without one, or a message if it is not supported.

    Limits count before requests, as in HAMi. Without memory, the pod gets all memory of each GPU.
    """
    containers = (*pod.spec.init_containers, *pod.spec.containers)
    positions = [position for position, container in enumerate(containers) if _read(container, GPU)]
    if not positions:
        return None
    if len(positions) > 1:
        return f"only one container of a pod can request {GPU}"
    container = containers[positions[0]]
    memory, percent = _read(container, MEMORY), _read(container, MEMORY_PERCENTAGE) or 100
    count, cores = _read(container, GPU), _read(container, CORES)
    if not 0 < count <= MAX_DEVICES:
        return f"a pod can request 1 to {MAX_DEVICES} GPUs, got {count}"
    if not 0 < percent <= 100 or not 0 <= cores <= 100:
        return f"{MEMORY_PERCENTAGE} and {CORES} must be 100 or less"
    if not 0 <= memory <= _MAX_AMOUNT:
        return f"a pod can request at most {_MAX_AMOUNT} of {MEMORY}, got {memory}"
    return HamiRequest(count, memory, percent, cores, positions[0], len(containers))


def find_unsupported_annotation(annotations: Mapping[str, str]) -> str:
    """Return the name of an annotation of HAMi that restricts the GPUs, which is not supported; empty if none."""
    return next((name for name in _UNSUPPORTED if annotations.get(name)), "")


def _read(container: Container, resource: str) -> int:
    resources = container.resources
    text = resources.limits.get(resource, resources.requests.get(resource, "0"))
    return quantity.value(text)


def encode_allocations(request: HamiRequest, allocations: tuple[Allocation, ...]) -> str:
    """Return the value of the annotation: a part that ends with `;` for each container."""
    devices = "".join(f"{uuid},NVIDIA,{memory},{cores}:" for uuid, memory, cores in allocations)
    parts = (devices if position == request.container else "" for position in range(request.container_count))
    return "".join(f"{part};" for part in parts)


def decode_allocations(annotations: Mapping[str, str]) -> list[Allocation]:
    """Return the GPUs of all containers of a pod; parts that are invalid are left out."""
    allocations = []
    for part in annotations.get(ALLOCATED, annotations.get(TO_ALLOCATE, "")).replace(";", ":").split(":"):
        fields = part.split(",")
        if len(fields) >= 4 and _is_amount(fields[2]) and _is_amount(fields[3]):
            allocations.append(Allocation(fields[0], int(fields[2]), int(fields[3])))
    return allocations


def _is_amount(text: str) -> bool:
    return text.isdecimal() and len(text) <= len(str(_MAX_AMOUNT))  # Python converts at most 4,300 digits


def make_decision_annotations(
    request: HamiRequest, devices: tuple[RegisteredDevice, ...], indices: tuple[int, ...], node: str, now: float
) -> dict[str, str]:
    """Return the annotations that HAMi's device plugin reads. *now* is in seconds since 1970."""
    chosen = (devices[index] for index in indices)
    text = encode_allocations(
        request, tuple(Allocation(device.id, request.get_memory(device.devmem), request.cores) for device in chosen)
    )
    return {
        TO_ALLOCATE: text,
        ALLOCATED: text,
        "hami.io/vgpu-node": node,
        "hami.io/vgpu-time": str(int(now)),
        "hami.io/bind-time": str(int(now)),
        "hami.io/bind-phase": "allocating",
    }


def make_lock(pod: Pod, now: float) -> str:
    """Return the value of the lock on a node."""
    return f"{format_time(int(now))},{pod.metadata.namespace},{pod.metadata.name}"


def find_lock_owner(annotations: Mapping[str, str], pod: Pod, now: float) -> str:
    """Return the other pod that holds the lock on the node; empty if there is none, or if its lock expired."""
    time, _, owner = annotations.get(LOCK, "").partition(",")
    if not time or owner == f"{pod.metadata.namespace},{pod.metadata.name}":
        return ""
    try:
        locked_at = datetime.fromisoformat(time).timestamp()
    except ValueError:
        return ""
    return "" if now - locked_at > _LOCK_SECONDS else owner.replace(",", "/") or "HAMi"


def compute_milli_by_node(request: HamiRequest, memory: IntArray) -> IntArray:
    """Return the requested milli of each GPU by node, for GPUs with *memory* MiB."""
    sizes = {int(size): request.make_gpu_request(int(size)).milli for size in set(memory.tolist())}
    milli: IntArray = memory.copy()
    for size, amount in sizes.items():
        milli[memory == size] = amount
    return milli
