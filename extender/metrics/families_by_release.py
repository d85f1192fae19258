"""The differences between the metric families of the releases.

`scheduler_families.py` has the families of 1.36.

Source: pkg/scheduler/metrics/metrics.go, InitMetrics; dynamic-resource-allocation/resourceclaim/metrics/metrics.go,
ResourceClaimCreate (1.37).
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Final

from extender.config.releases import Release
from extender.metrics.families import MetricFamily, Stability, counter, exponential_buckets, gauge, histogram
from extender.metrics.scheduler_families import PLACEMENT_FAMILIES, PREEMPTION_FAMILIES_OF_WORKLOADS


@dataclass(frozen=True, slots=True)
class FamilyChanges:
    """The changes of the families of 1.36 in a later release, by family name.

    Attributes:
        stabilities: the new stability levels.
        deprecated_since: the release that deprecated a family, such as `1.37.0`.
        replacements: the families that replace a family.
        added_families: the families that follow a family.
    """

    stabilities: Mapping[str, Stability] = field(default_factory=dict)
    deprecated_since: Mapping[str, str] = field(default_factory=dict)
    replacements: Mapping[str, tuple[MetricFamily, ...]] = field(default_factory=dict)
    added_families: Mapping[str, tuple[MetricFamily, ...]] = field(default_factory=dict)

    def apply(self, family: MetricFamily) -> tuple[MetricFamily, ...]:
        """Return *family* with its changes, or its replacements; then the families that follow it."""
        name = family.name
        changed_family = replace(
            family,
            stability=self.stabilities.get(name, family.stability),
            deprecated_version=self.deprecated_since.get(name, family.deprecated_version),
        )
        return (*self.replacements.get(name, (changed_family,)), *self.added_families.get(name, ()))


_CHANGES: Final[Mapping[str, FamilyChanges]] = {
    "1.36": FamilyChanges(),
    "1.37": FamilyChanges(
        stabilities={
            "scheduler_scheduling_algorithm_duration_seconds": Stability.BETA,
            "scheduler_plugin_execution_duration_seconds": Stability.BETA,
        },
        deprecated_since={"scheduler_preemption_goroutines_duration_seconds": "1.37.0"},
        replacements={
            "scheduler_resourceclaim_creates_total": (
                counter(
                    "dynamic_resource_allocation_resourceclaim_creates_total",
                    "Resource claims created for a pod.",
                    ("status", "admin_access", "owner_api_group", "owner_api_kind"),
                ),
            )
        },
        added_families={
            "scheduler_pending_pods": (
                gauge(
                    "scheduler_queued_entities",
                    "Queued pods without a pod group, and queued pod groups, by queue.",
                    ("queue", "type"),
                ),
            ),
            "scheduler_queue_incoming_pods_total": (
                counter(
                    "scheduler_queue_incoming_entities_total",
                    "Pods without a pod group, and pod groups, that were added to a queue, by queue and event.",
                    ("queue", "event", "type"),
                ),
            ),
            "scheduler_podgroup_scheduling_algorithm_duration_seconds": (
                *PREEMPTION_FAMILIES_OF_WORKLOADS,
                *PLACEMENT_FAMILIES,
            ),
            "scheduler_inflight_events": (
                counter(
                    "scheduler_pre_queueing_hint_evaluations_total",
                    "Evaluations of pre-queueing hints, by plugin and result (all_pods or narrowed).",
                    ("plugin", "result"),
                ),
            ),
            "scheduler_batch_cache_flushed_total": (
                counter(
                    "scheduler_batch_rescore_attempts_total",
                    "Attempts to score the last node of a batch again.",
                    ("profile",),
                ),
                histogram(
                    "scheduler_batch_rescore_duration_seconds",
                    "Seconds it took to score the last node of a batch again.",
                    ("profile",),
                    exponential_buckets(0.00001, 2, 12),
                ),
            ),
        },
    ),
}


def select_families(families: Iterable[MetricFamily], release: Release) -> tuple[MetricFamily, ...]:
    """Return *families*, which are those of 1.36, as they are in *release*."""
    changes = _CHANGES[release.version]
    return tuple(changed_family for family in families for changed_family in changes.apply(family))
