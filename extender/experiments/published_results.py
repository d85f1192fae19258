"""The allocation that the authors of FGD published for the openb trace."""

from typing import Final, NamedTuple

from extender.experiments.gpu_trace import Trace
from extender.plugins.gpu_share.gpu_request import get_gpu_models


class TraceFigures(NamedTuple):
    """Figures of a trace in which its variants differ.

    Attributes:
        gpu_milli: the GPU milli that they request.
        pods_with_models: the number of pods that name GPU models.
        capacity: the GPU milli of the nodes.
    """

    pods: int
    gpu_milli: int
    pods_with_models: int
    capacity: int

    def __str__(self) -> str:
        pods = f"{self.pods:,} pods, {self.pods_with_models:,} of them with GPU models"
        return f"{pods}, that request {self.gpu_milli / 1000:,.2f} of {self.capacity / 1000:,.0f} GPUs"


PUBLISHED_PERCENTS: Final = {
    "default": {
        "Random": (78.66, 85.02, 86.3, 86.88, 87.47),
        "DotProd": (80.02, 89.98, 90.62, 90.7, 90.85),
        "GpuClustering": (80.02, 89.98, 91.65, 91.73, 91.88),
        "GpuPacking": (80.02, 89.98, 91.78, 91.86, 92.0),
        "BestFit": (80.02, 89.99, 92.86, 92.94, 93.08),
        "FGD": (80.02, 89.98, 95.23, 95.3, 95.39),
    },
    "gpuspec33": {
        "Random": (70.42, 77.4, 83.87, 85.55, 86.46),
        "DotProd": (65.38, 72.6, 79.82, 87.12, 89.14),
        "GpuClustering": (66.69, 73.87, 81.09, 88.4, 92.12),
        "GpuPacking": (67.83, 75.0, 82.22, 89.53, 93.22),
        "BestFit": (65.7, 73.1, 80.39, 87.7, 93.09),
        "FGD": (73.44, 80.62, 87.84, 94.43, 94.55),
    },
    "gpushare100": {
        "Random": (76.79, 78.21, 78.9, 79.13, 79.44),
        "DotProd": (80.0, 81.84, 81.98, 82.12, 82.42),
        "GpuClustering": (80.0, 82.08, 82.22, 82.37, 82.65),
        "GpuPacking": (80.0, 81.99, 82.13, 82.28, 82.57),
        "BestFit": (80.0, 84.47, 84.62, 84.75, 85.01),
        "FGD": (80.0, 86.53, 86.64, 86.72, 86.9),
    },
    "multigpu50": {
        "Random": (68.95, 75.07, 81.28, 87.01, 90.27),
        "DotProd": (80.02, 89.87, 94.73, 94.76, 94.85),
        "GpuClustering": (80.02, 89.85, 95.69, 95.72, 95.81),
        "GpuPacking": (80.02, 89.87, 96.06, 96.1, 96.18),
        "BestFit": (80.02, 89.97, 95.62, 95.66, 95.74),
        "FGD": (80.02, 89.93, 97.09, 97.12, 97.18),
    },
    "cpu200": {
        "Random": (78.48, 82.32, 83.03, 83.51, 83.77),
        "DotProd": (80.0, 87.37, 87.45, 87.55, 87.7),
        "GpuClustering": (80.0, 89.53, 89.67, 89.76, 89.92),
        "GpuPacking": (80.0, 89.71, 89.98, 90.07, 90.22),
        "BestFit": (80.0, 89.99, 92.15, 92.24, 92.4),
        "FGD": (80.0, 89.99, 94.82, 94.91, 95.05),
    },
}
"""The allocated per cent of the GPUs, by variant of the trace and by policy, at each of `REPORTED_DEMAND_PERCENTS`.

The values are means of the seeds 42 to 51.

Source: hkust-adsl/kubernetes-scheduler-simulator,
experiments/analysis/expected_results/analysis_allo_discrete.csv (Weng et al., USENIX ATC'23)
"""

REFERENCE_POLICY: Final = "FGD"
"""The published policy with which a policy without published results is compared."""

_CAPACITY: Final = 6_212_000

TRACE_FIGURES: Final = {
    "default": TraceFigures(8152, 6_086_800, 0, _CAPACITY),
    "gpuspec33": TraceFigures(8152, 6_086_800, 2388, _CAPACITY),
    "gpushare100": TraceFigures(8152, 3_952_670, 0, _CAPACITY),
    "multigpu50": TraceFigures(9061, 11_358_800, 0, _CAPACITY),
    "cpu200": TraceFigures(8832, 6_086_800, 0, _CAPACITY),
}
"""The figures of each variant of openb.

Source: hkust-adsl/kubernetes-scheduler-simulator, data/csv/openb_pod_list_*.csv, data/csv/openb_node_list_gpu_node.csv.
"""


def measure_trace(trace: Trace) -> TraceFigures:
    """Return the figures of *trace*."""
    pods_with_models = sum(1 for pod in trace.pods if get_gpu_models(pod))
    return TraceFigures(len(trace.pods), sum(trace.gpu_milli), pods_with_models, trace.capacity)
