"""The score Fill: how much of a node's GPUs the target workload can still fill, and how scarce its GPU model is.

The next pod is a random pod of the target workload, which arrives after the pod to schedule. For each kind of pod in
the target workload, copies fill a node until its GPUs or its CPU are used up. The score prefers the nodes where the pod
to schedule least reduces the GPU milli that the next pod and these copies can use. The score FGD (fragmentation
gradient descent) considers only the next pod. FGD notices a lack of CPU only when the next pod does not fit.

Three costs are subtracted. The first is the growth of the milli that are expected to stay unused on each GPU when
randomly drawn pods have filled it. The second is the demand for the GPU model in relation to its number of GPUs. The
third is small and lowers the score of emptier nodes. The weights were tuned on the seeds 0 to 9 of the
variants default and gpuspec33 of the openb trace.
"""

from collections.abc import Mapping, Sequence
from typing import Final

import numpy as np
from msgspec.structs import replace

from extender.cache.tables.arrays import FloatArray, IntArray
from extender.plugins.gpu_share.device_table import NodeDevices
from extender.plugins.gpu_share.fragmentation import FragmentationTables, remove_whole_gpus
from extender.plugins.gpu_share.gpu_request import MILLI_PER_GPU, GpuRequest
from extender.plugins.gpu_share.target_workload import TargetPod, select_popular_pods

_NEXT_POD_WEIGHT: Final = 0.7
"""The weight of what the next pod can use; the rest is the weight of what copies of a pod can fill."""
_SIZE_EXPONENT: Final = -0.7
"""Kinds of pods with small GPU requests count more than their frequency, because they can use the rest of a GPU."""
_COUNT_EXPONENT: Final = -0.25
"""Kinds of pods with several GPUs count less than their frequency, but more than their size would suggest."""
_UNUSED_WEIGHT: Final = 0.7
_MODEL_DEMAND_WEIGHT: Final = 4.0
_FREE_GPU_COST: Final = 0.003
_FREE_CPU_COST: Final = 0.01 * 8 * MILLI_PER_GPU / 128_000
"""Per milli-CPU: a node of the trace has up to 128 CPUs and 8 GPUs."""
_PRECISION: Final = 1_000
"""Scores are in thousandths of a milli."""
_TOO_FULL_SCORE: Final = -(10**12)


