"""The options of GpuShare."""

from collections.abc import Iterator
from typing import Final

import msgspec

from extender.api.label_syntax import unsupported_value
from extender.config.errors import FieldError, child, item
from extender.config.feature_gates import FeatureGates
from extender.plugins.gpu_share.target_workload import TargetPod

FILL: Final = "Fill"
FGD: Final = "FGD"
RANDOM: Final = "Random"
SCORE_POLICIES: Final = (RANDOM, "DotProd", "GpuClustering", "GpuPacking", "BestFit", FGD, FILL)


class ClaimedDriver(msgspec.Struct, frozen=True, rename="camel"):
    """A driver of DynamicResources whose devices are GPUs.

    Attributes:
        driver: the name of the driver in ResourceSlices.
        resource: the capacity of a device, or the counter of a counter set, that measures how much of a GPU is free.
    """

    driver: str
    resource: str = "memory"


class GpuShareArgs(msgspec.Struct, frozen=True, rename="camel"):
    """Options of GpuShare.

    Attributes:
        score_policy: the score and the choice of the GPU, one of `SCORE_POLICIES`.
        target_workload: the expected pods; empty if they are learned from the pods seen.
        wasteful_pods_wait: whether Fill lets pods wait that would waste most of the rest of a free GPU, although they
            fit; see `WastefulRequests`.
        seed: the seed of the policy Random.
        dynamic_resources: the drivers whose devices are GPUs that resource claims allocate.
    """

    score_policy: str = FILL
    target_workload: tuple[TargetPod, ...] = ()
    wasteful_pods_wait: bool = True
    seed: int = 0
    dynamic_resources: tuple[ClaimedDriver, ...] = ()

    def validate(self, path: str, gates: FeatureGates) -> list[FieldError]:
        """Return an error for each unknown policy, invalid driver and amount out of range."""
        errors: list[FieldError] = []
        if self.score_policy not in SCORE_POLICIES:
            errors.append(FieldError(child(path, "scorePolicy"), unsupported_value(self.score_policy, SCORE_POLICIES)))
        for index, pod in enumerate(self.target_workload):
            errors.extend(pod.validate(item(child(path, "targetWorkload"), index)))
        return [*errors, *self._validate_drivers(child(path, "dynamicResources"), gates)]

    def _validate_drivers(self, path: str, gates: FeatureGates) -> Iterator[FieldError]:
        if self.dynamic_resources and "DynamicResourceAllocation" not in gates:
            yield FieldError(path, "Forbidden: DynamicResourceAllocation feature gate is disabled")
        seen_drivers: set[str] = set()
        for index, entry in enumerate(self.dynamic_resources):
            for name, text in (("driver", entry.driver), ("resource", entry.resource)):
                if not text:
                    yield FieldError(child(item(path, index), name), "Required value")
            if entry.driver in seen_drivers:
                yield FieldError(child(item(path, index), "driver"), f'Duplicate value: "{entry.driver}"')
            seen_drivers.add(entry.driver)
