"""PrioritySort: pods of higher priority are scheduled first, among equals those that have waited longer.

**Refuses** none.

**Scores** none.

**Undone by** none: the order is taken whenever the queue is.

**Options** none.

Source: B009.
"""

from typing import ClassVar

from extender.framework.points import Queued


class PrioritySort:
    """Orders the queue by `spec.priority`, then by the time a pod was put there last, not by its creation."""

    name: ClassVar[str] = "PrioritySort"

    def sort_key(self, queued: Queued) -> tuple[float, ...]:
        """A pod without priority counts as priority 0. Source: B009."""
        return (-queued.pod.priority, queued.since)
