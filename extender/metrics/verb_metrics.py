"""Metrics of the extender's verbs: durations, numbers of nodes, body sizes, and rejecting plugins."""

import logging
from collections.abc import Callable, Mapping
from typing import Any

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram

from extender.metrics.buffered_histogram import BufferedHistogram
from extender.metrics.families import exponential_buckets

log = logging.getLogger("extender.metrics")

_SIZE_BUCKETS = exponential_buckets(256, 4, 11)
"""256 bytes to 256 MiB."""

_MAX_REASON_LABELS = 200
"""The maximum number of reasons that are label values. The reasons of third-party plugins may be unbounded."""

_LAG_BUCKETS = (0.001, 0.002, 0.005, 0.01, 0.015, 0.02, 0.03, 0.05, 0.1, 0.2, 0.5, 1, 5)

_NODE_BUCKETS = (0, 1, 10, 100, 500, 1000, 2000, 5000, 10000, 50000)


class VerbMetrics:
    """Metrics of the extender's verbs. Durations are in seconds, sizes in bytes."""

    _warned_of_whole_nodes = False

    def __init__(self, registry: CollectorRegistry) -> None:
        self._reason_labels, self._children = set[str](), dict[tuple[Any, ...], Any]()
        self._durations = BufferedHistogram(
            "extender_request_duration_seconds",
            "Time from a request's headers to the end of the response, by verb and HTTP status.",
            ("verb", "code"),
            buckets=exponential_buckets(0.0005, 2, 15),
            registry=registry,
        )
        self._in_flight = Gauge(
            "extender_requests_in_flight", "Requests that are being read or processed.", ("verb",), registry=registry
        )
        self._request_nodes = _create_node_histogram(registry, "extender_request_nodes", "Nodes in a request.")
        self._response_nodes = _create_node_histogram(
            registry,
            "extender_response_nodes",
            "Nodes in a response: feasible (filter), scored (prioritize), or candidates (preempt).",
        )
        self._request_bytes = _create_size_histogram(registry, "extender_request_size_bytes", "Size of request bodies.")
        self._response_bytes = _create_size_histogram(
            registry, "extender_response_size_bytes", "Size of response bodies."
        )
        self._rejected_nodes = Counter(
            "extender_refused_nodes",
            "Nodes rejected by filter, by the first rejecting plugin and its reason.",
            ("plugin", "reason"),
            registry=registry,
        )
        self._staleness_gauge = _create_staleness_gauge(registry)
        self._event_loop_lag = _create_event_loop_lag(registry)
        self._whole_node_requests = _create_whole_node_requests(registry)
        self._unknown_nodes = Counter(
            "extender_unknown_nodes", "Requested nodes that are not in the cache.", ("verb",), registry=registry
        )
        self._failed_decisions = Counter(
            "extender_failed_decisions", "Requests whose decision failed with an error.", ("verb",), registry=registry
        )
        self._bind_results = Counter(
            "extender_bind_results",
            "Bind requests by result: bound, already, refused or failed.",
            ("result",),
            registry=registry,
        )

        self._assumption_events = _create_assumption_events(registry)
        self._assumed_pods = Gauge(
            "extender_assumed_pods", "Pods that are assumed on the node that filter chose.", registry=registry
        )

    def observe_request_start(self, verb: str) -> None:
        """Count a request as in flight."""
        self._get_child(self._in_flight, verb).inc()

    def observe_request_end(self, verb: str, code: int, seconds: float) -> None:
        """Observe the duration of a request with the HTTP status *code*."""
        self._get_child(self._in_flight, verb).dec()
        self._get_child(self._durations, verb, str(code)).observe(seconds)

    def observe_body_sizes(self, verb: str, request_bytes: int, response_bytes: int) -> None:
        """Observe the body sizes in bytes."""
        self._get_child(self._request_bytes, verb).observe(request_bytes)
        self._get_child(self._response_bytes, verb).observe(response_bytes)

    def observe_nodes(self, verb: str, requested_count: int, returned_count: int, unknown_count: int) -> None:
        """Observe the numbers of requested nodes, of feasible or scored nodes, and of unknown nodes."""
        self._get_child(self._request_nodes, verb).observe(requested_count)
        self._get_child(self._response_nodes, verb).observe(returned_count)
        if unknown_count:
            self._get_child(self._unknown_nodes, verb).inc(unknown_count)

    def count_whole_nodes_request(self, verb: str) -> None:
        """Count a request with whole nodes although the cluster is cached; warn at the first such request."""
        self._get_child(self._whole_node_requests, verb).inc()
        if not self._warned_of_whole_nodes:
            self._warned_of_whole_nodes = True
            log.warning("Requests contain whole nodes, but their names are enough; set nodeCacheCapable: true")

    def count_rejected_nodes(self, rejection_counts: Mapping[tuple[str, str], int]) -> None:
        """Count rejected nodes by the first rejecting plugin and its reason; reasons above the limit are "other"."""
        for (plugin, reason), count in rejection_counts.items():
            if reason not in self._reason_labels and len(self._reason_labels) < _MAX_REASON_LABELS:
                self._reason_labels.add(reason)
            label = reason if reason in self._reason_labels else "other"
            self._get_child(self._rejected_nodes, plugin, label).inc(count)

    def count_assumption_event(self, event: str) -> None:
        """Count an event of a pod on the node that filter chose; see `extender_api.best_node.assumptions.EVENTS`."""
        self._get_child(self._assumption_events, event).inc()

    def set_assumed_pods_source(self, get_count: Callable[[], int]) -> None:
        """Expose the result of *get_count* as the number of pods that are assumed now."""
        self._assumed_pods.set_function(get_count)

    def set_staleness_source(self, kind: str, get_seconds: Callable[[], float]) -> None:
        """Expose the result of *get_seconds* as the time since the API server's last response for *kind*."""
        self._get_child(self._staleness_gauge, kind).set_function(get_seconds)

    def observe_event_loop_lag(self, seconds: float) -> None:
        """Observe the delay after which the event loop resumed a sleeping task."""
        self._event_loop_lag.observe(seconds)

    def count_failed_decision(self, verb: str) -> None:
        """Count a request whose decision failed with an error."""
        self._get_child(self._failed_decisions, verb).inc()

    def count_bind_result(self, result: str) -> None:
        """Count a bind request by its result: `bound`, `already` (bound before), `refused` or `failed`."""
        self._get_child(self._bind_results, result).inc()

    def _get_child(self, family: Counter | Gauge | Histogram, *labels: str) -> Any:
        """Return the metric of *family* with these labels, from a cache: the family's own lookup takes a lock."""
        key = (family, *labels)
        child = self._children.get(key)
        if child is None:
            child = self._children[key] = family.labels(*labels)
        return child


