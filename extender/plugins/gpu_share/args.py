"""The options of GpuShare."""

from typing import Final

import msgspec

from extender.config.errors import FieldError
from extender.config.feature_gates import FeatureGates
from extender.config.field_path import child, item
from extender.config.validation import make_invalid_value_error
from extender.plugins.gpu_share.gpu_request import MILLI_PER_GPU
from extender.plugins.gpu_share.target_workload import TargetPod

FILL: Final = "Fill"
FGD: Final = "FGD"
RANDOM: Final = "Random"
SCORE_POLICIES: Final = (RANDOM, "DotProd", "GpuClustering", "GpuPacking", "BestFit", FGD, FILL)


class WholeGpuReserve(msgspec.Struct, frozen=True, rename="camel"):
    """GPUs that are reserved for pods that use whole GPUs.

    Attributes:
        percent: the part of all GPUs to reserve, 0 to 100. If at most this part is entirely free, shared pods of at
            least `from_milli` can only use GPUs that are in use already.
        from_milli: the least request of a pod, in milli, to which the reserve applies; 1 to 1000.
    """

    percent: float = 0.0
    from_milli: int = 1


class GpuShareArgs(msgspec.Struct, frozen=True, rename="camel"):
    """Options of GpuShare.

    Attributes:
        score_policy: the score and the choice of the GPU, one of `SCORE_POLICIES`.
        target_workload: the expected pods; empty if they are learned from the pods seen.
        whole_gpu_reserve: the GPUs that are reserved for pods that use whole GPUs.
        seed: the seed of the policy Random.
    """

    score_policy: str = FILL
    target_workload: tuple[TargetPod, ...] = ()
    whole_gpu_reserve: WholeGpuReserve = WholeGpuReserve()
    seed: int = 0

    def validate(self, path: str, gates: FeatureGates) -> list[FieldError]:  # noqa: ARG002  the interface's signature
        """Return an error for each unknown policy and each amount out of range."""
        errors: list[FieldError] = []
        if self.score_policy not in SCORE_POLICIES:
            supported = ", ".join(f'"{policy}"' for policy in SCORE_POLICIES)
            message = f'Unsupported value: "{self.score_policy}": supported values: {supported}'
            errors.append(FieldError(child(path, "scorePolicy"), message))
        for index, pod in enumerate(self.target_workload):
            errors.extend(pod.validate(item(child(path, "targetWorkload"), index)))
        reserve, reserve_path = self.whole_gpu_reserve, child(path, "wholeGpuReserve")
        if not 0 <= reserve.percent <= 100:
            errors.append(make_invalid_value_error(child(reserve_path, "percent"), reserve.percent, "must be 0 to 100"))
        if not 1 <= reserve.from_milli <= MILLI_PER_GPU:
            message = f"must be 1 to {MILLI_PER_GPU}"
            errors.append(make_invalid_value_error(child(reserve_path, "fromMilli"), reserve.from_milli, message))
        return errors