class FillTables:
    """Tables for the score Fill.

    *pods* are all kinds of pods in the target workload, the most frequent first; their weights sum up to 1.
    *gpus_by_model* has the number of GPUs of each model by its position, see `DeviceTable.model_positions`.
    """

    def __init__(self, pods: Sequence[TargetPod], model_positions: Mapping[str, int], gpus_by_model: IntArray) -> None:
        self._model_costs = _MODEL_DEMAND_WEIGHT * compute_model_demand(pods, model_positions, gpus_by_model)
        pods = select_popular_pods(pods)
        self._unused_costs = _UNUSED_WEIGHT * compute_expected_unused_milli(pods)
        pods = weight_by_size(pods)
        self._fragmentation = FragmentationTables(pods, model_positions)
        kinds = sorted({(pod.cpu, pod.request) for pod in pods})
        self._cpu = np.array([cpu for cpu, _ in kinds], dtype=np.int64)
        self._counts = np.array([max(1, request.count) for _, request in kinds], dtype=np.int64)
        self._has_gpu = np.array([request.count > 0 for _, request in kinds], dtype=np.bool_)
        totals = np.array([request.total for _, request in kinds], dtype=np.float64)
        positions = {kind: position for position, kind in enumerate(kinds)}
        weights = np.zeros((len(model_positions), len(kinds)))
        for pod in pods:
            accepted_models = pod.list_accepted_models(model_positions)
            weights[accepted_models, positions[pod.cpu, pod.request]] += pod.weight
        self._cpu_only_weights = weights * ~self._has_gpu
        self._filled_weights = weights * totals
        parts = np.arange(MILLI_PER_GPU + 1)[:, None]
        milli = np.array([request.milli or MILLI_PER_GPU + 1 for _, request in kinds], dtype=np.int64)
        self._copies_by_free_part: IntArray = parts // milli

    def score(self, devices: NodeDevices, request: GpuRequest, cpu: int) -> IntArray:
        """Return a score for each node. Scores are not limited to a range; higher is better."""
        if request.is_shared:
            scores: IntArray = self.score_devices(devices, request, cpu).max(axis=1)
            return scores
        return self.score_change(devices, remove_whole_gpus(devices, request, cpu))

    def score_change(self, devices: NodeDevices, remaining: NodeDevices) -> IntArray:
        """Return a score for each node, if a pod leaves *remaining* of *devices*."""
        unused_costs = self._unused_costs
        loss = self._compute_unfilled(remaining) - self._compute_unfilled(devices)
        loss += unused_costs[remaining.free].sum(axis=1) - unused_costs[devices.free].sum(axis=1)
        return _round(-loss - self._compute_cost(devices, (devices.free - remaining.free).sum(axis=1)))

    def score_devices(self, devices: NodeDevices, request: GpuRequest, cpu: int) -> IntArray:
        """Return a score for each GPU, shape (nodes, width), for a request of a part of one GPU."""
        free = devices.free
        fits, remaining = free >= request.milli, (free - request.milli).clip(0)
        node_count, width = free.shape
        copies = self._copies_by_free_part[free]
        copies_after = copies.sum(axis=1, keepdims=True) - copies + self._copies_by_free_part[remaining]
        model, cpu_after = devices.model.repeat(width), (devices.cpu - cpu).repeat(width)
        candidates = free.repeat(width, axis=0)
        index = np.arange(node_count * width)
        candidates[index, index % width] = remaining.ravel()
        counts, kinds = devices.device_count.repeat(width), devices.request_kinds.repeat(width)
        after = NodeDevices(candidates, counts, model, kinds, cpu_after)
        unfilled = self._compute_unfilled(after, copies_after.reshape(node_count * width, -1)).reshape(free.shape)
        unused_costs = self._unused_costs
        loss = unfilled - self._compute_unfilled(devices)[:, None] + unused_costs[remaining] - unused_costs[free]
        scores: IntArray = np.where(
            fits, _round(-loss - self._compute_cost(devices, request.total)[:, None]), _TOO_FULL_SCORE
        )
        return scores

    def _compute_cost(self, devices: NodeDevices, milli: IntArray | int) -> FloatArray:
        cost: FloatArray = self._model_costs[devices.model] * milli + _FREE_CPU_COST * devices.cpu
        cost += _FREE_GPU_COST * devices.free.sum(axis=1)
        return cost

    def _compute_unfilled(self, devices: NodeDevices, copies: IntArray | None = None) -> FloatArray:
        """Return the free milli of each node that the target workload is expected not to use.

        *copies* is the number of copies of each kind that the GPUs hold, without regard to the CPU.
        """
        if copies is None:
            copies = self._copies_by_free_part[devices.free].sum(axis=1)
        enough_cpu = np.maximum(devices.cpu, 0)[:, None] // np.maximum(self._cpu, 1)
        filled = (np.minimum(copies // self._counts, enough_cpu) * self._filled_weights[devices.model]).sum(axis=1)
        total = devices.free.sum(axis=1)
        for_cpu_only = (self._cpu_only_weights[devices.model] * (enough_cpu > 0)).sum(axis=1)
        next_pod = _NEXT_POD_WEIGHT * (total - self._fragmentation.compute_fragmentation(devices))
        unfilled: FloatArray = total - next_pod - (1 - _NEXT_POD_WEIGHT) * filled - for_cpu_only * total
        return unfilled


def weight_by_size(pods: Sequence[TargetPod]) -> list[TargetPod]:
    """Return the pods with weights that favour small parts of a GPU and few GPUs; the weights sum up to 1."""
    weights = [
        pod.weight * (pod.gpu_milli / MILLI_PER_GPU) ** _SIZE_EXPONENT * pod.gpu_count**_COUNT_EXPONENT
        if pod.gpu_count
        else pod.weight
        for pod in pods
    ]
    return [replace(pod, weight=weight / sum(weights)) for pod, weight in zip(pods, weights, strict=True)]


def compute_model_demand(
    pods: Sequence[TargetPod], model_positions: Mapping[str, int], gpus_by_model: IntArray
) -> FloatArray:
    """Return the demand for each GPU model in relation to its number of GPUs; the mean over all GPUs is 1 or less.

    A kind of pod demands the GPUs of all models that it accepts, in proportion to their numbers.
    """
    demand = np.zeros(len(model_positions))
    total_demand = sum(pod.weight * pod.request.total for pod in pods)
    for pod in pods:
        accepted_models = pod.list_accepted_models(model_positions)
        gpus = int(gpus_by_model[accepted_models].sum())
        if gpus and pod.gpu_count:
            demand[accepted_models] += pod.weight * pod.request.total / total_demand * int(gpus_by_model.sum()) / gpus
    return demand


def compute_expected_unused_milli(pods: Sequence[TargetPod]) -> FloatArray:
    """Return the milli that are expected to stay unused on a GPU when randomly drawn pods have filled it.

    The index is the number of free milli of the GPU: shape (1001,).
    """
    weights = np.zeros(MILLI_PER_GPU + 1)
    for pod in pods:
        weights[pod.gpu_milli] += pod.weight if pod.gpu_milli else 0.0
    unused_milli = np.arange(MILLI_PER_GPU + 1, dtype=np.float64)
    for free in range(1, MILLI_PER_GPU + 1):
        fitting_weights = weights[1 : free + 1]
        if fitting_weights.any():
            unused_milli[free] = (
                fitting_weights @ unused_milli[free - 1 :: -1][: len(fitting_weights)] / fitting_weights.sum()
            )
    return unused_milli


def _round(scores: FloatArray) -> IntArray:
    return np.rint(scores * _PRECISION).astype(np.int64)
