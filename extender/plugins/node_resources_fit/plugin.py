"""NodeResourcesFit keeps pods off nodes that have too little left for them, and rates nodes by how full they would be.

**Refuses** a node for every one of these that holds: it has as many pods as it takes (`Too many pods`), or less is
left of a resource than the pod asks for (`Insufficient cpu`). What is left is allocatable minus the requests of the
pods there. Preemption may make room, unless the node as a whole has less than the pod asks for. Amounts of 0 are not
checked. A pod with a sidecar is refused everywhere if the gate SidecarContainers is off. An extended resource that a
node does not offer itself is left to DynamicResources if a device class serves it.

**Scores** by `scoringStrategy.type`, for the resources in `scoringStrategy.resources` with their weights:
LeastAllocated prefers nodes with much left, MostAllocated nodes with little left, RequestedToCapacityRatio what the
user draws as a function of utilization. Containers without a request for cpu or memory count for 100m and 200Mi. Of
the pod to place, requests of the pod as a whole and resources in effect do not count. Scores are not normalized.
Devices that serve an extended resource are not counted yet: on a node that has no more than them it does not count.

**Undone by** a pod deleted or scaled down, a node added or with more to offer, a device class added or changed.

**Options** `ignoredResources`, `ignoredResourceGroups`: extended resources that are not checked, by name or by what
stands before the slash. `scoringStrategy`: `type`, `resources` (a list of `name` and `weight`, 1 to 100; cpu and
memory if it is empty) and `requestedToCapacityRatio.shape` (points of `utilization`, 0 to 100, and `score`, 0 to 10).

Source: B030 to B041, B044, B045, G038, G039.
"""

from collections.abc import Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any, ClassVar, Final, cast

import msgspec
import numpy as np

from extender.cluster.arrays import BoolArray, IntArray
from extender.cluster.device_classes import classes_by_resource
from extender.cluster.pods import PodQuery
from extender.cluster.snapshot import NodeView, Snapshot
from extender.config.faults import Fault
from extender.config.gates import FeatureGates
from extender.config.paths import child, item
from extender.config.validate import invalid
from extender.framework.changes import Registration
from extender.framework.function_shape import UtilizationShapePoint, shape_faults
from extender.framework.points import PreFiltered, PreScored, Reads
from extender.framework.scored_devices import ScoredDevices
from extender.framework.scored_resources import (
    DEFAULT_RESOURCES,
    ResourceSpec,
    ScoredResource,
    defaulted_resources,
    scored_resources,
)
from extender.framework.setup import Setup
from extender.framework.verdict import Code, Reason, Rejection, error, unresolvable
from extender.objects.devices import DeviceClass
from extender.objects.label_syntax import qualified_name_faults
from extender.objects.requests import Counting, fit_score_requests, is_dra_extended, is_extended, pod_requests
from extender.plugins.node_resources_fit.events import FitEvents
from extender.plugins.node_resources_fit.strategies import (
    Strategy,
    least_allocated,
    most_allocated,
    requested_to_capacity_ratio,
)

_BY_SHAPE: Final = "RequestedToCapacityRatio"
_STRATEGIES: Final[Mapping[str, Strategy]] = {"LeastAllocated": least_allocated, "MostAllocated": most_allocated}
_TYPES: Final = (*_STRATEGIES, _BY_SHAPE)

_TOO_MANY_PODS: Final = Reason("Too many pods")
_UNPREPARED: Final = Reason('error reading "PreFilterNodeResourcesFit" from cycleState: not found', Code.ERROR)
_NO_SIDECARS: Final = PreFiltered(
    unresolvable("Pod has a restartable init container and the SidecarContainers feature is disabled")
)
_NOTHING_TO_SCORE: Final = PreScored(status=error("resources not found"))


class RequestedToCapacityRatioParam(msgspec.Struct, frozen=True, rename="camel"):
    """What RequestedToCapacityRatio needs.

    Attributes:
        shape: the points of the function from utilization to score.
    """

    shape: tuple[UtilizationShapePoint, ...] = ()


