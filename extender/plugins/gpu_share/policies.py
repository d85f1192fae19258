"""The score policies: the score of each node for a request, and the choice of GPUs on one node."""

from collections.abc import Callable, Mapping
from typing import Final, Protocol

import numpy as np

from extender.cache.tables.arrays import BoolArray, IntArray
from extender.plugins.gpu_share.args import FGD, FILL
from extender.plugins.gpu_share.device_table import NodeDevices
from extender.plugins.gpu_share.fill import FillTables
from extender.plugins.gpu_share.fragmentation import FragmentationTables
from extender.plugins.gpu_share.gpu_request import MILLI_PER_GPU, GpuRequest
from extender.plugins.gpu_share.published_scores import (
    score_best_fit,
    score_dot_prod,
    score_gpu_clustering,
    score_gpu_packing,
)
from extender.plugins.gpu_share.target_workload import TargetPod, select_popular_pods

SCORE_FUNCTIONS: Final[Mapping[str, Callable[[NodeDevices, GpuRequest, int], IntArray]]] = {
    "DotProd": score_dot_prod,
    "GpuClustering": score_gpu_clustering,
    "GpuPacking": score_gpu_packing,
    "BestFit": score_best_fit,
}
"""The score functions, by policy. These policies choose the GPU with the smallest free part that is large enough."""

WORKLOAD_POLICIES: Final = frozenset((FGD, FILL))
"""The policies that read the target workload."""


class WorkloadTables(Protocol):
    """The tables of a policy that reads the target workload."""

    def score(self, devices: NodeDevices, request: GpuRequest, cpu: int) -> IntArray:
        """Return a score for each node."""

    def score_devices(self, devices: NodeDevices, request: GpuRequest, cpu: int) -> IntArray:
        """Return a score for each GPU, shape (nodes, width), for a request of a part of one GPU."""

    def score_change(self, devices: NodeDevices, remaining: NodeDevices) -> IntArray:
        """Return a score for each node, if a pod leaves *remaining* of *devices*."""


def make_workload_tables(
    policy: str, pods: tuple[TargetPod, ...], model_positions: Mapping[str, int], gpus_by_model: IntArray
) -> WorkloadTables:
    """Return the tables of FGD, for the popular pods, or of Fill; see `FillTables` for the arguments."""
    if policy == FGD:
        return FragmentationTables(select_popular_pods(pods), model_positions)
    return FillTables(pods, model_positions, gpus_by_model)


def choose_whole_gpus(devices: NodeDevices, request: GpuRequest) -> tuple[int, ...]:
    """Return the first free GPUs of the only node in *devices*; empty if there are too few."""
    indices = np.flatnonzero(devices.free[0] == MILLI_PER_GPU)[: request.count]
    return tuple(indices.tolist()) if len(indices) == request.count else ()


def choose_best_device(device_scores: IntArray, fits: BoolArray) -> tuple[int, ...]:
    """Return the first GPU with the highest score among those that fit; empty if none fits.

    Args:
        device_scores: the score of each GPU of one node.
        fits: whether the pod may use each GPU.
    """
    candidates = np.flatnonzero(fits)
    if not len(candidates):
        return ()
    return (int(candidates[device_scores[candidates].argmax()]),)
