"""The free part of every GPU of every node, computed from the pods on the nodes, and cached for one snapshot."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass, field
from typing import Final

import numpy as np

from extender.api.kinds.node import Node
from extender.cache.pod_info import AssignedPodInfo
from extender.cache.snapshot import NodeView, Snapshot
from extender.cache.tables.arrays import IntArray
from extender.cache.tables.history import HistoryPosition
from extender.cache.tables.node_table import RowMapVersion
from extender.plugins.gpu_share.claimed_gpus import CLAIMED, MIXED, ClaimedGpus
from extender.plugins.gpu_share.gpu_request import (
    GPU_COUNT,
    GPU_MODEL,
    MAX_DEVICES,
    MILLI_PER_GPU,
    NO_GPU,
    GpuRequest,
    get_gpu_request,
    parse_device_indices,
)
from extender.plugins.gpu_share.hami import (
    REGISTERED,
    HamiRequest,
    RegisteredDevice,
    compute_milli,
    decode_allocations,
    parse_registered_devices,
    read_hami_request,
)

_MIN_WIDTH: Final = 8


@dataclass(slots=True)
class NodeDevices:
    """The GPUs of some nodes. Every array has one entry for each node, int64.

    Attributes:
        free: the free milli of each GPU, shape (nodes, width); 0 for a GPU that does not exist.
        device_count: the number of GPUs.
        model: the position of the node's GPU model in `DeviceTable.model_positions`.
        request_kinds: a bit mask of the GPU requests of the node's pods: bit 0 for a part of one GPU,
            bit n for n GPUs. The last bit, 62, also stands for more GPUs.
        cpu: the free milli-CPU.
        memory: the memory of each GPU in MiB, on nodes whose GPUs HAMi's device plugin registered; 0 on other nodes.
            Empty if no node matters.
        claimed: `CLAIMED` or `MIXED` for nodes whose GPUs resource claims allocate; 0 for other nodes. Empty if no node
            matters. On nodes with claims, the kinds of requests are 1 if a GPU is partly used, and 2 if one is full.
    """

    free: IntArray
    device_count: IntArray
    model: IntArray
    request_kinds: IntArray
    cpu: IntArray
    memory: IntArray = field(default_factory=lambda: np.zeros(0, dtype=np.int64))
    claimed: IntArray = field(default_factory=lambda: np.zeros(0, dtype=np.int64))

    def take(self, rows: IntArray) -> "NodeDevices":
        """Return the entries of *rows*, int64."""
        return NodeDevices(
            self.free[rows],
            self.device_count[rows],
            self.model[rows],
            self.request_kinds[rows],
            self.cpu[rows],
            self.memory[rows] if len(self.memory) else self.memory,
            self.claimed[rows] if len(self.claimed) else self.claimed,
        )


def assign_devices(free: list[int], request: GpuRequest, indices: tuple[int, ...]) -> None:
    """Subtract the request of a pod from *free*, the free milli of each GPU of its node.

    Without valid *indices*, the GPUs with the least sufficient free part are used. If too few GPUs suffice, those with
    the most free milli are used too, and nothing is left of them.
    """
    if len(indices) != request.count or any(index >= len(free) for index in indices):
        sufficient = sorted((milli, index) for index, milli in enumerate(free) if milli >= request.milli)
        insufficient = sorted((-milli, index) for index, milli in enumerate(free) if milli < request.milli)
        indices = tuple(index for _, index in (sufficient + insufficient)[: request.count])
    for index in indices:
        free[index] = max(0, free[index] - request.milli)


def get_request_kind(request: GpuRequest) -> int:
    """Return the bit of *request* in `NodeDevices.request_kinds`."""
    return 1 if request.is_shared else 1 << min(request.count, MAX_DEVICES - 2)


class DeviceTable:
    """The GPUs of all nodes. `get` reads only the rows that changed since its previous call.

    Without *claimed_gpus*, resource claims allocate no GPUs.

    Attributes:
        model_positions: the position of each GPU model; "" is the model of nodes without the label.
        version: a number that changes with the content of the table.
    """

    def __init__(self, claimed_gpus: ClaimedGpus | None = None) -> None:
        self._claimed_gpus = claimed_gpus
        self._claimed_version: tuple[object, ...] = ()
        self.model_positions: dict[str, int] = {"": 0}
        self.version = 0
        self._versioned_row_by_name: tuple[RowMapVersion | None, dict[str, int]] = (None, {})
        self._devices: NodeDevices | None = None
        self._position: HistoryPosition | None = None
        self._registered: dict[str, tuple[RegisteredDevice, ...]] = {}

    def get(self, nodes: NodeView) -> NodeDevices:
        """Return the GPUs of the nodes of a view. Do not modify the arrays. They are valid until the next call."""
        snapshot = nodes.snapshot
        if not self._may_sync(nodes):
            rows = np.arange(len(snapshot)) if nodes.rows is None else nodes.rows
            return self._read(snapshot, rows, self._find_width(snapshot))
        devices = self._sync(snapshot)
        return devices if nodes.rows is None else devices.take(nodes.rows)

    def get_node(self, name: str) -> NodeDevices | None:
        """Return the GPUs of the node *name* as of the last call of `get`; None if the node is unknown."""
        row = self._versioned_row_by_name[1].get(name)
        return None if row is None or self._devices is None else self._devices.take(np.array([row], dtype=np.int64))

    def get_registered_devices(self, name: str) -> tuple[RegisteredDevice, ...]:
        """Return the GPUs of the node *name* that HAMi's device plugin registered, in the order of the columns."""
        return self._registered.get(name, ())

    def find_hami_memory(self) -> int:
        """Return the largest memory of a GPU that HAMi's device plugin registered, in MiB; 0 if there is none."""
        return 0 if self._devices is None else int(self._devices.memory.max(initial=0))

    def _may_sync(self, nodes: NodeView) -> bool:
        """Return False if the snapshot is older, or if it has another history and *nodes* are only some nodes."""
        old, new = self._position, nodes.snapshot.position
        if old is None or old.history_id is not new.history_id:
            return nodes.rows is None
        return old.node_log_position <= new.node_log_position and old.pod_log_position <= new.pod_log_position

    def _sync(self, snapshot: Snapshot) -> NodeDevices:
        devices, old, new = self._devices, self._position, snapshot.position
        if old is not None and devices is not None and old.history_id is new.history_id:
            claims_changed = self._claimed_gpus is not None and self._claimed_version != self._claimed_gpus.version
            node_changed = new.node_log_position != old.node_log_position
            if not node_changed and new.pod_log_position == old.pod_log_position and not claims_changed:
                return devices
            rows = None if len(devices.cpu) != len(snapshot) else snapshot.find_changed_rows(old)
            if claims_changed and rows is not None:
                rows = self._add_rows_of_claims(snapshot, rows)
            if rows is not None and not (node_changed and self._find_width(snapshot) > devices.free.shape[1]):
                self._write(devices, snapshot, rows, rows)
                if node_changed:
                    devices.model[rows] = self._find_models(snapshot.view(rows))
                self._mark_synced(snapshot)
                return devices
        self._devices = devices = self._read(snapshot, np.arange(len(snapshot)), self._find_width(snapshot))
        self._mark_synced(snapshot)
        return devices

    def _add_rows_of_claims(self, snapshot: Snapshot, rows: IntArray) -> IntArray | None:
        """Return *rows* and those whose GPUs claims changed; None for all rows."""
        names = self._claimed_gpus.list_nodes_changed_since(self._claimed_version) if self._claimed_gpus else None
        if names is None:
            return None
        claimed_rows = [row for name in names if (row := snapshot.row(name)) is not None]
        return np.union1d(rows, np.array(claimed_rows, dtype=np.int64))

    def _mark_synced(self, snapshot: Snapshot) -> None:
        self.version += 1
        self._position = snapshot.position
        self._claimed_version = () if self._claimed_gpus is None else self._claimed_gpus.version
        if self._versioned_row_by_name[0] != snapshot.row_map_version:
            row_by_name = {name: row for row, name in enumerate(snapshot.names)}
            self._versioned_row_by_name = snapshot.row_map_version, row_by_name
            self._registered = {name: gpus for name, gpus in self._registered.items() if name in row_by_name}

    def _find_width(self, snapshot: Snapshot) -> int:
        counts = snapshot.view().allocatable(snapshot.symbols.resources.intern(GPU_COUNT))
        registered = (len(_get_registered_devices(node)) for node in snapshot.nodes)
        claimed = () if self._claimed_gpus is None else map(self._claimed_gpus.count, snapshot.nodes)
        listed_counts = max(registered, default=0), max(claimed, default=0)
        return max(_MIN_WIDTH, min(MAX_DEVICES, int(counts.max(initial=0))), *listed_counts)

    def _read(self, snapshot: Snapshot, rows: IntArray, width: int) -> NodeDevices:
        devices = NodeDevices(np.zeros((len(rows), width), dtype=np.int64), *np.zeros((6, len(rows)), dtype=np.int64))
        self._write(devices, snapshot, rows, slice(None))
        devices.model[:] = self._find_models(snapshot.view(rows))
        return devices

    def _write(self, devices: NodeDevices, snapshot: Snapshot, rows: IntArray, positions: IntArray | slice) -> None:
        """Read *rows* of the snapshot and write them to *positions* of *devices*, except the models."""
        resources = snapshot.symbols.resources
        view, cpu = snapshot.view(rows), resources.intern("cpu")
        counts = view.allocatable(resources.intern(GPU_COUNT)).clip(0, devices.free.shape[1])
        pods_by_row = snapshot.pods_by_row(rows)
        free = np.zeros((len(rows), devices.free.shape[1]), dtype=np.int64)
        kinds, memory, claimed = np.zeros((3, len(rows)), dtype=np.int64)
        for position, (row, count) in enumerate(zip(rows.tolist(), counts.tolist(), strict=True)):
            claimed_gpus = self._claimed_gpus
            if claimed_gpus is not None and (claimed_milli := claimed_gpus.measure(snapshot.nodes[row])):
                counts[position] = len(claimed_milli)
                free[position, : len(claimed_milli)] = claimed_milli
                kinds[position] = _find_kinds_of_shares(claimed_milli)
                claimed[position] = MIXED if any(map(_requests_gpu, pods_by_row[position])) else CLAIMED
            elif count:
                free[position, :count], kinds[position] = _read_node(count, pods_by_row[position])
            elif registered := _get_registered_devices(snapshot.nodes[row]):
                counts[position] = len(registered)
                memory[position] = min((device.devmem for device in registered if device.health), default=0)
                milli, kinds[position] = _read_hami_node(registered, pods_by_row[position])
                free[position, : len(milli)] = milli
                self._registered[snapshot.names[row]] = registered
        devices.free[positions], devices.device_count[positions], devices.request_kinds[positions] = free, counts, kinds
        devices.cpu[positions] = view.allocatable(cpu) - view.requested(cpu)
        devices.memory[positions], devices.claimed[positions] = memory, claimed

    def _find_models(self, view: NodeView) -> IntArray:
        value_ids = view.label_value_ids(GPU_MODEL)
        names = view.snapshot.symbols.get_label_values(GPU_MODEL)
        unique_ids, inverse = np.unique(value_ids, return_inverse=True)
        positions = self.model_positions
        models = [names[value] if value >= 0 else "" for value in unique_ids]
        return np.array([positions.setdefault(model, len(positions)) for model in models], dtype=np.int64)[inverse]


