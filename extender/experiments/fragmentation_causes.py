"""The free GPU milli that the target workload cannot use, by cause.

The definition is that of FGD. Each free part of a GPU is either usable for a random pod of the target workload, or
fragmented for one cause. The sum over the causes is the fragmentation of the plugin GpuShare.

Source: hkust-adsl/kubernetes-scheduler-simulator pkg/utils/frag.go, GetNodePodFrag.
"""

from collections.abc import Mapping, Sequence
from enum import Enum

import numpy as np

from extender.plugins.gpu_share.device_table import NodeDevices
from extender.plugins.gpu_share.target_workload import TargetPod


class Cause(Enum):
    """Why a pod of the target workload cannot use a free part of a GPU."""

    NO_GPU_REQUESTED = "no_gpu_requested"
    GPU_MODEL = "gpu_model"
    GPU = "gpu"
    CPU = "cpu"
    GPU_AND_CPU = "gpu_and_cpu"


def measure_fragmentation(
    devices: NodeDevices, target_workload: Sequence[TargetPod], model_positions: Mapping[str, int]
) -> dict[Cause, float]:
    """Return the expected fragmented milli of all nodes by cause.

    A pod that requests no GPU can use no GPU. On a node with an accepted model, the cause is GPU for each GPU that is
    too full; if too few GPUs suffice, it is GPU for all of them. The cause is CPU for GPUs that suffice on a node
    with too little free CPU.

    The weights of *target_workload* sum up to 1; *model_positions* are `DeviceTable.model_positions`.
    """
    free = devices.free.sum(axis=1)
    milli = dict.fromkeys(Cause, 0.0)
    for pod in target_workload:
        if not pod.gpu_count:
            milli[Cause.NO_GPU_REQUESTED] += pod.weight * int(free.sum())
            continue
        is_accepted = np.isin(devices.model, pod.list_accepted_models(model_positions))
        suffices = devices.free >= pod.gpu_milli
        has_enough = suffices.sum(axis=1) >= pod.gpu_count
        sufficient = np.where(suffices & has_enough[:, None], devices.free, 0).sum(axis=1)
        has_cpu = devices.cpu >= pod.cpu
        for cause, nodes, amounts in (
            (Cause.GPU_MODEL, ~is_accepted, free),
            (Cause.GPU, is_accepted & has_cpu, free - sufficient),
            (Cause.GPU_AND_CPU, is_accepted & ~has_cpu, free - sufficient),
            (Cause.CPU, is_accepted & ~has_cpu, sufficient),
        ):
            milli[cause] += pod.weight * int(amounts[nodes].sum())
    return milli
