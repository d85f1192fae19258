"""The options of GpuShare."""

from typing import Final

import msgspec

from extender.config.errors import FieldError
from extender.config.feature_gates import FeatureGates
from extender.config.field_path import child, item
from extender.plugins.gpu_share.target_workload import TargetPod

FILL: Final = "Fill"
FGD: Final = "FGD"
RANDOM: Final = "Random"
SCORE_POLICIES: Final = (RANDOM, "DotProd", "GpuClustering", "GpuPacking", "BestFit", FGD, FILL)


class GpuShareArgs(msgspec.Struct, frozen=True, rename="camel"):
    """Options of GpuShare.

    Attributes:
        score_policy: the score and the choice of the GPU, one of `SCORE_POLICIES`.
        target_workload: the expected pods; empty if they are learned from the pods seen.
        wasteful_pods_wait: whether Fill lets pods wait that would waste most of the rest of a free GPU, although they
            fit; see `WastefulRequests`.
        seed: the seed of the policy Random.
    """

    score_policy: str = FILL
    target_workload: tuple[TargetPod, ...] = ()
    wasteful_pods_wait: bool = True
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
        return errors
