"""The mean over resources by which plugins of releases up to 1.22 rated how full a node would be.

Unlike the strategies of NodeResourcesFit they let every configured resource count on every node: one that the node
does not have is rated too, by each plugin in its own way. Source: C055, C056, C058.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from extender.basics.intern import Interner
from extender.cluster.arrays import IntArray
from extender.cluster.pods import PodQuery
from extender.cluster.snapshot import NodeView
from extender.config.faults import Fault
from extender.config.paths import child, item
from extender.config.validate import invalid
from extender.framework.scored_resources import ResourceSpec
from extender.objects.requests import fit_score_requests, is_scalar

Rate = Callable[[IntArray, IntArray], IntArray]
"""One resource's score, 0 to 100, by what would be taken of it and by its capacity; both are int64, one a node."""

_PLAIN: Final = ("cpu", "memory", "ephemeral-storage")
_NONZERO_LINE: Final[Mapping[str, int]] = {"cpu": 0, "memory": 1}


@dataclass(frozen=True, slots=True)
class MeanResource:
    """A resource that counts for one pod.

    Attributes:
        number: its id in the vocabulary; None if the scheduler does not count it: no node has any of it then.
        weight: as configured.
        request: of the pod, in base units, containers that ask for no cpu or memory counting for 100m and 200Mi.
        nonzero_line: the line of `NodeView.nonzero_requested` that holds what is taken, or None: `requested` does.
    """

    number: int | None
    weight: int
    request: int
    nonzero_line: int | None

    def amounts(self, nodes: NodeView) -> tuple[IntArray, IntArray]:
        """What would be taken on each node with the pod there, and what the node has; neither may be written to."""
        if self.number is None:
            nothing = np.zeros(len(nodes), dtype=np.int64)
            return nothing, nothing
        line = self.nonzero_line
        taken = nodes.requested(self.number) if line is None else nodes.nonzero_requested(line)
        return taken + self.request, nodes.allocatable(self.number)


def requests_of(pod: PodQuery, specs: Sequence[ResourceSpec]) -> tuple[int, ...]:
    """What *pod* counts for of each resource of *specs*, in base units; kept on its shape."""

    def make() -> tuple[int, ...]:
        amounts = fit_score_requests(pod.pod)
        return tuple(amounts.get(spec.name, 0) for spec in specs)

    return pod.shape.remember(("resource_means", tuple(specs)), make)


def mean_resources(
    specs: Sequence[ResourceSpec], requests: Sequence[int], words: Interner[str]
) -> tuple[MeanResource, ...]:
    """The resources of *specs* as they count for a pod with *requests*, in the same order."""
    return tuple(
        MeanResource(
            words.id(spec.name) if spec.name in _PLAIN or is_scalar(spec.name) else None,
            spec.weight,
            request,
            _NONZERO_LINE.get(spec.name),
        )
        for spec, request in zip(specs, requests, strict=True)
    )


def weighted_mean(resources: Sequence[MeanResource], nodes: NodeView, rate: Rate) -> IntArray:
    """The mean of the resources' scores by weight, rounded down: int64, shape (len(nodes),)."""
    total = np.zeros(len(nodes), dtype=np.int64)
    for resource in resources:
        total += rate(*resource.amounts(nodes)) * resource.weight
    return total // max(1, sum(resource.weight for resource in resources))


def resource_faults(specs: Sequence[ResourceSpec], path: str) -> list[Fault]:
    """Weights out of range. Source: G038."""
    found: list[Fault] = []
    for index, spec in enumerate(specs):
        if not 0 < spec.weight <= 100:
            where = child(item(child(path, "resources"), index), "weight")
            found.append(invalid(where, spec.weight, f"resource weight of {spec.name} not in valid range (0, 100]"))
    return found


def shares(amount: IntArray, capacity: IntArray, over: IntArray | None = None, otherwise: int = 0) -> IntArray:
    """*amount* in percent of *capacity*, rounded down; *otherwise* where the capacity is 0 or *over* exceeds it.

    Args:
        amount: int64, not above *capacity* where it counts.
        capacity: int64.
        over: what must not exceed the capacity; None is *amount* itself.
        otherwise: the answer elsewhere.
    """
    counts: Any = (capacity != 0) & ((amount if over is None else over) <= capacity)
    percent = np.where(counts, amount, 0) * 100 // np.where(counts, capacity, 1)
    return np.where(counts, percent, np.int64(otherwise))