class ScoringStrategy(msgspec.Struct, frozen=True, rename="camel"):
    """How nodes are scored.

    Attributes:
        type: LeastAllocated, MostAllocated or RequestedToCapacityRatio.
        resources: what counts.
        requested_to_capacity_ratio: for that type only.
    """

    type: str = ""
    resources: tuple[ResourceSpec, ...] = DEFAULT_RESOURCES
    requested_to_capacity_ratio: RequestedToCapacityRatioParam | None = None

    def faults(self, path: str) -> Iterator[Fault]:
        """Source: G038, G039."""
        if self.type not in _TYPES:
            known = ", ".join(f'"{name}"' for name in _TYPES)
            yield Fault(child(path, "type"), f'Unsupported value: "{self.type}": supported values: {known}')
        for index, spec in enumerate(self.resources):
            if not 0 < spec.weight <= 100:
                where = child(item(child(path, "resources"), index), "weight")
                yield invalid(where, spec.weight, f"resource weight of {spec.name} not in valid range (0, 100]")
        ratio, where = self.requested_to_capacity_ratio, child(path, "requestedToCapacityRatio")
        if self.type != _BY_SHAPE:
            if ratio is not None:
                yield Fault(where, f"Forbidden: must be nil when type is not {_BY_SHAPE}")
        elif ratio is None:
            yield Fault(where, f"Required value: must be specified when type is {_BY_SHAPE}")
        else:
            yield from shape_faults(ratio.shape, child(where, "shape"))


class NodeResourcesFitArgs(msgspec.Struct, frozen=True, rename="camel"):
    """Options of NodeResourcesFit; see the module."""

    ignored_resources: tuple[str, ...] = ()
    ignored_resource_groups: tuple[str, ...] = ()
    scoring_strategy: ScoringStrategy = ScoringStrategy(type="LeastAllocated")

    @classmethod
    def defaulted(cls, raw: Mapping[str, Any], gates: FeatureGates) -> Mapping[str, Any]:  # noqa: ARG003
        """*raw* with the defaults of the strategy as a whole, of its resources and of their weights. Source: G038."""
        strategy = raw.get("scoringStrategy")
        if strategy is None:
            strategy = {"type": "LeastAllocated"}
        if not isinstance(strategy, Mapping):
            return raw
        resources = defaulted_resources(strategy.get("resources"))
        return {**raw, "scoringStrategy": {**strategy, "resources": resources}}

    def faults(self, path: str, gates: FeatureGates) -> list[Fault]:  # noqa: ARG002
        """Names that are no names of resources, and faults of the strategy. Source: G038, G039."""
        found: list[Fault] = []
        for index, name in enumerate(self.ignored_resources):
            where = item(child(path, "ignoredResources"), index)
            found += [invalid(where, name, text) for text in qualified_name_faults(name)]
        for index, group in enumerate(self.ignored_resource_groups):
            where = item(child(path, "ignoredResourceGroups"), index)
            if "/" in group:
                found.append(invalid(where, group, "resource group name can't contain '/'"))
            found += [invalid(where, group, text) for text in qualified_name_faults(group)]
        found += self.scoring_strategy.faults(child(path, "scoringStrategy"))
        return found


@lru_cache(maxsize=1024)
def _reasons(resource: str, number: int) -> tuple[Reason, Reason]:
    """Too little of *resource*, whose id is *number*, is left; too little was ever there. Source: B031, B032."""
    text, order = f"Insufficient {resource}", number + 1  # after "Too many pods"
    return Reason(text, order=order), Reason(text, Code.UNRESOLVABLE, order)


