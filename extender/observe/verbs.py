"""Metrics of the extender's verbs: how long, how many, how big, and which plugins refuse."""

import logging
from collections.abc import Callable, Mapping
from typing import Any

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram

from extender.observe.families import exponential

log = logging.getLogger("extender.observe")

_SIZES = exponential(256, 4, 11)
"""256 bytes to 256 MiB."""

_MOST_WORDS = 200
"""Reasons told apart: those of built-in plugins are few, others' could hold anything."""

_LATE = (0.001, 0.002, 0.005, 0.01, 0.015, 0.02, 0.03, 0.05, 0.1, 0.2, 0.5, 1, 5)

_NODES = (0, 1, 10, 100, 500, 1000, 2000, 5000, 10000, 50000)


class VerbMetrics:
    """Counts what passes through the verbs. Durations are in seconds, sizes in bytes."""

    _warned = False

    def __init__(self, registry: CollectorRegistry) -> None:
        self._durations = Histogram(
            "extender_request_duration_seconds",
            "Time from the first byte of a request's body to the answer, by verb and HTTP status.",
            ("verb", "code"),
            buckets=exponential(0.0005, 2, 15),
            registry=registry,
        )
        self._in_flight = Gauge(
            "extender_requests_in_flight", "Requests that are being read or answered.", ("verb",), registry=registry
        )
        self._nodes_in = Histogram(
            "extender_request_nodes", "Nodes asked about.", ("verb",), buckets=_NODES, registry=registry
        )
        self._nodes_out = Histogram(
            "extender_response_nodes",
            "Nodes that can take the pod (filter), that got a score (prioritize), where evicting helps (preempt).",
            ("verb",),
            buckets=_NODES,
            registry=registry,
        )
        self._request_bytes = Histogram(
            "extender_request_size_bytes", "Size of request bodies.", ("verb",), buckets=_SIZES, registry=registry
        )
        self._response_bytes = Histogram(
            "extender_response_size_bytes", "Size of response bodies.", ("verb",), buckets=_SIZES, registry=registry
        )
        self._refused = Counter(
            "extender_refused_nodes",
            "Nodes refused by filter, by the plugin that refuses first and its words.",
            ("plugin", "reason"),
            registry=registry,
        )
        self._words, self._children = set[str](), dict[tuple[Any, ...], Any]()
        self._stale, self._lag, self._whole = _staleness(registry), _lag(registry), _whole(registry)
        self._unknown = Counter(
            "extender_unknown_nodes", "Names of nodes asked about that are not known.", ("verb",), registry=registry
        )
        self._errors = Counter(
            "extender_failed_decisions",
            "Requests that were understood but could not be decided, since something went wrong.",
            ("verb",),
            registry=registry,
        )
        self._bound = Counter(
            "extender_bind_results",
            "Requests to bind by how they ended: bound, already, refused or failed.",
            ("result",),
            registry=registry,
        )

    def started(self, verb: str) -> None:
        """A request came in."""
        self._child(self._in_flight, verb).inc()

    def ended(self, verb: str, code: int, seconds: float) -> None:
        """It was answered with the HTTP status *code*."""
        self._child(self._in_flight, verb).dec()
        self._child(self._durations, verb, str(code)).observe(seconds)

    def sizes(self, verb: str, request: int, response: int) -> None:
        """How big the bodies were, in bytes."""
        self._child(self._request_bytes, verb).observe(request)
        self._child(self._response_bytes, verb).observe(response)

    def nodes(self, verb: str, asked: int, answered: int, unknown: int) -> None:
        """How many nodes were asked about, how many of them were let through or scored, and how many are not known."""
        self._child(self._nodes_in, verb).observe(asked)
        self._child(self._nodes_out, verb).observe(answered)
        if unknown:
            self._child(self._unknown, verb).inc(unknown)

    def whole(self, verb: str) -> None:
        """Whole nodes came though the cluster is known; that is said in the log the first time."""
        self._child(self._whole, verb).inc()
        if not self._warned:
            self._warned = True
            log.warning("Requests bring whole nodes though the cluster is known; set nodeCacheCapable: true for names")

    def refused(self, counted: Mapping[tuple[str, str], int]) -> None:
        """How many nodes each plugin was the first to refuse, and with which words; of very many, not which."""
        for (plugin, words), count in counted.items():
            if words not in self._words and len(self._words) < _MOST_WORDS:
                self._words.add(words)
            self._child(self._refused, plugin, words if words in self._words else "other").inc(count)

    def staleness(self, kind: str, seconds: Callable[[], float]) -> None:
        """From now on the page asks *seconds* how long ago the API server was last heard about *kind*."""
        self._child(self._stale, kind).set_function(seconds)

    def lagged(self, seconds: float) -> None:
        """The event loop came back so much later than it was asked to."""
        self._lag.observe(seconds)

    def failed(self, verb: str) -> None:
        """Something went wrong while deciding."""
        self._child(self._errors, verb).inc()

    def bound(self, outcome: str) -> None:
        """A request to bind ended: `bound`, `already` (it was there), `refused` or `failed`."""
        self._child(self._bound, outcome).inc()

    def _child(self, family: Counter | Gauge | Histogram, *labels: str) -> Any:
        """The metric of *family* with these labels, looked up once: the family takes a lock and longer."""
        key = (family, *labels)
        found = self._children.get(key)
        if found is None:
            found = self._children[key] = family.labels(*labels)
        return found


def _staleness(registry: CollectorRegistry) -> Gauge:
    return Gauge(
        "extender_cache_staleness_seconds",
        "Time since the API server was last heard about a kind; +Inf before the first time.",
        ("kind",),
        registry=registry,
    )


def _whole(registry: CollectorRegistry) -> Counter:
    return Counter(
        "extender_requests_with_whole_nodes",
        "Requests with whole nodes though the cluster is known; with nodeCacheCapable: true names are sent.",
        ("verb",),
        registry=registry,
    )


def _lag(registry: CollectorRegistry) -> Histogram:
    return Histogram(
        "extender_event_loop_lag_seconds",
        "How late the event loop comes back to what is due: as long as requests wait before anybody looks at them.",
        buckets=_LATE,
        registry=registry,
    )
