"""The scheduler's metric families, as in kube-scheduler: names, labels, buckets, stability.

Source: pkg/scheduler/metrics/metrics.go, scheduleAttempts, schedulingLatency, SchedulingAlgorithmLatency;
pkg/scheduler/framework/plugins/volumebinding/metrics/metrics.go, VolumeSchedulingStageFailed (1.36);
pkg/scheduler/metrics/metrics.go, InitMetrics; dynamic-resource-allocation/resourceclaim/metrics/metrics.go,
ResourceClaimCreate (1.37).
"""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

from extender.metrics.families import Stability, counter, exponential_buckets, gauge, histogram

_BETA, _STABLE = Stability.BETA, Stability.STABLE

_SINCE_1_37: Final[Mapping[str, None]] = {"1.36": None}
_BETA_SINCE_1_37: Final = {"1.36": {"stability": Stability.ALPHA}}

_CYCLE_BUCKETS = exponential_buckets(0.001, 2, 15)
_EXTENSION_POINT_BUCKETS = exponential_buckets(0.0001, 2, 12)
_PLUGIN_CALL_BUCKETS = exponential_buckets(0.00001, 1.5, 20)
_LONG_BUCKETS = exponential_buckets(0.01, 2, 20)
_NODE_HINT_BUCKETS = exponential_buckets(0.00001, 2, 12)

_VICTIM_BUCKETS: Final = exponential_buckets(1, 2, 11)
_PREEMPTION_BUCKETS: Final = exponential_buckets(0.001, 2, 16)
_PLACEMENT_BUCKETS: Final = exponential_buckets(0.001, 2, 15)

_ATTEMPT_FAMILIES: Final = (
    counter("scheduler_schedule_attempts_total",
            "Scheduling attempts by result: scheduled, unschedulable, or error (an internal error).",
            ("result", "profile"), stability=_STABLE),
    histogram("scheduler_scheduling_attempt_duration_seconds", "Seconds an attempt took, binding included.",
              ("result", "profile"), _CYCLE_BUCKETS, _STABLE),
    histogram("scheduler_scheduling_algorithm_duration_seconds", "Seconds a decision took.", buckets=_CYCLE_BUCKETS,
              stability=_BETA, by_release=_BETA_SINCE_1_37),
    histogram("scheduler_pod_scheduling_sli_duration_seconds",
              "Seconds from a pod's first entry into the active queue until it was bound, by number of attempts.",
              ("attempts",), _LONG_BUCKETS, _BETA),
    histogram("scheduler_pod_scheduling_attempts", "Attempts until a pod was scheduled.",
              buckets=exponential_buckets(1, 2, 5), stability=_STABLE),
    counter("scheduler_pod_scheduled_after_flush_total",
            "Pods scheduled after a flush of unschedulable pods, which indicates a missed event."),
    histogram("scheduler_permit_wait_duration_seconds", "Seconds that pods waited on Permit, by result.", ("result",),
              _CYCLE_BUCKETS, _BETA),
)  # fmt: skip

_QUEUE_FAMILIES: Final = (
    gauge("scheduler_pending_pods",
          "Pending pods: active, in backoff, unschedulable (after an attempt), gated (before any attempt).", ("queue",),
          stability=_STABLE),
    gauge("scheduler_queued_entities", "Queued pods without a pod group, and queued pod groups, by queue.",
          ("queue", "type"), by_release=_SINCE_1_37),
    counter("scheduler_queue_incoming_pods_total", "Pods added to a queue, by queue and event.", ("queue", "event"),
            stability=_STABLE),
    counter("scheduler_queue_incoming_entities_total",
            "Pods without a pod group, and pod groups, that were added to a queue, by queue and event.",
            ("queue", "event", "type"), by_release=_SINCE_1_37),
    gauge("scheduler_unschedulable_pods",
          "Unschedulable pods by rejecting plugin; a pod counts for each such plugin, so the sum is meaningless.",
          ("plugin", "profile"), stability=_BETA),
    gauge("scheduler_inflight_events", "In-flight events, and (PodPopped) in-flight pods.", ("event",)),
    counter("scheduler_pre_queueing_hint_evaluations_total",
            "Evaluations of pre-queueing hints, by plugin and result (all_pods or narrowed).", ("plugin", "result"),
            by_release=_SINCE_1_37),
    histogram("scheduler_queueing_hint_execution_duration_seconds",
              "Seconds a queueing hint of a plugin took; one call may count for many pods.",
              ("plugin", "event", "hint"), _PLUGIN_CALL_BUCKETS),
    histogram("scheduler_event_handling_duration_seconds", "Seconds an event took to handle.", ("event",),
              _EXTENSION_POINT_BUCKETS),
)  # fmt: skip

