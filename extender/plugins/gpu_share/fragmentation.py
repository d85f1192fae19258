"""FGD's score: the growth of the GPU fragmentation of a node.

The fragmentation of a node is the expected part of its free GPUs that a pod of the target workload cannot use. What a
pod can use depends only on the GPU model, the free CPU, the free milli of each GPU and the number of entirely free
GPUs. So the sums over the pods of the target workload are computed once, in tables.

Source: hkust-adsl/kubernetes-scheduler-simulator pkg/utils/frag.go, NodeGpuShareFragAmount;
pkg/simulator/plugin/fgd_score.go, calculateGpuShareFragExtendScore.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np

from extender.cache.tables.arrays import FloatArray, IntArray
from extender.plugins.gpu_share.device_table import NodeDevices
from extender.plugins.gpu_share.gpu_request import MAX_DEVICES, MILLI_PER_GPU, GpuRequest
from extender.plugins.gpu_share.target_workload import TargetPod


class FragmentationTables:
    """Tables of the usable GPU milli by GPU model, free CPU and free part of a GPU.

    The weights of *pods*, the target workload, sum up to 1. For *model_positions* see `DeviceTable.model_positions`.
    """

    def __init__(self, pods: Sequence[TargetPod], model_positions: Mapping[str, int]) -> None:
        self._cpu_steps = np.unique(np.array([pod.cpu for pod in pods], dtype=np.int64))
        shape = len(model_positions), len(self._cpu_steps) + 1
        self._usable_by_free_part: FloatArray = np.zeros((*shape, MILLI_PER_GPU + 1))
        self._usable_by_whole_gpus: FloatArray = np.zeros((*shape, MAX_DEVICES + 1))
        parts, counts = np.arange(MILLI_PER_GPU + 1), np.arange(MAX_DEVICES + 1)
        for pod in pods:
            accepted_models = pod.list_accepted_models(model_positions)
            cpu_step = int(np.searchsorted(self._cpu_steps, pod.cpu)) + 1
            if pod.request.is_shared:
                usable = pod.weight * parts * (parts >= pod.gpu_milli)
                self._usable_by_free_part[accepted_models, cpu_step:] += usable
            elif pod.gpu_count:
                usable = pod.weight * MILLI_PER_GPU * counts * (counts >= pod.gpu_count)
                self._usable_by_whole_gpus[accepted_models, cpu_step:] += usable

    def compute_fragmentation(self, devices: NodeDevices) -> FloatArray:
        """Return the fragmentation of each node in milli: the free milli minus the expected usable milli."""
        cpu_step = self._find_cpu_step(devices.cpu)
        usable = self._usable_by_free_part[devices.model[:, None], cpu_step[:, None], devices.free].sum(axis=1)
        whole_count = (devices.free == MILLI_PER_GPU).sum(axis=1)
        whole_usable = self._usable_by_whole_gpus[devices.model, cpu_step, whole_count]
        unusable: FloatArray = devices.free.sum(axis=1) - usable - whole_usable
        return unusable

    def _find_cpu_step(self, cpu: IntArray) -> IntArray:
        return np.searchsorted(self._cpu_steps, cpu, side="right")

    def score(self, devices: NodeDevices, request: GpuRequest, cpu: int) -> IntArray:
        """Return a score from 0 to 100 for each node: 50 if the fragmentation does not change."""
        if request.is_shared:
            scores: IntArray = self.score_devices(devices, request, cpu).max(axis=1)
            return scores.clip(0)
        return self.score_change(devices, remove_whole_gpus(devices, request, cpu))

    def score_change(self, devices: NodeDevices, remaining: NodeDevices) -> IntArray:
        """Return a score from 0 to 100 for each node, if a pod leaves *remaining* of *devices*."""
        return _scale(self.compute_fragmentation(devices) - self.compute_fragmentation(remaining))

    def score_devices(self, devices: NodeDevices, request: GpuRequest, cpu: int) -> IntArray:
        """Return a score for each GPU, shape (nodes, width), for a part of one GPU; -1 if the GPU is too full."""
        free, model = devices.free, devices.model[:, None]
        cpu_step = self._find_cpu_step(devices.cpu - cpu)[:, None]
        fits, remaining = free >= request.milli, (free - request.milli).clip(0)
        usable = self._usable_by_free_part[model, cpu_step, free]
        remaining_usable = (
            usable.sum(axis=1, keepdims=True) - usable + self._usable_by_free_part[model, cpu_step, remaining]
        )
        whole_count = (free == MILLI_PER_GPU).sum(axis=1, keepdims=True) - (free == MILLI_PER_GPU)
        remaining_usable += self._usable_by_whole_gpus[model, cpu_step, whole_count]
        fragmentation_after = free.sum(axis=1, keepdims=True) - request.milli - remaining_usable
        return np.where(fits, _scale(self.compute_fragmentation(devices)[:, None] - fragmentation_after), -1)


def remove_whole_gpus(devices: NodeDevices, request: GpuRequest, cpu: int) -> NodeDevices:
    """Return *devices* after a pod took the first `request.count` free GPUs and *cpu* milli-CPU of each node."""
    is_whole = devices.free == MILLI_PER_GPU
    is_taken = is_whole & (is_whole.cumsum(axis=1) <= request.count)
    return replace(devices, free=np.where(is_taken, 0, devices.free), cpu=devices.cpu - cpu)


def _scale(decrease: FloatArray) -> IntArray:
    """Map a decrease of the fragmentation in milli to a score from 0 to 100."""
    return (100 / (1 + np.exp(-decrease / MILLI_PER_GPU))).astype(np.int64)
