"""Metrics of the extender's verbs: durations, numbers of nodes, body sizes, and rejecting plugins."""

import logging
from collections.abc import Callable, Mapping
from functools import partial
from typing import Final

from prometheus_client import CollectorRegistry

from extender.metrics.families import MetricFamilies, Stability, counter, exponential_buckets, gauge, histogram

log = logging.getLogger("extender.metrics")

_counter: Final = partial(counter, stability=Stability.NONE)
_gauge: Final = partial(gauge, stability=Stability.NONE)
_histogram: Final = partial(histogram, stability=Stability.NONE)

_SIZE_BUCKETS = exponential_buckets(256, 4, 11)
"""256 bytes to 256 MiB."""

_MAX_REASON_LABELS = 200
"""The maximum number of reasons that are label values. The reasons of third-party plugins may be unbounded."""

_LAG_BUCKETS = (0.001, 0.002, 0.005, 0.01, 0.015, 0.02, 0.03, 0.05, 0.1, 0.2, 0.5, 1, 5)

_NODE_BUCKETS = (0, 1, 10, 100, 500, 1000, 2000, 5000, 10000, 50000)

VERB_FAMILIES: Final = (
    _histogram("extender_request_duration_seconds",
               "Time from a request's headers to the end of the response, by verb and HTTP status.", ("verb", "code"),
               exponential_buckets(0.0005, 2, 15)),
    _gauge("extender_requests_in_flight", "Requests that are being read or processed.", ("verb",)),
    _histogram("extender_request_nodes", "Nodes in a request.", ("verb",), _NODE_BUCKETS),
    _histogram("extender_response_nodes",
               "Nodes in a response: feasible (filter), scored (prioritize), or candidates (preempt).", ("verb",),
               _NODE_BUCKETS),
    _histogram("extender_request_size_bytes", "Size of request bodies.", ("verb",), _SIZE_BUCKETS),
    _histogram("extender_response_size_bytes", "Size of response bodies.", ("verb",), _SIZE_BUCKETS),
    _counter("extender_refused_nodes_total", "Nodes rejected by filter, by the first rejecting plugin and its reason.",
             ("plugin", "reason")),
    _histogram("extender_event_loop_lag_seconds",
               "Delay of the event loop, which is the time requests wait before they are read.", buckets=_LAG_BUCKETS),
    _counter("extender_requests_with_whole_nodes_total",
             "Requests with whole nodes although the cluster is cached; with nodeCacheCapable: true, only names are "
             "sent.",
             ("verb",)),
    _counter("extender_unknown_nodes_total", "Requested nodes that are not in the cache.", ("verb",)),
    _counter("extender_failed_decisions_total", "Requests whose decision failed with an error.", ("verb",)),
    _counter("extender_bind_results_total", "Bind requests by result: bound, already, refused or failed.", ("result",)),
    _counter("extender_assumption_events_total",
             "Pods on the node that filter chose, by event: chosen, assumed, and the end: confirmed, superseded, "
             "unscheduled, deleted or expired.",
             ("event",)),
    _gauge("extender_assumed_pods", "Pods that are assumed on the node that filter chose."),
)  # fmt: skip


class VerbMetrics:
    """Metrics of the extender's verbs. Durations are in seconds, sizes in bytes."""

    _warned_of_whole_nodes = False

    def __init__(self, registry: CollectorRegistry) -> None:
        self._reason_labels = set[str]()
        self._get_metric = MetricFamilies(registry, VERB_FAMILIES).get_child

    def observe_request_start(self, verb: str) -> None:
        """Count a request as in flight."""
        self._get_metric("extender_requests_in_flight", verb).inc()

    def observe_request_end(self, verb: str, code: int, seconds: float) -> None:
        """Observe the duration of a request with the HTTP status *code*."""
        self._get_metric("extender_requests_in_flight", verb).dec()
        self._get_metric("extender_request_duration_seconds", verb, str(code)).observe(seconds)

    def observe_body_sizes(self, verb: str, request_bytes: int, response_bytes: int) -> None:
        """Observe the body sizes in bytes."""
        self._get_metric("extender_request_size_bytes", verb).observe(request_bytes)
        self._get_metric("extender_response_size_bytes", verb).observe(response_bytes)

    def observe_nodes(self, verb: str, requested_count: int, returned_count: int, unknown_count: int) -> None:
        """Observe the numbers of requested nodes, of feasible or scored nodes, and of unknown nodes."""
        self._get_metric("extender_request_nodes", verb).observe(requested_count)
        self._get_metric("extender_response_nodes", verb).observe(returned_count)
        if unknown_count:
            self._get_metric("extender_unknown_nodes_total", verb).inc(unknown_count)

    def count_whole_nodes_request(self, verb: str) -> None:
        """Count a request with whole nodes although the cluster is cached; warn at the first such request."""
        self._get_metric("extender_requests_with_whole_nodes_total", verb).inc()
        if not self._warned_of_whole_nodes:
            self._warned_of_whole_nodes = True
            log.warning("Requests contain whole nodes, but their names are enough; set nodeCacheCapable: true")

    def count_rejected_nodes(self, rejection_counts: Mapping[tuple[str, str], int]) -> None:
        """Count rejected nodes by the first rejecting plugin and its reason; reasons above the limit are "other"."""
        for (plugin, reason), count in rejection_counts.items():
            if reason not in self._reason_labels and len(self._reason_labels) < _MAX_REASON_LABELS:
                self._reason_labels.add(reason)
            label = reason if reason in self._reason_labels else "other"
            self._get_metric("extender_refused_nodes_total", plugin, label).inc(count)

    def count_assumption_event(self, event: str) -> None:
        """Count an event of a pod on the node that filter chose; see `extender_api.best_node.assumptions.EVENTS`."""
        self._get_metric("extender_assumption_events_total", event).inc()

    def set_assumed_pods_source(self, get_count: Callable[[], int]) -> None:
        """Expose the result of *get_count* as the number of pods that are assumed now."""
        self._get_metric("extender_assumed_pods").set_function(get_count)

    def observe_event_loop_lag(self, seconds: float) -> None:
        """Observe the delay after which the event loop resumed a sleeping task."""
        self._get_metric("extender_event_loop_lag_seconds").observe(seconds)

    def count_failed_decision(self, verb: str) -> None:
        """Count a request whose decision failed with an error."""
        self._get_metric("extender_failed_decisions_total", verb).inc()

    def count_bind_result(self, result: str) -> None:
        """Count a bind request by its result: `bound`, `already` (bound before), `refused` or `failed`."""
        self._get_metric("extender_bind_results_total", result).inc()
