"""The extension points about pod groups: where a group may stand, what makes room for it. Source: A076, A077, A152."""

from collections.abc import Generator, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol, TypeAlias, runtime_checkable

from extender.cluster.pods import PodQuery
from extender.cluster.snapshot import Snapshot
from extender.framework.points import Named, PostFiltered
from extender.framework.verdict import Status
from extender.objects.groups import PodGroup


@dataclass(frozen=True, slots=True)
class GroupQuery:
    """A pod group that asks for nodes."""

    namespace: str
    name: str

    @property
    def key(self) -> str:
        """`namespace/name`."""
        return f"{self.namespace}/{self.name}"


@dataclass(frozen=True, slots=True)
class Placement:
    """Nodes that a pod group may be placed on as a whole; None: all nodes. Source: A152."""

    name: str = ""
    nodes: frozenset[str] | None = None


@dataclass(frozen=True, slots=True)
class Proposal:
    """Where the members of a group would go within one placement: nodes by uid of the pod."""

    placement: Placement
    nodes: Mapping[str, str]


class PlacementGenerate(Named, Protocol):
    """Says which sets of nodes a group may be placed on; at most one in a profile. Source: A152, B133."""

    def placement_generate(self, group: GroupQuery, cluster: Snapshot) -> tuple[Placement, ...] | Status:
        """The placements to try, or an error."""


class PlacementScore(Named, Protocol):
    """Rates the placements on which a group can be scheduled. Source: A152, B134."""

    def placement_score(self, group: GroupQuery, cluster: Snapshot, proposal: Proposal) -> int | Status:
        """A whole number, 0 to 100 unless the plugin normalizes; or an error."""


@runtime_checkable
class NormalizePlacementScore(Protocol):
    """Brings the scores of all placements to 0..100."""

    def normalize_placement(self, group: GroupQuery, scores: tuple[int, ...]) -> tuple[int, ...] | Status:
        """Scores from 0 to 100 in the same order, or an error."""


WhatIf: TypeAlias = Generator[Snapshot, Status, PostFiltered]
"""An answer that is found by asking: gives clusters that might be, and is told what the group comes to on each."""


@runtime_checkable
class PodGroupPostFilter(Named, Protocol):
    """Asked when a pod group as a whole cannot be scheduled. Source: A077, A153."""

    def pod_group_post_filter(self, group: PodGroup, pods: Sequence[PodQuery], cluster: Snapshot) -> WhatIf:
        """What could be done about it for its members *pods*, which wait."""
