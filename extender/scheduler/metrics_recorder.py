"""The metrics that the scheduling loop records."""

from typing import Protocol


class MetricsRecorder(Protocol):
    """Records counts and durations. Durations are in seconds.

    Source: pkg/scheduler/metrics/metrics.go, InitMetrics (1.36).
    """

    def observe_attempt(self, profile: str, result: str, seconds: float) -> None:
        """Record a scheduling attempt with result scheduled, unschedulable or error."""

    def observe_scheduling_algorithm(self, seconds: float) -> None:
        """Record the duration of a scheduling cycle up to its decision."""

    def observe_bound_pod(self, attempts: int, since_first_active: float) -> None:
        """Record a bound pod: its attempts and the time since it first entered activeQ."""

    def observe_permit_wait(self, result: str, seconds: float) -> None:
        """Record the time that a pod waited on Permit."""

    def observe_preemption(self, victim_count: int) -> None:
        """Record a preemption and its number of victims."""

    def observe_evictions(self, result: str, seconds: float) -> None:
        """Record the evictions of one preemption with result success or error."""

    def count_bound_after_flush(self) -> None:
        """Count a bound pod whose last attempt was due to the flush of unschedulable pods."""

    def count_claim_creation(self, *, succeeded: bool) -> None:
        """Count the creation of a ResourceClaim for a pod."""

    def observe_device_binding(
        self, profile: str, driver: str, status: str, seconds: float, *, count_binding: bool
    ) -> None:
        """Record a wait for devices with status success, timeout, failure or error.

        Args:
            profile: the scheduler name.
            driver: of the device.
            status: success, timeout, failure or error.
            seconds: the duration of the wait.
            count_binding: also count the device, in addition to the duration.
        """

    def observe_pod_group_attempt(self, profile: str, result: str, seconds: float) -> None:
        """Record a pod group attempt with result scheduled, unschedulable, waiting_on_preemption or error."""

    def observe_pod_group_algorithm(self, seconds: float) -> None:
        """Record the duration of scheduling the members of a pod group."""


class NullMetricsRecorder(MetricsRecorder):
    """Records nothing."""
