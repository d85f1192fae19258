"""NodeResourcesBalancedAllocation prefers nodes whose resources the pod would leave evenly used.

**Scores.** How evenly a node is used is `(1 - deviation) * 100`, where the deviation is that of the shares of its
resources that are taken: half the difference for two resources, the standard deviation for more, 0 for less. The
score says what the pod changes about that: `50 + (50 + with the pod - without it) / 2`, in integers, so 75 means no
change. What is taken are real requests; containers that ask for nothing take nothing. Shares are 1 at most. A
resource that the node does not have does not count, nor does a scalar resource that the pod does not ask for. A pod
that asks for none of the resources is not scored. Scores are not normalized. Devices that serve an extended resource
count where the node itself has none of it.

**Options.** `resources`: what counts, a list of `name` and `weight`; cpu and memory if it is empty. A weight must be
1, a name may stand there once.

Source: B041, B046 to B049, G040.
"""

from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Final, cast

import numpy as np

from extender.cluster.accounting import counting_of
from extender.cluster.arrays import FloatArray, IntArray
from extender.cluster.pods import PodQuery
from extender.cluster.snapshot import NodeView
from extender.config.faults import Fault
from extender.config.gates import FeatureGates
from extender.config.paths import child, item
from extender.config.validate import invalid
from extender.framework.allocated_mean import AllocatedMeanArgs
from extender.framework.points import SKIP_SCORE, PreScored, Reads
from extender.framework.scored_devices import ScoredDevices
from extender.framework.scored_resources import ScoredResource, scored_resources
from extender.framework.setup import Setup
from extender.objects.requests import pod_requests

_HALF: Final = 50
_WHOLE: Final = 100.0
_COARSE: Final = 2**53


class NodeResourcesBalancedAllocationArgs(AllocatedMeanArgs, frozen=True, rename="camel"):
    """Options of NodeResourcesBalancedAllocation. Source: G040.

    Attributes:
        resources: what counts.
    """

    def faults(self, path: str, gates: FeatureGates) -> list[Fault]:  # noqa: ARG002
        """Weights other than 1, and names that stand there twice. Source: G040."""
        found: list[Fault] = []
        seen: set[str] = set()
        for index, spec in enumerate(self.resources):
            where = item(child(path, "resources"), index)
            if spec.name in seen:
                found.append(Fault(child(where, "name"), f'Duplicate value: "{spec.name}"'))
            seen.add(spec.name)
            if spec.weight != 1:
                found.append(invalid(child(where, "weight"), spec.weight, "must be 1"))
        return found


@dataclass(frozen=True, slots=True)
class _Weighed:
    """A resource with what is added to the amounts taken: nothing, for the node without the pod, and the pod's request.

    Attributes:
        resource: the resource.
        added: int64, shape (2, 1).
    """

    resource: ScoredResource
    added: IntArray