def _read_node(device_count: int, pods: Collection[AssignedPodInfo]) -> tuple[list[int], int]:
    """Return the free milli of each GPU of a node, and the bit mask of its pods' requests.

    Pods with valid indices are counted first.
    """
    free, kinds, requests_without_indices = [MILLI_PER_GPU] * device_count, 0, []
    for pod in pods:
        request = get_gpu_request(pod)
        if isinstance(request, str) or not request.count:
            continue
        kinds |= get_request_kind(request)
        indices = parse_device_indices(pod.pod.metadata.annotations)
        if len(indices) == request.count and max(indices) < device_count:
            assign_devices(free, request, indices)
        else:
            requests_without_indices.append(request)
    for request in sorted(requests_without_indices, reverse=True):
        assign_devices(free, request, ())
    return free, kinds


def _find_kinds_of_shares(free: Sequence[int]) -> int:
    """Return the bit mask of the requests, from the free milli of GPUs that claims allocate."""
    shared = any(0 < milli < MILLI_PER_GPU for milli in free)
    return shared * get_request_kind(GpuRequest(1, 1)) | (0 in free) * get_request_kind(GpuRequest(MILLI_PER_GPU, 1))


def _requests_gpu(pod: AssignedPodInfo) -> bool:
    """Return whether *pod* requests a GPU in another way than by a claim."""
    return get_gpu_request(pod) != NO_GPU or read_hami_request(pod.pod) is not None


