"""GpuPacking: pods that ask for GPUs fill the nodes that have the fewest left.

**Refuses** nodes on which fewer than `keepFree` GPUs would be left.

**Scores** the GPUs that would be left, fewest best.

**Undone by** a pod that leaves a node, a new node, a node that offers more.

**Options** `resource`: what counts as a GPU; `keepFree`: how many stay free on every node.
"""

from collections.abc import Hashable, Sequence
from typing import ClassVar

import msgspec
import numpy as np
from numpy.typing import NDArray

from extender.cluster.pods import PodQuery
from extender.cluster.snapshot import NodeView, Snapshot
from extender.config.faults import Fault
from extender.config.gates import FeatureGates
from extender.framework.changes import Action, Registration, Resource
from extender.framework.normalize import in_proportion
from extender.framework.points import SKIP, SKIP_SCORE, PreFiltered, PreScored, Reads
from extender.framework.setup import Setup
from extender.framework.verdict import Reason, Rejection

_TOO_FEW = Reason("node(s) would keep too few GPUs free")


class GpuPackingArgs(msgspec.Struct, frozen=True, rename="camel"):
    resource: str = "example.com/gpu"
    keep_free: int = 0

    def faults(self, path: str, gates: FeatureGates) -> list[Fault]:
        if self.keep_free < 0:
            return [Fault(f"{path}.keepFree", f"Invalid value: {self.keep_free}: must be 0 or more")]
        return []


class GpuPacking:
    name: ClassVar[str] = "GpuPacking"
    options = GpuPackingArgs
    filter_reads: ClassVar[Reads] = Reads.PODS
    score_reads: ClassVar[Reads] = Reads.PODS

    def __init__(self, setup: Setup[GpuPackingArgs]) -> None:
        self.args = setup.options

    def pre_filter(self, pod: PodQuery, cluster: Snapshot) -> PreFiltered:
        asked = self._asked(pod, cluster)
        return PreFiltered(notes=asked) if asked else SKIP

    def filter_key(self, pod: PodQuery) -> Hashable | None:
        return pod.shape.asked  # one answer for all pods that ask for the same amounts

    def filter(self, pod: PodQuery, nodes: NodeView, notes: int) -> Sequence[Rejection]:
        short = self._left(nodes) - notes < self.args.keep_free
        return (Rejection(short, _TOO_FEW),) if short.any() else ()

    def pre_score(self, pod: PodQuery, nodes: NodeView) -> PreScored:
        asked = self._asked(pod, nodes.snapshot)
        return PreScored(notes=asked) if asked else SKIP_SCORE

    def score_key(self, pod: PodQuery) -> Hashable | None:
        return pod.shape.asked

    def score(self, pod: PodQuery, nodes: NodeView, notes: int) -> NDArray[np.int64]:
        return (self._left(nodes) - notes).clip(min=0)

    def normalize(self, pod: PodQuery, raw: NDArray[np.int64], nodes: NodeView, notes: int) -> NDArray[np.int64]:
        return in_proportion(raw, reverse=True)

    def events(self) -> Sequence[Registration]:
        return (
            Registration(Resource.ASSIGNED_POD, Action.DELETE),
            Registration(Resource.NODE, Action.ADD | Action.UPDATE_NODE_ALLOCATABLE),
        )

    def _asked(self, pod: PodQuery, cluster: Snapshot) -> int:
        return dict(pod.shape.asked).get(cluster.vocabulary.resources.id(self.args.resource), 0)

    def _left(self, nodes: NodeView) -> NDArray[np.int64]:
        gpu = nodes.snapshot.vocabulary.resources.id(self.args.resource)
        return nodes.allocatable(gpu) - nodes.requested(gpu)
