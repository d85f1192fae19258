"""The metric families of preemption for pod groups and of placements, which 1.37 added.

Source: pkg/scheduler/metrics/metrics.go, InitMetrics (1.37).
"""

from typing import Final

from extender.metrics.families import counter, exponential_buckets, histogram

_VICTIM_BUCKETS: Final = exponential_buckets(1, 2, 11)
_PREEMPTION_BUCKETS: Final = exponential_buckets(0.001, 2, 16)
_PLACEMENT_BUCKETS: Final = exponential_buckets(0.001, 2, 15)

PREEMPTION_FAMILIES_OF_WORKLOADS: Final = (
    counter("scheduler_workload_preemption_attempts_total", "Preemption attempts for pod groups, by result.",
            ("result",)),
    histogram("scheduler_workload_preemption_victims", "Pods evicted by one preemption for a pod group.",
              buckets=_VICTIM_BUCKETS),
    histogram("scheduler_preemption_workload_disruptions",
              "Pod groups evicted as a whole by one preemption, by type of the preemptor.", ("preemptor",),
              _VICTIM_BUCKETS),
    histogram("scheduler_preemption_evaluation_duration_seconds",
              "Seconds a search for victims took, by type of the preemptor and result.", ("preemptor", "result"),
              _PREEMPTION_BUCKETS),
    histogram("scheduler_preemption_execution_duration_seconds",
              "Seconds the evictions of one preemption took, by type of the preemptor and result.",
              ("preemptor", "result"), _PREEMPTION_BUCKETS),
    counter("scheduler_preemption_pdb_violations_total",
            "Disruption budgets violated by preemption, by type of the preemptor.", ("preemptor",)),
)  # fmt: skip
"""Families that need the feature gate GenericWorkload."""

PLACEMENT_FAMILIES: Final = (
    counter("scheduler_generated_placements_total", "Placements generated for pod groups.", ("profile",)),
    counter("scheduler_placement_evaluations_total",
            "Placements evaluated for pod groups, by result: feasible or infeasible.", ("result", "profile")),
    histogram("scheduler_placement_evaluation_duration_seconds",
              "Seconds an evaluation of one placement took, by result: feasible or infeasible.", ("result", "profile"),
              _PLACEMENT_BUCKETS),
)  # fmt: skip
"""Families that need the feature gate TopologyAwareWorkloadScheduling."""
