"""Decide whether a request that would waste most of the rest of a free GPU waits for a GPU that is in use.

A pod of 810 milli on a free GPU leaves 190 milli that hardly any other pod can use. If whole GPUs are scarce, the GPU
is worth more to a later pod that fills it. The policy Fill therefore keeps a free GPU from a shared pod under four
conditions:

- The free GPUs are few: their share of all GPUs is at most 0.9 times the waste of the request. The waste is the part of
  a GPU that stays unused if a pod with this request is the first one on it. It comes from a best-fit-decreasing packing
  of the target workload.
- The demand of the waiting pods is less than the sum of the parts of GPUs that are useless because they are too small.
  With more demand, the waiting pods would need the saved GPU before a pod arrives that fills it.
- This also holds if the demand that the free GPUs cannot satisfy is added: that of pods that accept only one model,
  which is exhausted, and that of pods with several GPUs.
- The free CPU suffices for the free GPUs. If CPU is the scarce resource, saved GPUs stay unused.

The constants were chosen on the seeds 0 to 19 of the variants default and gpuspec33 of the openb trace, and on
synthetic traces that were drawn from the pods of these two.
"""

from collections.abc import Mapping, Sequence
from typing import Final

import numpy as np

from extender.cache.tables.arrays import FloatArray, IntArray
from extender.plugins.gpu_share.device_table import NodeDevices
from extender.plugins.gpu_share.gpu_request import MILLI_PER_GPU, GpuRequest
from extender.plugins.gpu_share.target_workload import TargetPod, select_popular_pods

_FREE_PER_WASTE: Final = 0.9
_USELESS_SHARE: Final = 0.05
"""A part of a GPU is useless if it is too small for pods with 95 % of the demand of shared pods."""
_STEP: Final = 10
"""The packing rounds requests up to 10 milli, which limits the number of different bins."""
_PLACEMENTS_PER_PROJECTION: Final = 64
_MAX_CYCLES: Final = 20_000
_NOTHING: Final = 1e-12


