"""PrioritySort orders the active queue by priority, then by queueing time.

**Rejects** no node.

**Scores** no node.

**Requeued on** no event.

**Options** none.
"""

from typing import ClassVar

from extender.framework.extension_points import QueueSortEntry


class PrioritySort:
    """Orders the queue by the priority of the pod or group, then by the time when it was last added to the queue."""

    name: ClassVar[str] = "PrioritySort"

    def sort_key(self, entry: QueueSortEntry) -> tuple[float, ...]:
        """Return the sort key. A pod without a priority has priority 0.

        Source: pkg/scheduler/framework/plugins/queuesort/priority_sort.go, PrioritySort.Less (1.36).
        """
        return (-entry.priority, entry.timestamp)
