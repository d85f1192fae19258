"""Every metric family of the scheduler itself, as kube-scheduler 1.36 has it: names, labels, buckets, stability.

Source: H001 to H038.
"""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

from extender.observe.families import Family, Kind, Stability, exponential

_COUNTER, _GAUGE, _HISTOGRAM = Kind.COUNTER, Kind.GAUGE, Kind.HISTOGRAM
_BETA, _STABLE = Stability.BETA, Stability.STABLE

_CYCLE = tuple(exponential(0.001, 2, 15))
_POINT = tuple(exponential(0.0001, 2, 12))
_CALL = tuple(exponential(0.00001, 1.5, 20))
_LONG = tuple(exponential(0.01, 2, 20))
_HINT = tuple(exponential(0.00001, 2, 12))

_ATTEMPTS: Final = (
    Family(
        "scheduler_schedule_attempts_total",
        _COUNTER,
        "Attempts to place a pod, by how they ended: scheduled, unschedulable, or error (something went wrong here).",
        ("result", "profile"),
        stability=_STABLE,
    ),
    Family(
        "scheduler_scheduling_attempt_duration_seconds",
        _HISTOGRAM,
        "Seconds an attempt took, binding included.",
        ("result", "profile"),
        _CYCLE,
        _STABLE,
    ),
    Family("scheduler_scheduling_algorithm_duration_seconds", _HISTOGRAM, "Seconds a decision took.", buckets=_CYCLE),
    Family(
        "scheduler_pod_scheduling_sli_duration_seconds",
        _HISTOGRAM,
        "Seconds from a pod's first entry into the active queue until it was bound, by the number of attempts.",
        ("attempts",),
        _LONG,
        _BETA,
    ),
    Family(
        "scheduler_pod_scheduling_attempts",
        _HISTOGRAM,
        "Attempts it took to place a pod.",
        buckets=tuple(exponential(1, 2, 5)),
        stability=_STABLE,
    ),
    Family(
        "scheduler_pod_scheduled_after_flush_total",
        _COUNTER,
        "Pods placed after they were tried again only because they had been parked too long: an event was missed.",
    ),
    Family(
        "scheduler_permit_wait_duration_seconds",
        _HISTOGRAM,
        "Seconds pods waited on Permit, by the outcome.",
        ("result",),
        _CYCLE,
        _BETA,
    ),
)

_QUEUE: Final = (
    Family(
        "scheduler_pending_pods",
        _GAUGE,
        "Waiting pods: active, in backoff, unschedulable (tried and parked), gated (parked and never tried).",
        ("queue",),
        stability=_STABLE,
    ),
    Family(
        "scheduler_queue_incoming_pods_total",
        _COUNTER,
        "Pods put into a queue, by the queue and by what moved them.",
        ("queue", "event"),
        stability=_STABLE,
    ),
    Family(
        "scheduler_unschedulable_pods",
        _GAUGE,
        "Waiting pods by the plugin that rejected them; a pod counts for each such plugin, so do not add them up.",
        ("plugin", "profile"),
        stability=_BETA,
    ),
    Family(
        "scheduler_inflight_events", _GAUGE, "Events kept while pods are tried, and (PodPopped) such pods.", ("event",)
    ),
    Family(
        "scheduler_queueing_hint_execution_duration_seconds",
        _HISTOGRAM,
        "Seconds a queueing hint of a plugin took.",
        ("plugin", "event", "hint"),
        _CALL,
    ),
    Family(
        "scheduler_event_handling_duration_seconds", _HISTOGRAM, "Seconds an event took to handle.", ("event",), _POINT
    ),
)

_PLUGINS: Final = (
    Family(
        "scheduler_framework_extension_point_duration_seconds",
        _HISTOGRAM,
        "Seconds all plugins of an extension point took for one pod.",
        ("extension_point", "status", "profile"),
        _POINT,
        _STABLE,
    ),
    Family(
        "scheduler_plugin_execution_duration_seconds",
        _HISTOGRAM,
        "Seconds a plugin took at an extension point; one call in ten is recorded.",
        ("plugin", "extension_point", "status"),
        _CALL,
    ),
    Family(
        "scheduler_plugin_evaluation_total",
        _COUNTER,
        "Calls of a plugin at PreFilter, Filter, PreScore and Score; one call is about all nodes asked about.",
        ("plugin", "extension_point", "profile"),
        stability=_BETA,
    ),
)

_PREEMPTION: Final = (
    Family(
        "scheduler_preemption_victims",
        _HISTOGRAM,
        "Pods evicted by one preemption.",
        buckets=tuple(exponential(1, 2, 7)),
        stability=_STABLE,
    ),
    Family("scheduler_preemption_attempts_total", _COUNTER, "Attempts to make room by preemption.", stability=_STABLE),
    Family(
        "scheduler_preemption_goroutines_duration_seconds",
        _HISTOGRAM,
        "Seconds the evictions of one preemption took.",
        ("result",),
        _LONG,
    ),
    Family(
        "scheduler_preemption_goroutines_execution_total",
        _COUNTER,
        "Preemptions carried out in the background.",
        ("result",),
    ),
)

