"""PodGroupPodsCount prefers the placement on which most pods of a group can stand.

**Scores** placements, not nodes: the members of the group that have nodes already and those that would get one there,
in percent of the most among all placements.

**Options** none. Alpha: on by default only with the feature gate `TopologyAwareWorkloadScheduling`.

Source: B134.
"""

from typing import ClassVar, Final

from extender.cluster.snapshot import Snapshot
from extender.framework.group_points import GroupQuery, Proposal
from extender.framework.normalize import MAX_SCORE
from extender.framework.verdict import Status, error

_NOBODY: Final = error("no pods from pod group are assigned to any of the candidate placements")


class PodGroupPodsCount:
    """Counts pods."""

    name: ClassVar[str] = "PodGroupPodsCount"

    def placement_score(self, group: GroupQuery, cluster: Snapshot, proposal: Proposal) -> int | Status:
        """How many members would stand. Source: B134."""
        return len(cluster.group(group.key).placed) + len(proposal.nodes)

    def normalize_placement(self, group: GroupQuery, scores: tuple[int, ...]) -> tuple[int, ...] | Status:  # noqa: ARG002
        """0 to 100. Source: B134."""
        most = max(scores, default=0)
        return tuple(score * MAX_SCORE // most for score in scores) if most else _NOBODY
