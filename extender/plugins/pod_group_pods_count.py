"""PodGroupPodsCount prefers the placement that schedules the most pods of the group.

**Scores** placements, not nodes, by the number of the group's pods that are already scheduled or that the placement
would schedule. The score is this number in percent of the highest number of all placements.

**Options** none. The plugin is alpha. It is on by default only with the feature gate `TopologyAwareWorkloadScheduling`.
"""

from typing import ClassVar, Final

from extender.cache.snapshot import Snapshot
from extender.framework.normalize import MAX_SCORE
from extender.framework.pod_group_points import PodGroupAssignments, PodGroupInfo
from extender.framework.status import Status, error_status
from extender.plugin_parts.scheduled_members import list_scheduled_members

_NO_PODS: Final = error_status("no pods from pod group are assigned to any of the candidate placements")


class PodGroupPodsCount:
    """Scores placements by the number of scheduled pods."""

    name: ClassVar[str] = "PodGroupPodsCount"

    def score_placement(
        self, pod_group: PodGroupInfo, snapshot: Snapshot, assignments: PodGroupAssignments
    ) -> int | Status:
        """Return the number of the group's pods that are scheduled or would be scheduled.

        Source: pkg/scheduler/framework/plugins/podgrouppodscount/podgroup_pods_count.go,
        PodGroupPodsCount.ScorePlacement (1.36).
        """
        scheduled_pods = list_scheduled_members(pod_group, snapshot)
        if isinstance(scheduled_pods, Status):
            return scheduled_pods
        return len(scheduled_pods) + len(assignments.node_name_by_uid)

    def normalize_placement_score(self, pod_group: PodGroupInfo, scores: tuple[int, ...]) -> tuple[int, ...] | Status:  # noqa: ARG002
        """Return the scores in percent of the highest score.

        Source: pkg/scheduler/framework/plugins/podgrouppodscount/podgroup_pods_count.go,
        PodGroupPodsCount.ScorePlacement (1.36).
        """
        max_count = max(scores, default=0)
        return tuple(score * MAX_SCORE // max_count for score in scores) if max_count else _NO_PODS