PLUGIN_FAMILIES: Final = (
    histogram("scheduler_framework_extension_point_duration_seconds",
              "Seconds all plugins of an extension point took for one pod.", ("extension_point", "status", "profile"),
              _EXTENSION_POINT_BUCKETS, _STABLE),
    histogram("scheduler_plugin_execution_duration_seconds",
              "Seconds a plugin took at an extension point; one call in ten is recorded.",
              ("plugin", "extension_point", "status"), _PLUGIN_CALL_BUCKETS, _BETA, by_release=_BETA_SINCE_1_37),
    counter("scheduler_plugin_evaluation_total",
            "Calls of a plugin at PreFilter, Filter, PreScore and Score, except skips; one call covers all nodes.",
            ("plugin", "extension_point", "profile"), stability=_BETA),
)  # fmt: skip
"""The families of plugin calls, which `extender serve` also exposes."""

_PREEMPTION_FAMILIES: Final = (
    histogram("scheduler_preemption_victims", "Pods evicted by one preemption.", buckets=exponential_buckets(1, 2, 7),
              stability=_STABLE),
    counter("scheduler_preemption_attempts_total", "Preemption attempts.", stability=_STABLE),
    histogram("scheduler_preemption_goroutines_duration_seconds", "Seconds the evictions of one preemption took.",
              ("result",), _LONG_BUCKETS, deprecated_version="1.37.0",
              by_release={"1.36": {"deprecated_version": ""}}),
    counter("scheduler_preemption_goroutines_execution_total", "Preemptions executed asynchronously.", ("result",)),
)  # fmt: skip

_INTERNAL_FAMILIES: Final = (
    gauge("scheduler_cache_size", "Nodes, pods, and assumed pods in the cache.", ("type",)),
    gauge("scheduler_goroutines", "Concurrent tasks of the event loop, by operation.", ("operation",), stability=_BETA),
    counter("scheduler_batch_attempts_total", "Attempts to reuse a batch's result.", ("profile", "result")),
    counter("scheduler_batch_cache_flushed_total", "Batches discarded.", ("profile", "reason")),
    counter("scheduler_batch_rescore_attempts_total", "Attempts to score the last node of a batch again.",
            ("profile",), by_release=_SINCE_1_37),
    histogram("scheduler_batch_rescore_duration_seconds",
              "Seconds it took to score the last node of a batch again.", ("profile",), _NODE_HINT_BUCKETS,
              by_release=_SINCE_1_37),
    histogram("scheduler_get_node_hint_duration_seconds", "Seconds it took to get a node hint from a batch.",
              ("hinted", "profile"), _NODE_HINT_BUCKETS),
    histogram("scheduler_store_schedule_results_duration_seconds", "Seconds it took to store a result for a batch.",
              ("profile",), _NODE_HINT_BUCKETS),
    counter("scheduler_async_api_call_execution_total", "Asynchronous API calls.", ("call_type", "result")),
    histogram("scheduler_async_api_call_execution_duration_seconds", "Seconds an asynchronous API call took.",
              ("call_type", "result"), _CYCLE_BUCKETS),
    gauge("scheduler_pending_async_api_calls", "Pending asynchronous API calls.", ("call_type",)),
)  # fmt: skip

_DEVICE_AND_VOLUME_FAMILIES: Final = (
    counter("scheduler_resourceclaim_creates_total", "Resource claims created for a pod.", ("status",),
            by_release={"1.37": None}),
    counter("dynamic_resource_allocation_resourceclaim_creates_total", "Resource claims created for a pod.",
            ("status", "admin_access", "owner_api_group", "owner_api_kind"), by_release=_SINCE_1_37),
    counter("scheduler_dra_bindingconditions_allocations_total",
            "Allocations of devices with binding conditions, by driver and outcome.", ("profile", "driver", "status")),
    histogram("scheduler_dra_bindingconditions_wait_duration_seconds",
              "Seconds that PreBind waited for binding conditions.", ("profile", "driver", "status"),
              exponential_buckets(0.1, 2, 14)),
    counter("scheduler_volume_binder_cache_requests_total", "Volume bindings added to or removed from the cache.",
            ("operation",)),
    counter("scheduler_volume_scheduling_stage_error_total", "Failures of volume binding, by stage.", ("operation",)),
)  # fmt: skip

