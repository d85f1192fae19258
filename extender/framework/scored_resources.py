"""The resources a plugin scores nodes by: how they are configured, and how much of each a node has and would give away.

Shared by the plugins that rate how full a node would be. Source: B036, B041, G038, G040.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import msgspec

from extender.basics.intern import Interner
from extender.cluster.arrays import IntArray
from extender.cluster.snapshot import NodeView
from extender.config.strict import Int64
from extender.objects.requests import is_scalar

_PLAIN: Final = ("cpu", "memory", "ephemeral-storage")
_NONZERO_LINE: Final[Mapping[str, int]] = {"cpu": 0, "memory": 1}


class ResourceSpec(msgspec.Struct, frozen=True, rename="camel"):
    """A resource that counts in a score.

    Attributes:
        name: of the resource.
        weight: how much it counts beside the others.
    """

    name: str = ""
    weight: Int64 = 1


DEFAULT_RESOURCES: Final = (ResourceSpec("cpu"), ResourceSpec("memory"))
"""What counts when nothing is configured. Source: B035, B049."""


def defaulted_resources(written: object) -> object:
    """*written* with the defaults: cpu and memory for an empty list, weight 1 for a weight of 0 or none.

    Anything that is no list of objects is returned as it is, for the decoder to refuse. Source: G038, G040.
    """
    if not written and (written is None or isinstance(written, list | tuple)):
        return [msgspec.to_builtins(spec) for spec in DEFAULT_RESOURCES]
    if not isinstance(written, list | tuple):
        return written
    return [_weighted(entry) for entry in written]


def _weighted(entry: Any) -> Any:
    if entry is None:
        return {"weight": 1}
    if not isinstance(entry, Mapping):
        return entry
    weight = entry.get("weight")
    absent = weight is None or (weight == 0 and not isinstance(weight, bool))
    return {**entry, "weight": 1} if absent else entry


@dataclass(frozen=True, slots=True)
class ScoredResource:
    """A configured resource that counts for one pod.

    Attributes:
        number: its id in the vocabulary.
        weight: as configured.
        request: what the pod asks for, in base units.
        nonzero_line: the line of `NodeView.nonzero_requested` that holds what is taken, or None: `requested` does.
    """

    number: int
    weight: int
    request: int
    nonzero_line: int | None = None

    def capacity(self, nodes: NodeView) -> IntArray:
        """What each node offers; never to be written to."""
        return nodes.allocatable(self.number)

    def taken(self, nodes: NodeView) -> IntArray:
        """What the pods on each node count for; never to be written to."""
        if self.nonzero_line is None:
            return nodes.requested(self.number)
        return nodes.nonzero_requested(self.nonzero_line)

    def of_row(self, nodes: NodeView, row: int) -> tuple[int, int]:
        """`taken` and `capacity` of the only *row* of *nodes*."""
        taken, capacity = nodes.amounts_of(row, self.number)
        return (taken if self.nonzero_line is None else nodes.nonzero_of(row, self.nonzero_line)), capacity


def scored_resources(
    specs: Sequence[ResourceSpec], requests: Sequence[int], words: Interner[str], *, nonzero: bool
) -> tuple[ScoredResource, ...]:
    """The resources of *specs* that can count for a pod, in their order.

    Left out are scalar resources the pod does not ask for, and names that the scheduler does not count at all.

    Args:
        specs: as configured.
        requests: of the pod, one a spec, in base units.
        words: the resources of the vocabulary.
        nonzero: whether pods on nodes count with the defaults for containers that ask for no cpu or memory.

    Source: B036.
    """
    return tuple(
        ScoredResource(words.id(spec.name), spec.weight, request, _NONZERO_LINE.get(spec.name) if nonzero else None)
        for spec, request in zip(specs, requests, strict=True)
        if spec.name in _PLAIN or (request and is_scalar(spec.name))
    )
