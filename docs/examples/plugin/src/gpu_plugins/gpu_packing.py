"""GpuPacking: pods with GPU requests fill the nodes with the fewest free GPUs.

**Rejects** nodes on which fewer than `keepFree` GPUs would be left.

**Scores** nodes by the GPUs that would be left; fewer is better.

**Requeues** rejected pods when a pod is deleted, a node is added, or a node's allocatable amounts change.

**Options** `resource`: the resource name of GPUs; `keepFree`: how many stay free on every node.
"""

from collections.abc import Hashable, Sequence
from typing import ClassVar

import msgspec
import numpy as np
from numpy.typing import NDArray

from extender.plugin import (
    SKIP,
    SKIP_SCORE,
    ActionType,
    ClusterEventWithHint,
    DependsOn,
    EventResource,
    FeatureGates,
    FieldError,
    NodeView,
    PluginArgs,
    PodInfo,
    PreFilterResult,
    PreScoreResult,
    Reason,
    Rejection,
    Snapshot,
    default_normalize_score,
)

_TOO_FEW = Reason("node(s) would keep too few GPUs free")


class GpuPackingArgs(msgspec.Struct, frozen=True, rename="camel"):
    resource: str = "example.com/gpu"
    keep_free: int = 0

    def validate(self, path: str, gates: FeatureGates) -> list[FieldError]:
        if self.keep_free < 0:
            return [FieldError(f"{path}.keepFree", f"Invalid value: {self.keep_free}: must be 0 or more")]
        return []


class GpuPacking:
    name: ClassVar[str] = "GpuPacking"
    options = GpuPackingArgs
    filter_depends_on: ClassVar[DependsOn] = DependsOn.NODE_AND_PODS
    score_depends_on: ClassVar[DependsOn] = DependsOn.NODE_AND_PODS

    def __init__(self, args: PluginArgs[GpuPackingArgs]) -> None:
        self.args = args.options

    def pre_filter(self, pod: PodInfo, snapshot: Snapshot) -> PreFilterResult:
        requested = self._requested_gpus(pod)
        return PreFilterResult(state=requested) if requested else SKIP

    def filter_cache_key(self, pod: PodInfo) -> Hashable | None:
        return self._requested_gpus(pod)  # pods with equal requests have equal results

    def filter(self, pod: PodInfo, nodes: NodeView, state: int) -> Sequence[Rejection]:
        too_few = self._free_gpus(nodes) - state < self.args.keep_free
        return (Rejection(too_few, _TOO_FEW),) if too_few.any() else ()

    def pre_score(self, pod: PodInfo, nodes: NodeView) -> PreScoreResult:
        requested = self._requested_gpus(pod)
        return PreScoreResult(state=requested) if requested else SKIP_SCORE

    def score_cache_key(self, pod: PodInfo) -> Hashable | None:
        return self._requested_gpus(pod)

    def score(self, pod: PodInfo, nodes: NodeView, state: int) -> NDArray[np.int64]:
        return (self._free_gpus(nodes) - state).clip(min=0)

    def normalize_score(
        self, pod: PodInfo, scores: NDArray[np.int64], nodes: NodeView, state: int
    ) -> NDArray[np.int64]:
        return default_normalize_score(scores, reverse=True)

    def events_to_register(self) -> Sequence[ClusterEventWithHint]:
        return (
            ClusterEventWithHint(EventResource.ASSIGNED_POD, ActionType.DELETE),
            ClusterEventWithHint(EventResource.NODE, ActionType.ADD | ActionType.UPDATE_NODE_ALLOCATABLE),
        )

    def _requested_gpus(self, pod: PodInfo) -> int:
        return pod.signature.requested_amounts.get(self.args.resource, 0)

    def _free_gpus(self, nodes: NodeView) -> NDArray[np.int64]:
        gpu = nodes.snapshot.symbols.resources.intern(self.args.resource)
        return nodes.allocatable(gpu) - nodes.requested(gpu)