_POD_GROUP_FAMILIES: Final = (
    counter("scheduler_podgroup_schedule_attempts_total", "Scheduling attempts of pod groups by result.",
            ("result", "profile")),
    histogram("scheduler_podgroup_scheduling_attempt_duration_seconds",
              "Seconds a scheduling attempt of a pod group took, binding included.", ("result", "profile"),
              _CYCLE_BUCKETS),
    histogram("scheduler_podgroup_scheduling_algorithm_duration_seconds", "Seconds a decision about a pod group took.",
              buckets=_CYCLE_BUCKETS),
)  # fmt: skip

_WORKLOAD_PREEMPTION_FAMILIES: Final = (
    counter("scheduler_workload_preemption_attempts_total", "Preemption attempts for pod groups, by result.",
            ("result",), by_release=_SINCE_1_37),
    histogram("scheduler_workload_preemption_victims", "Pods evicted by one preemption for a pod group.",
              buckets=_VICTIM_BUCKETS, by_release=_SINCE_1_37),
    histogram("scheduler_preemption_workload_disruptions",
              "Members of pod groups evicted by one preemption, by type of the preemptor; a group evicted as a whole "
              "counts once.", ("preemptor",),
              _VICTIM_BUCKETS, by_release=_SINCE_1_37),
    histogram("scheduler_preemption_evaluation_duration_seconds",
              "Seconds a search for victims took, by type of the preemptor and result.", ("preemptor", "result"),
              _PREEMPTION_BUCKETS, by_release=_SINCE_1_37),
    histogram("scheduler_preemption_execution_duration_seconds",
              "Seconds the evictions of one preemption took, by type of the preemptor and result.",
              ("preemptor", "result"), _PREEMPTION_BUCKETS, by_release=_SINCE_1_37),
    counter("scheduler_preemption_pdb_violations_total",
            "Disruption budgets violated by preemption, by type of the preemptor.", ("preemptor",),
            by_release=_SINCE_1_37),
)  # fmt: skip
"""Families that need the feature gate GenericWorkload."""

_PLACEMENT_FAMILIES: Final = (
    counter("scheduler_generated_placements_total", "Placements generated for pod groups.", ("profile",),
            by_release=_SINCE_1_37),
    counter("scheduler_placement_evaluations_total",
            "Placements evaluated for pod groups, by result: feasible or infeasible.", ("result", "profile"),
            by_release=_SINCE_1_37),
    histogram("scheduler_placement_evaluation_duration_seconds",
              "Seconds an evaluation of one placement took, by result: feasible or infeasible.", ("result", "profile"),
              _PLACEMENT_BUCKETS, by_release=_SINCE_1_37),
)  # fmt: skip
"""Families that need the feature gate TopologyAwareWorkloadScheduling."""

FAMILIES_BY_GATE: Final[Mapping[str, tuple[str, ...]]] = MappingProxyType(
    {
        "SchedulerQueueingHints": ("scheduler_queueing_hint_execution_duration_seconds", "scheduler_inflight_events"),
        "SchedulerAsyncPreemption": (
            "scheduler_preemption_goroutines_duration_seconds",
            "scheduler_preemption_goroutines_execution_total",
        ),
        "SchedulerAsyncAPICalls": (
            "scheduler_async_api_call_execution_total",
            "scheduler_async_api_call_execution_duration_seconds",
            "scheduler_pending_async_api_calls",
        ),
        "DRAExtendedResource": (
            "scheduler_resourceclaim_creates_total",
            "dynamic_resource_allocation_resourceclaim_creates_total",
        ),
        "GenericWorkload": tuple(family.name for family in (*_POD_GROUP_FAMILIES, *_WORKLOAD_PREEMPTION_FAMILIES)),
        "TopologyAwareWorkloadScheduling": tuple(family.name for family in _PLACEMENT_FAMILIES),
        "DRADeviceBindingConditions": (
            "scheduler_dra_bindingconditions_allocations_total",
            "scheduler_dra_bindingconditions_wait_duration_seconds",
        ),
    }
)
"""Families that are exposed only if a feature gate is enabled.

Source: pkg/scheduler/metrics/metrics.go, registerMetrics, AsyncAPIPendingCalls, ResourceClaimCreatesTotal,
DRABindingConditionsAllocationsTotal (1.36).
"""

SCHEDULER_FAMILIES: Final = (
    *_ATTEMPT_FAMILIES,
    *_QUEUE_FAMILIES,
    *_PREEMPTION_FAMILIES,
    *_INTERNAL_FAMILIES,
    *_DEVICE_AND_VOLUME_FAMILIES,
    *_POD_GROUP_FAMILIES,
    *_WORKLOAD_PREEMPTION_FAMILIES,
    *_PLACEMENT_FAMILIES,
)
"""All families of the scheduler except `PLUGIN_FAMILIES`."""
