"""Settings of the scheduling queue: durations and feature gates."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class QueueSettings:
    """Settings of the queue.

    Attributes:
        initial_backoff: the backoff after the first failure, in seconds.
        max_backoff: the maximum backoff, in seconds.
        max_in_unschedulable_pods_duration: the time after which an unschedulable pod is requeued without an event, in
            seconds.
        pop_from_backoff_q: the gate SchedulerPopFromBackoffQ.
        generic_workload: the gate GenericWorkload. With it, members of pod groups always back off after a rejection,
            and are not popped from the backoff queue before the next event. kube-scheduler pops these pods, and so
            retries a group endlessly while no other pod is queued.
        composite_groups: the gate CompositePodGroup.

    Source: pkg/scheduler/apis/config/validation/validation.go, ValidateKubeSchedulerConfiguration (1.36);
    pkg/scheduler/backend/queue/scheduling_queue.go, PriorityQueue.flushUnschedulablePodsLeftover (1.36);
    pkg/scheduler/backend/queue/active_queue.go, activeQueue.unlockedPop (1.36).
    """

    initial_backoff: float = 1.0
    max_backoff: float = 10.0
    max_in_unschedulable_pods_duration: float = 300.0
    pop_from_backoff_q: bool = True
    generic_workload: bool = False
    composite_groups: bool = False