class NodeResourcesBalancedAllocation:
    """The plugin; see the module."""

    name: ClassVar[str] = "NodeResourcesBalancedAllocation"
    options = NodeResourcesBalancedAllocationArgs
    score_reads: ClassVar[Reads] = Reads.PODS

    def __init__(self, setup: Setup[NodeResourcesBalancedAllocationArgs]) -> None:
        self._specs = setup.options.resources
        gates = setup.gates
        self._counting = counting_of(gates)._replace(devices=False)
        self._scored_devices = ScoredDevices(gates, self._specs)

    def _requests(self, pod: PodQuery) -> tuple[int, ...]:
        """What the pod asks for of each resource, in the order of the options; base units. Source: B041."""

        def make() -> tuple[int, ...]:
            amounts = pod_requests(pod.pod, self._counting)
            return tuple(amounts.get(spec.name, 0) for spec in self._specs)

        return pod.shape.remember((self, "requests"), make)

    def pre_score_kept(self, pod: PodQuery) -> bool:  # noqa: ARG002  the point's signature
        """Always."""
        return True

    def score_key(self, pod: PodQuery) -> Hashable | None:
        """The requests; None if devices may serve one: the score then hangs on more than the node and its pods."""
        return pod.shape.remember((self, "key"), lambda: self._scored_devices.key(self._requests(pod)))

    def pre_score(self, pod: PodQuery, nodes: NodeView) -> PreScored:
        """Skips pods that ask for none of the resources; else notes what counts. Source: B048."""

        def make() -> PreScored:
            requests = self._requests(pod)
            if not any(requests):
                return SKIP_SCORE
            counting = scored_resources(self._specs, requests, nodes.snapshot.vocabulary.resources, nonzero=False)
            return PreScored(
                notes=tuple(_Weighed(each, np.array([[0], [each.request]], dtype=np.int64)) for each in counting)
            )

        return pod.shape.remember(
            (self, "notes"), lambda: nodes.snapshot.vocabulary.remember((self, self._requests(pod)), make)
        )

    def score(self, pod: PodQuery, nodes: NodeView, notes: Any) -> IntArray:
        """50 to 100 for each node, above 75 where the pod evens things out. Source: B046.

        Where `pre_score` is switched off it is asked here; a pod that it would skip scores 0 everywhere.
        """
        if notes is None:
            answer = self.pre_score(pod, nodes)
            if answer.skip:
                return np.zeros(len(nodes), dtype=np.int64)
            notes = answer.notes
        counting = self._weighed(pod, nodes, cast("Sequence[_Weighed]", notes))
        if nodes.only is not None:
            score = _score_of_one(counting, nodes, nodes.only)
            if score is not None:
                return np.array([score], dtype=np.int64)
        return self._scores(counting, nodes)

    def _weighed(self, pod: PodQuery, nodes: NodeView, weighed: Sequence[_Weighed]) -> Sequence[_Weighed]:
        """*weighed* with devices in the place of resources they stand in for. Source: B042."""
        if self.score_key(pod) is not None:
            return weighed
        resources = self._scored_devices.instead([each.resource for each in weighed], nodes.snapshot)
        return [_Weighed(resource, each.added) for resource, each in zip(resources, weighed, strict=True)]

    def _scores(self, counting: Sequence[_Weighed], nodes: NodeView) -> IntArray:
        """The scores by *counting*, where a node may have none of a resource."""
        offered: list[tuple[_Weighed, IntArray]] = []
        for weighed in counting:
            capacity = weighed.resource.capacity(nodes)
            offering = np.count_nonzero(capacity)
            if offering == len(capacity):
                offered.append((weighed, capacity))
            elif offering:
                return self._apart(counting, nodes, capacity)
        shares: list[FloatArray] = []
        for weighed, capacity in offered:
            share = (weighed.resource.taken(nodes) + weighed.added) / capacity
            shares.append(np.minimum(share, 1.0, out=share))
        evenness = ((1 - _deviation(shares, len(nodes))) * _WHOLE).astype(np.int64)
        gain: IntArray = evenness[1] - evenness[0]
        gain += _HALF
        gain += gain < 0  # Go's division truncates, a shift does not; negative only after an overflow
        gain >>= 1
        gain += _HALF
        return gain

    def _apart(self, counting: Sequence[_Weighed], nodes: NodeView, capacity: IntArray) -> IntArray:
        """The scores where some nodes have none of a resource: those and the others are scored apart."""
        scores = np.empty(len(nodes), dtype=np.int64)
        for places in (np.flatnonzero(capacity), np.flatnonzero(capacity == 0)):
            rows = places if nodes.rows is None else nodes.rows[places]
            scores[places] = self._scores(counting, nodes.snapshot.view(rows))
        return scores


def _score_of_one(counting: Sequence[_Weighed], nodes: NodeView, row: int) -> int | None:
    """The score of the only *row* of *nodes* by its two resources, as it is after each placement.

    None for another number of resources, and for amounts that a float cannot hold.
    """
    without: list[float] = []
    beside: list[float] = []
    for weighed in counting:
        taken, capacity = weighed.resource.of_row(nodes, row)
        if capacity:
            more = taken + weighed.resource.request
            if not (0 <= taken <= more < _COARSE and 0 < capacity < _COARSE):
                return None
            without.append(min(taken / capacity, 1.0))
            beside.append(min(more / capacity, 1.0))
    if len(without) != 2:
        return None
    before, after = (int((1 - abs(one - other) * 0.5) * _WHOLE) for one, other in (without, beside))
    return (after - before + _HALF) // 2 + _HALF


def _deviation(shares: Sequence[FloatArray], size: int) -> FloatArray:
    """The deviation of the shares that are taken of a node's resources: float64, shape (2, size).

    The first line is without the pod, the second with it. The order of operations is upstream's, so that results are
    equal to the last digit. Source: B047.

    Args:
        shares: for each resource, shape (2, size); they are overwritten.
        size: number of nodes.
    """
    if len(shares) < 2:
        return np.zeros((2, size))
    if len(shares) == 2:
        apart = np.subtract(shares[0], shares[1], out=shares[0])
        np.abs(apart, out=apart)
        apart *= 0.5
        return apart
    mean = shares[0] + shares[1]
    for share in shares[2:]:
        mean += share
    mean /= len(shares)
    total = np.zeros((2, size))
    for share in shares:
        difference = np.subtract(share, mean, out=share)
        total += np.multiply(difference, difference, out=difference)
    total /= len(shares)
    return np.sqrt(total, out=total)