@dataclass(frozen=True, slots=True)
class _Demand:
    """What a pod asks for of one resource.

    Attributes:
        number: the id of the resource in the vocabulary.
        amount: in base units, above 0.
        short, hopeless: why a node is refused that has too little left, or too little at all.
        served: a device class serves the resource where a node does not offer it.
    """

    number: int
    amount: int
    short: Reason
    hopeless: Reason
    served: bool = False

    def is_met(self, nodes: NodeView, row: int) -> bool:
        """Whether the only *row* of *nodes* has enough left, beyond doubt. Source: B031."""
        requested, allocatable = nodes.amounts_of(row, self.number)
        return requested >= 0 and allocatable - requested >= self.amount  # below 0 only after an overflow

    def rejections(self, nodes: NodeView) -> Iterator[Rejection]:
        """Source: B031, B032, B034."""
        allocatable = nodes.allocatable(self.number)
        lacking: BoolArray = allocatable - nodes.requested(self.number) < self.amount
        if self.served:
            lacking &= allocatable > 0
        if not np.count_nonzero(lacking):
            return
        hopeless = lacking & (allocatable < self.amount)
        if np.count_nonzero(hopeless):
            yield Rejection(hopeless, self.hopeless)
            lacking ^= hopeless
            if not np.count_nonzero(lacking):
                return
        yield Rejection(lacking, self.short)


def _fits(demands: Sequence[_Demand], nodes: NodeView, row: int) -> bool:
    """Whether nothing speaks against the only *row* of *nodes*, as it mostly is after a placement there."""
    count, allowed = nodes.pods_of(row)
    return count < allowed and all(demand.is_met(nodes, row) for demand in demands)