class WastefulRequests:
    """The tables that decide which requests wait for a GPU that is in use.

    *pods* are all kinds of pods in the target workload, the most frequent first; their weights sum up to 1. For
    *model_positions* see `DeviceTable.model_positions`.
    """

    def __init__(self, pods: Sequence[TargetPod], model_positions: Mapping[str, int]) -> None:
        popular = select_popular_pods(pods)
        self._waste = compute_waste(popular)
        self._useless = compute_useless_parts(popular)
        demand = sum(pod.weight * pod.request.total for pod in pods) or 1.0
        self._cpu_per_milli = sum(pod.weight * pod.cpu for pod in pods) / demand
        self._demand_of_one_model = np.zeros(len(model_positions))
        self._multi_gpu_shares: dict[tuple[int, int, tuple[int, ...]], float] = {}
        for pod in pods:
            share, accepted = pod.weight * pod.request.total / demand, pod.list_accepted_models(model_positions)
            if pod.gpu_count and len(accepted) == 1:
                self._demand_of_one_model[accepted] += share
            if pod.gpu_count > 1:
                kind = pod.gpu_count, pod.cpu, tuple(accepted)
                self._multi_gpu_shares[kind] = self._multi_gpu_shares.get(kind, 0.0) + share
        self._unmet_milli = 0.0
        self._next_projection = 0

    def must_wait(self, devices: NodeDevices, request: GpuRequest, waiting_milli: int, version: int) -> bool:
        """Return whether a pod must not use a free GPU.

        *waiting_milli* is the demand of the pods that were seen and are not placed. The unmet demand is projected again
        after 64 versions of the device table.
        """
        waste = self._waste[request.milli] if request.is_shared else 0.0
        gpu_count = int(devices.device_count.sum())
        if not waste or np.count_nonzero(devices.free == MILLI_PER_GPU) > _FREE_PER_WASTE * waste * gpu_count:
            return False
        free, useless = int(devices.free.sum()), int(self._useless[devices.free].sum())
        if waiting_milli >= useless or devices.cpu.sum() < self._cpu_per_milli * free:
            return False
        if version >= self._next_projection:
            self._next_projection = version + _PLACEMENTS_PER_PROJECTION
            self._unmet_milli = self._project_unmet_demand(devices, free - useless)
        return waiting_milli + self._unmet_milli < useless

    def _project_unmet_demand(self, devices: NodeDevices, coming_milli: int) -> float:
        """Return the milli of the pods that will not fit if pods of *coming_milli* in total arrive."""
        usable = (devices.free - self._useless[devices.free]).sum(axis=1)
        usable_by_model = np.bincount(devices.model, weights=usable, minlength=len(self._demand_of_one_model))
        unmet = float((coming_milli * self._demand_of_one_model - usable_by_model).clip(0).sum())
        whole = np.count_nonzero(devices.free == MILLI_PER_GPU, axis=1)
        needed_by_count: dict[int, float] = {}
        unmet_by_count: dict[int, float] = {}
        for (count, cpu, models), share in self._multi_gpu_shares.items():
            copies = np.minimum(whole // count, devices.cpu.clip(0) // max(1, cpu))
            room = int(copies[np.isin(devices.model, models)].sum()) * count * MILLI_PER_GPU
            needed_by_count[count] = needed_by_count.get(count, 0.0) + coming_milli * share
            unmet_by_count[count] = unmet_by_count.get(count, 0.0) + max(0.0, coming_milli * share - room)
        for count, needed in needed_by_count.items():
            room = int((whole // count).sum()) * count * MILLI_PER_GPU
            unmet += max(unmet_by_count[count], needed - room)
        return unmet


class WaitingDemand:
    """The GPU milli of the pods that were seen and are not placed.

    A pod that was deleted while it waited is forgotten after 20,000 cycles of other pods.
    """

    def __init__(self) -> None:
        self._milli_and_cycle: dict[str, tuple[int, int]] = {}
        self._cycle = 0
        self.milli = 0

    def add(self, uid: str, milli: int) -> None:
        """Count a pod as waiting, or count it again."""
        self.remove(uid)
        self._cycle += 1
        self._milli_and_cycle[uid] = milli, self._cycle
        self.milli += milli
        oldest, (_, cycle) = next(iter(self._milli_and_cycle.items()))
        if cycle <= self._cycle - _MAX_CYCLES:
            self.remove(oldest)

    def remove(self, uid: str) -> None:
        """Forget a pod, which has a node now or must not be counted."""
        self.milli -= self._milli_and_cycle.pop(uid, (0, 0))[0]


def compute_waste(pods: Sequence[TargetPod]) -> FloatArray:
    """Return the part of a GPU that stays unused if a pod is the first one on it, by requested milli: shape (1001,).

    The shared pods are packed in the order of decreasing requests, each on the fullest GPU where it fits. A kind of pod
    without a GPU of its own has 0.
    """
    weights: dict[int, float] = {}
    for pod in pods:
        if pod.request.is_shared:
            size = -(-pod.gpu_milli // _STEP) * _STEP
            weights[size] = weights.get(size, 0.0) + pod.weight
    # Free milli of a GPU -> size of the first pod on it -> number of GPUs.
    gpus: dict[int, dict[int, float]] = {}
    for size in sorted(weights, reverse=True):
        unplaced = weights[size]
        while unplaced > _NOTHING and (fitting := [free for free in gpus if free >= size]):
            unplaced -= _fill_gpus(gpus, min(fitting), size, unplaced)
        if unplaced > _NOTHING and size <= MILLI_PER_GPU:
            pods_per_gpu = MILLI_PER_GPU // size
            _add_gpus(gpus, MILLI_PER_GPU - pods_per_gpu * size, size, unplaced / pods_per_gpu)
    waste = np.zeros(MILLI_PER_GPU + 1)
    numbers: dict[int, float] = {}
    unused: dict[int, float] = {}
    for free, first_pods in gpus.items():
        for size, number in first_pods.items():
            numbers[size] = numbers.get(size, 0.0) + number
            unused[size] = unused.get(size, 0.0) + number * free
    for size, number in numbers.items():
        waste[size - _STEP + 1 : size + 1] = unused[size] / number / MILLI_PER_GPU if number > _NOTHING else 0.0
    return waste


def _fill_gpus(gpus: dict[int, dict[int, float]], free: int, size: int, unplaced: float) -> float:
    """Place pods of *size* on the GPUs with *free* milli, one on each; return the number of placed pods."""
    first_pods = gpus.pop(free)
    total = sum(first_pods.values())
    placed = min(total, unplaced)
    for first_pod, number in first_pods.items():
        filled = number * placed / total
        _add_gpus(gpus, free - size, first_pod, filled)
        if number - filled > _NOTHING:
            _add_gpus(gpus, free, first_pod, number - filled)
    return placed


def _add_gpus(gpus: dict[int, dict[int, float]], free: int, first_pod: int, number: float) -> None:
    first_pods = gpus.setdefault(free, {})
    first_pods[first_pod] = first_pods.get(first_pod, 0.0) + number


def compute_useless_parts(pods: Sequence[TargetPod]) -> IntArray:
    """Return the useless milli of a GPU by its free milli: shape (1001,). A free GPU is never useless."""
    demand = np.zeros(MILLI_PER_GPU + 1)
    for pod in pods:
        if pod.request.is_shared:
            demand[pod.gpu_milli] += pod.weight * pod.gpu_milli
    parts = np.arange(MILLI_PER_GPU + 1, dtype=np.int64)
    useless = demand.cumsum() < _USELESS_SHARE * demand.sum()
    useless[MILLI_PER_GPU] = False
    return np.where(useless, parts, 0)
