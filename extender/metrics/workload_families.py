"""The metric families of preemption for pod groups and of placements, which 1.37 added.

Source: pkg/scheduler/metrics/metrics.go, InitMetrics (1.37).
"""

from typing import Final

from extender.metrics.families import MetricFamily, MetricType, exponential_buckets

_VICTIM_BUCKETS: Final = tuple(exponential_buckets(1, 2, 11))
_PREEMPTION_BUCKETS: Final = tuple(exponential_buckets(0.001, 2, 16))
_PLACEMENT_BUCKETS: Final = tuple(exponential_buckets(0.001, 2, 15))

PREEMPTION_FAMILIES_OF_WORKLOADS: Final = (
    MetricFamily(
        "scheduler_workload_preemption_attempts_total",
        MetricType.COUNTER,
        "Preemption attempts for pod groups, by result.",
        ("result",),
    ),
    MetricFamily(
        "scheduler_workload_preemption_victims",
        MetricType.HISTOGRAM,
        "Pods evicted by one preemption for a pod group.",
        buckets=_VICTIM_BUCKETS,
    ),
    MetricFamily(
        "scheduler_preemption_workload_disruptions",
        MetricType.HISTOGRAM,
        "Pod groups evicted as a whole by one preemption, by type of the preemptor.",
        ("preemptor",),
        _VICTIM_BUCKETS,
    ),
    MetricFamily(
        "scheduler_preemption_evaluation_duration_seconds",
        MetricType.HISTOGRAM,
        "Seconds a search for victims took, by type of the preemptor and result.",
        ("preemptor", "result"),
        _PREEMPTION_BUCKETS,
    ),
    MetricFamily(
        "scheduler_preemption_execution_duration_seconds",
        MetricType.HISTOGRAM,
        "Seconds the evictions of one preemption took, by type of the preemptor and result.",
        ("preemptor", "result"),
        _PREEMPTION_BUCKETS,
    ),
    MetricFamily(
        "scheduler_preemption_pdb_violations_total",
        MetricType.COUNTER,
        "Disruption budgets violated by preemption, by type of the preemptor.",
        ("preemptor",),
    ),
)
"""Families that need the feature gate GenericWorkload."""

PLACEMENT_FAMILIES: Final = (
    MetricFamily(
        "scheduler_generated_placements_total",
        MetricType.COUNTER,
        "Placements generated for pod groups.",
        ("profile",),
    ),
    MetricFamily(
        "scheduler_placement_evaluations_total",
        MetricType.COUNTER,
        "Placements evaluated for pod groups, by result: feasible or infeasible.",
        ("result", "profile"),
    ),
    MetricFamily(
        "scheduler_placement_evaluation_duration_seconds",
        MetricType.HISTOGRAM,
        "Seconds an evaluation of one placement took, by result: feasible or infeasible.",
        ("result", "profile"),
        _PLACEMENT_BUCKETS,
    ),
)
"""Families that need the feature gate TopologyAwareWorkloadScheduling."""