class NodeResourcesFit:
    """Answers are kept by what the pod asks for, so that a placement costs one row."""

    name: ClassVar[str] = "NodeResourcesFit"
    options = NodeResourcesFitArgs
    filter_reads: ClassVar[Reads] = Reads.PODS
    score_reads: ClassVar[Reads] = Reads.PODS

    def __init__(self, setup: Setup[NodeResourcesFitArgs]) -> None:
        options, gates = setup.options, setup.gates
        strategy = options.scoring_strategy
        self._ignored = frozenset(options.ignored_resources)
        self._ignored_groups = frozenset(options.ignored_resource_groups)
        self._specs = strategy.resources
        ratio = strategy.requested_to_capacity_ratio
        self._strategy = requested_to_capacity_ratio(ratio.shape) if ratio else _STRATEGIES[strategy.type]
        self._pod_level = "PodLevelResources" in gates
        self._sidecars = "SidecarContainers" in gates
        self._devices = "DRAExtendedResource" in gates
        self._events = FitEvents(gates)
        self._scored_devices = ScoredDevices(gates, self._specs)

    def events(self) -> Sequence[Registration]:
        """Source: B044."""
        return self._events.registrations()

    # -- filter

    def _asked(self, pod: PodQuery) -> tuple[tuple[str, int], ...]:
        """What is checked for the pod, by name of the resource, zeros left out. Source: B030, B031, B033.

        An amount that is below 0 after an overflow counts as 0.
        """

        def make() -> tuple[tuple[str, int], ...]:
            amounts = pod_requests(pod.pod, Counting(status=False, pod_level=self._pod_level))
            return tuple(
                (name, amount) for name, amount in amounts.items() if amount > 0 and not self._is_ignored(name)
            )

        return pod.shape.remember((self, "asked"), make)

    def _is_ignored(self, name: str) -> bool:
        named = name in self._ignored or name.split("/", 1)[0] in self._ignored_groups
        return named and is_extended(name)

    def _may_be_served(self, pod: PodQuery) -> bool:
        """Whether devices may serve a resource the pod asks for, so that its device classes matter too."""
        return self._devices and pod.shape.remember(
            (self, "served"), lambda: any(is_dra_extended(name) for name, _ in self._asked(pod))
        )

    def pre_filter(self, pod: PodQuery, cluster: Snapshot) -> PreFiltered:
        """Notes what is to be checked. Source: B030, B034."""
        if not self._sidecars and any(container.is_sidecar for container in pod.spec.init_containers):
            return _NO_SIDECARS

        def make() -> PreFiltered:
            words = cluster.vocabulary.resources
            return PreFiltered(
                notes=tuple(
                    _Demand(number, amount, *_reasons(name, number))
                    for name, amount in self._asked(pod)
                    for number in (words.id(name),)
                )
            )

        plain = pod.shape.remember(
            (self, "demands"), lambda: cluster.vocabulary.remember((self, "demands", self._asked(pod)), make)
        )
        if not self._may_be_served(pod):
            return plain
        served = classes_by_resource(cluster.objects(DeviceClass).values())
        names = [name for name, _ in self._asked(pod)]
        demands = zip(plain.notes, names, strict=True)
        return replace(plain, notes=tuple(replace(each, served=name in served) for each, name in demands))

    def pre_filter_kept(self, pod: PodQuery) -> bool:
        """Unless devices may serve some of it: the answer then hangs on the device classes too."""
        return not self._may_be_served(pod)

    def filter_key(self, pod: PodQuery) -> Hashable | None:
        """What is checked; None if devices may serve some of it: the answer then hangs on the device classes too."""
        return None if self._may_be_served(pod) else self._asked(pod)

    def filter(self, pod: PodQuery, nodes: NodeView, notes: Any) -> Sequence[Rejection]:  # noqa: ARG002
        """As upstream, an error on every node if `pre_filter` is switched off. Source: B031, B032."""
        if notes is None:
            return (Rejection(np.ones(len(nodes), dtype=np.bool_), _UNPREPARED),)
        demands = cast("tuple[_Demand, ...]", notes)
        if nodes.only is not None and _fits(demands, nodes, nodes.only):
            return ()
        refused: list[Rejection] = []
        full: BoolArray = nodes.pod_count >= nodes.allowed_pods
        if np.count_nonzero(full):
            refused.append(Rejection(full, _TOO_MANY_PODS))
        for demand in demands:
            refused.extend(demand.rejections(nodes))
        return refused

    # -- score

    def _requests(self, pod: PodQuery) -> tuple[int, ...]:
        """What the pod counts for of each resource that is scored, in the order of the options. Source: B036, B041."""

        def make() -> tuple[int, ...]:
            amounts = fit_score_requests(pod.pod)
            return tuple(amounts.get(spec.name, 0) for spec in self._specs)

        return pod.shape.remember((self, "requests"), make)

    def score_key(self, pod: PodQuery) -> Hashable | None:
        """The requests; None if devices may serve one: the score then hangs on more than the node and its pods."""
        return pod.shape.remember((self, "key"), lambda: self._scored_devices.key(self._requests(pod)))

    def pre_score(self, pod: PodQuery, nodes: NodeView) -> PreScored:
        """Notes what counts; never skips. Source: B036, B040."""

        def make() -> PreScored:
            if not self._specs:
                return _NOTHING_TO_SCORE
            words = nodes.snapshot.vocabulary.resources
            return PreScored(notes=scored_resources(self._specs, self._requests(pod), words, nonzero=True))

        return pod.shape.remember(
            (self, "scored"), lambda: nodes.snapshot.vocabulary.remember((self, self._requests(pod)), make)
        )

    def pre_score_kept(self, pod: PodQuery) -> bool:  # noqa: ARG002  the point's signature
        """Always."""
        return True

    def score(self, pod: PodQuery, nodes: NodeView, notes: Any) -> IntArray:
        """0 to 100 for each node; worked out without `pre_score` where that is switched off.

        Source: B037 to B039, B042.
        """
        if notes is None:
            notes = self.pre_score(pod, nodes).notes
        resources = cast("tuple[ScoredResource, ...]", notes)
        if self.score_key(pod) is None:
            resources = self._scored_devices.instead(resources, nodes.snapshot)
        return self._strategy(resources, nodes)