_INSIDE: Final = (
    Family("scheduler_cache_size", _GAUGE, "Nodes, pods on nodes, and those of them not yet confirmed.", ("type",)),
    Family(
        "scheduler_goroutines",
        _GAUGE,
        "Work going on beside the loop (tasks of the event loop), by what is done.",
        ("operation",),
        stability=_BETA,
    ),
    Family("scheduler_batch_attempts_total", _COUNTER, "Attempts to use a batch's answer.", ("profile", "result")),
    Family("scheduler_batch_cache_flushed_total", _COUNTER, "Batches given up.", ("profile", "reason")),
    Family(
        "scheduler_get_node_hint_duration_seconds",
        _HISTOGRAM,
        "Seconds it took to take a node from a batch.",
        ("hinted", "profile"),
        _HINT,
    ),
    Family(
        "scheduler_store_schedule_results_duration_seconds",
        _HISTOGRAM,
        "Seconds it took to keep a decision for a batch.",
        ("profile",),
        _HINT,
    ),
    Family(
        "scheduler_async_api_call_execution_total", _COUNTER, "API calls made beside the loop.", ("call_type", "result")
    ),
    Family(
        "scheduler_async_api_call_execution_duration_seconds",
        _HISTOGRAM,
        "Seconds an API call beside the loop took.",
        ("call_type", "result"),
        _CYCLE,
    ),
    Family("scheduler_pending_async_api_calls", _GAUGE, "API calls that wait to be made.", ("call_type",)),
)

_DEVICES_AND_VOLUMES: Final = (
    Family("scheduler_resourceclaim_creates_total", _COUNTER, "Resource claims created for a pod.", ("status",)),
    Family(
        "scheduler_dra_bindingconditions_allocations_total",
        _COUNTER,
        "Allocations of devices with binding conditions, by driver and outcome.",
        ("profile", "driver", "status"),
    ),
    Family(
        "scheduler_dra_bindingconditions_wait_duration_seconds",
        _HISTOGRAM,
        "Seconds that PreBind waited for binding conditions.",
        ("profile", "driver", "status"),
        tuple(exponential(0.1, 2, 14)),
    ),
    Family(
        "scheduler_volume_binder_cache_requests_total",
        _COUNTER,
        "Volume bindings put into or taken out of the cache.",
        ("operation",),
    ),
    Family(
        "scheduler_volume_scheduling_stage_error_total",
        _COUNTER,
        "Failures of volume binding, by stage.",
        ("operation",),
    ),
)

_GROUPS: Final = (
    Family(
        "scheduler_podgroup_schedule_attempts_total",
        _COUNTER,
        "Attempts to place a pod group, by how they ended.",
        ("result", "profile"),
    ),
    Family(
        "scheduler_podgroup_scheduling_attempt_duration_seconds",
        _HISTOGRAM,
        "Seconds an attempt to place a pod group took, binding included.",
        ("result", "profile"),
        _CYCLE,
    ),
    Family(
        "scheduler_podgroup_scheduling_algorithm_duration_seconds",
        _HISTOGRAM,
        "Seconds a decision about a pod group took.",
        buckets=_CYCLE,
    ),
)

PLUGIN_FAMILIES: Final = _PLUGINS
"""Those that the verbs of the extender have too."""

GATED: Final[Mapping[str, tuple[str, ...]]] = MappingProxyType(
    {
        "SchedulerQueueingHints": (
            "scheduler_queueing_hint_execution_duration_seconds",
            "scheduler_inflight_events",
        ),
        "SchedulerAsyncPreemption": (
            "scheduler_preemption_goroutines_duration_seconds",
            "scheduler_preemption_goroutines_execution_total",
        ),
        "SchedulerAsyncAPICalls": (
            "scheduler_async_api_call_execution_total",
            "scheduler_async_api_call_execution_duration_seconds",
            "scheduler_pending_async_api_calls",
        ),
        "DRAExtendedResource": ("scheduler_resourceclaim_creates_total",),
        "GenericWorkload": tuple(family.name for family in _GROUPS),
        "DRADeviceBindingConditions": (
            "scheduler_dra_bindingconditions_allocations_total",
            "scheduler_dra_bindingconditions_wait_duration_seconds",
        ),
    }
)
"""The families that are shown only if a feature gate is on. Source: H030 to H034, metrics.registerMetrics."""

SCHEDULER_FAMILIES: Final = (
    *_ATTEMPTS,
    *_QUEUE,
    *_PREEMPTION,
    *_INSIDE,
    *_DEVICES_AND_VOLUMES,
    *_GROUPS,
)
"""All others. Those behind a feature gate are always there; without the feature they have no values."""