def _create_node_histogram(registry: CollectorRegistry, name: str, help_text: str) -> Histogram:
    return BufferedHistogram(name, help_text, ("verb",), buckets=_NODE_BUCKETS, registry=registry)


def _create_size_histogram(registry: CollectorRegistry, name: str, help_text: str) -> Histogram:
    return BufferedHistogram(name, help_text, ("verb",), buckets=_SIZE_BUCKETS, registry=registry)


def _create_staleness_gauge(registry: CollectorRegistry) -> Gauge:
    return Gauge(
        "extender_cache_staleness_seconds",
        "Time since the last response of the API server for a kind; +Inf before the first.",
        ("kind",),
        registry=registry,
    )


def _create_whole_node_requests(registry: CollectorRegistry) -> Counter:
    return Counter(
        "extender_requests_with_whole_nodes",
        "Requests with whole nodes although the cluster is cached; with nodeCacheCapable: true, only names are sent.",
        ("verb",),
        registry=registry,
    )


def _create_assumption_events(registry: CollectorRegistry) -> Counter:
    return Counter(
        "extender_assumption_events",
        "Pods on the node that filter chose, by event: chosen, assumed, and the end: confirmed, superseded, "
        "unscheduled, deleted or expired.",
        ("event",),
        registry=registry,
    )


def _create_event_loop_lag(registry: CollectorRegistry) -> Histogram:
    return BufferedHistogram(
        "extender_event_loop_lag_seconds",
        "Delay of the event loop, which is the time requests wait before they are read.",
        buckets=_LAG_BUCKETS,
        registry=registry,
    )
