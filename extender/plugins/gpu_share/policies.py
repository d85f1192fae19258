"""The score policies: the score of each node for a request, and the choice of GPUs on one node.

The scores of DotProd, GpuClustering, GpuPacking and BestFit are those of the policies that the authors of FGD compare.
They are 0 to 100 for each node, int64. The pod must fit on the nodes. The constants are those of the authors'
simulator. Random has no score formula here: it hashes the pod and the node.

Source: hkust-adsl/kubernetes-scheduler-simulator pkg/simulator/plugin/dot_product_score.go, calculateDotProductScore;
gpu_clustering_score.go, GpuClusteringScorePlugin.Score; gpu_packing_score.go, getPackingScore; best_fit_score.go,
getBestFitScore; random_score.go, RandomScorePlugin.Score; pkg/type/open-gpu-share/utils/const.go.
"""

from collections.abc import Callable, Mapping
from typing import Final, TypeAlias

import numpy as np

from extender.cache.tables.arrays import BoolArray, IntArray
from extender.plugins.gpu_share.args import FGD, FILL
from extender.plugins.gpu_share.device_table import NodeDevices, get_request_kind
from extender.plugins.gpu_share.fill import FillTables
from extender.plugins.gpu_share.fragmentation import FragmentationTables
from extender.plugins.gpu_share.gpu_request import MILLI_PER_GPU, GpuRequest
from extender.plugins.gpu_share.target_workload import TargetPod, select_popular_pods

_MAX_MILLI_CPU: Final = 128_000
_MAX_GPU_MILLI: Final = 8 * MILLI_PER_GPU


def score_dot_prod(devices: NodeDevices, request: GpuRequest, cpu: int) -> IntArray:
    """Prefer the smallest product of the free amounts and the requests, *cpu* in milli-CPU."""
    return _score_dot_prod(devices, request.total, cpu)


def score_best_fit(devices: NodeDevices, request: GpuRequest, cpu: int) -> IntArray:
    """Prefer the least CPU and GPU that is left on the node."""
    return _score_best_fit(devices, request.total, cpu)


def score_gpu_clustering(devices: NodeDevices, request: GpuRequest, cpu: int) -> IntArray:  # noqa: ARG001  the policies' signature
    """Prefer nodes whose pods have requests of the same kind, and among them the fullest."""
    if not request.count:
        return np.zeros(len(devices.cpu), dtype=np.int64)
    return _score_gpu_clustering(devices, get_request_kind(request))


def score_gpu_packing(devices: NodeDevices, request: GpuRequest, cpu: int) -> IntArray:  # noqa: ARG001  the policies' signature
    """Prefer shared GPUs with little left, then free GPUs on a used node, then nodes without pods on GPUs."""
    if not request.count:
        return np.zeros(len(devices.cpu), dtype=np.int64)
    usable = np.where(devices.free >= request.milli, devices.free, 2 * MILLI_PER_GPU)
    usable.sort(axis=1)
    return _score_gpu_packing(devices, usable[:, : request.count])


def score_allocation(policy: str, devices: NodeDevices, remaining: NodeDevices) -> IntArray:
    """Return the score of one of these policies except Random, if a pod leaves *remaining* of *devices*.

    GpuClustering compares whether parts of GPUs are taken or whole ones. A pod that takes no GPU has the score of a pod
    without a request.
    """
    cpu, taken = devices.cpu - remaining.cpu, devices.free - remaining.free
    if policy == "DotProd":
        return _score_dot_prod(devices, taken.sum(axis=1), cpu)
    if policy == "BestFit":
        return _score_best_fit(devices, taken.sum(axis=1), cpu)
    if policy == "GpuClustering":
        shared, whole = GpuRequest(1, 1), GpuRequest(MILLI_PER_GPU, 1)
        takes_part = ((taken > 0) & (taken < MILLI_PER_GPU)).any(axis=1)
        scores = _score_gpu_clustering(devices, np.where(takes_part, get_request_kind(shared), get_request_kind(whole)))
    else:
        scores = _score_gpu_packing(devices, np.where(taken > 0, devices.free, 0))
    return np.where(taken.any(axis=1), scores, 0)