def _get_registered_devices(node: Node) -> tuple[RegisteredDevice, ...]:
    text = node.metadata.annotations.get(REGISTERED)
    return parse_registered_devices(text) if text else ()


def _read_hami_node(registered: Sequence[RegisteredDevice], pods: Collection[AssignedPodInfo]) -> tuple[list[int], int]:
    """Return the free milli of each registered GPU, and the bit mask of the pods' requests.

    A GPU that is unhealthy, or has as many pods as may share it, has nothing left.
    """
    free, kinds = [MILLI_PER_GPU if device.health else 0 for device in registered], 0
    positions = {device.id: position for position, device in enumerate(registered)}
    pod_counts, requests_without_devices = [0] * len(free), []
    for pod in pods:
        allocations = [entry for entry in decode_allocations(pod.pod.metadata.annotations) if entry.uuid in positions]
        for uuid, memory, cores in allocations:
            position = positions[uuid]
            milli = compute_milli(memory, cores, registered[position].devmem)
            free[position] = max(0, free[position] - milli)
            pod_counts[position] += 1
            kinds |= get_request_kind(GpuRequest(min(milli, MILLI_PER_GPU), len(allocations)))
        request = read_hami_request(pod.pod)
        if not allocations and isinstance(request, HamiRequest):
            requests_without_devices.append(request.make_gpu_request(min(device.devmem for device in registered)))
    for gpu_request in sorted(requests_without_devices, reverse=True):
        kinds |= get_request_kind(gpu_request)
        assign_devices(free, gpu_request, ())
    for position, device in enumerate(registered):
        if pod_counts[position] >= device.count:
            free[position] = 0
    return free, kinds