def _score_dot_prod(devices: NodeDevices, milli: IntArray | int, cpu: IntArray | int) -> IntArray:
    gpu_product = devices.free.sum(axis=1) / _MAX_GPU_MILLI * milli / _MAX_GPU_MILLI
    product = (devices.cpu / _MAX_MILLI_CPU * cpu / _MAX_MILLI_CPU + gpu_product) / 2
    return _truncate(100 * (1 - product))


def _score_best_fit(devices: NodeDevices, milli: IntArray | int, cpu: IntArray | int) -> IntArray:
    remaining_share = (devices.cpu - cpu) / _MAX_MILLI_CPU * 0.5 + (
        devices.free.sum(axis=1) - milli
    ) / _MAX_GPU_MILLI * 0.5
    return _truncate((1 - remaining_share) * 100)


def _score_gpu_clustering(devices: NodeDevices, kind: IntArray | int) -> IntArray:
    fullness = 25 * (_MAX_GPU_MILLI - devices.free.sum(axis=1)) // _MAX_GPU_MILLI
    kinds = devices.request_kinds
    same_kind = np.where(kinds == kind, 75, 50)
    scores: IntArray = fullness + np.where(kinds & kind, same_kind, np.where(kinds == 0, 25, 0))
    return scores


def _score_gpu_packing(devices: NodeDevices, taken: IntArray) -> IntArray:
    """Return the scores for pods that take GPUs with the free milli *taken*, shape (nodes, any)."""
    whole_free = (devices.free == MILLI_PER_GPU).sum(axis=1)
    whole_taken = (taken == MILLI_PER_GPU).sum(axis=1)
    on_shared_gpus = (100 - (taken * 100 // MILLI_PER_GPU).sum(axis=1) // 10).clip(50, 100)
    on_used_node = (50 - whole_taken).clip(33)
    scores = np.where(whole_taken > 0, on_used_node, on_shared_gpus)
    unused_scores: IntArray = np.maximum(33 - whole_free, whole_free)
    return np.where(whole_free == devices.device_count, unused_scores, scores)


def _truncate(scores: np.ndarray[tuple[int, ...], np.dtype[np.float64]]) -> IntArray:
    """Return *scores* rounded toward zero, as by the authors' conversion to int64, and limited to 0 to 100."""
    truncated: IntArray = scores.astype(np.int64)
    return truncated.clip(0, 100)


def hash_nodes(node_hashes: IntArray, pod_hash: int) -> IntArray:
    """Return a pseudo-random number for each node, int64, 0 or more. It depends on the pod and the node only.

    *node_hashes* are those of the names. *pod_hash* has 32 bits.
    """
    salt = np.uint64(pod_hash * 0xD1B54A32D192ED03 % 2**64)
    mixed = node_hashes.astype(np.uint64) * np.uint64(0x9E3779B97F4A7C15) ^ salt
    mixed = (mixed ^ (mixed >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    mixed = (mixed ^ (mixed >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return (mixed >> np.uint64(16)).astype(np.int64)


SCORE_FUNCTIONS: Final[Mapping[str, Callable[[NodeDevices, GpuRequest, int], IntArray]]] = {
    "DotProd": score_dot_prod,
    "GpuClustering": score_gpu_clustering,
    "GpuPacking": score_gpu_packing,
    "BestFit": score_best_fit,
}
"""The score functions, by policy. These policies choose the GPU with the smallest free part that is large enough."""

WORKLOAD_POLICIES: Final = frozenset((FGD, FILL))
"""The policies that read the target workload."""


WorkloadTables: TypeAlias = FragmentationTables | FillTables
"""The tables of a policy that reads the target workload."""


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

    Both arrays have one entry for each GPU of a node.
    """
    candidates = np.flatnonzero(fits)
    if not len(candidates):
        return ()
    return (int(candidates[device_scores[candidates].argmax()]),)
