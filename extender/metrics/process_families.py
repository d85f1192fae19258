"""Metric families that all Kubernetes components have: API client, leader election, build, features, authentication.

The metrics of health checks and of reloaded files are here, too.

kube-scheduler's `go_*` families are omitted, since they describe Go's runtime; this process has `python_*` instead.

Source: component-base/metrics/legacyregistry/registry.go, init (1.36).
"""

import time
from collections.abc import Iterator
from typing import Final

from prometheus_client import CollectorRegistry, Gauge

from extender.metrics.exposition import render_metrics
from extender.metrics.families import MetricFamilies, Stability, counter, exponential_buckets, gauge, histogram

_BETA = Stability.BETA
_START_TIME: Final = "process_start_time_seconds"

_REQUEST_BUCKETS = (0.005, 0.025, 0.1, 0.25, 0.5, 1.0, 2.0, 4.0, 8.0, 15.0, 30.0, 60.0)
_SIZE_BUCKETS = (64, 256, 512, 1024, 4096, 16384, 65536, 262144, 1048576, 4194304, 16777216)
_REVIEW_BUCKETS = (0.25, 0.5, 0.7, 1.0, 1.5, 3.0, 5.0, 10.0)
_DEFAULT_BUCKETS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0)
_CERTIFICATE_LIFETIME_BUCKETS = (
    0, 1800, 3600, 7200, 21600, 43200, 86400, 172800, 345600, 604800, 2592000, 7776000, 15552000, 31104000,
)  # fmt: skip
_ROTATION_AGE_BUCKETS = (600, 1800, 3600, 14400, 86400, 604800, 2592000, 7776000, 15552000, 31104000, 124416000)
_WORK_QUEUE_BUCKETS = exponential_buckets(1e-8, 10, 10)

_REST_CLIENT_FAMILIES: Final = (
    counter("rest_client_requests_total", "Requests to the API server, by HTTP status.", ("code", "method", "host")),
    histogram("rest_client_request_duration_seconds", "Seconds until the API server's response.", ("verb", "host"),
              _REQUEST_BUCKETS),
    histogram("rest_client_rate_limiter_duration_seconds", "Seconds a request waited for the client's rate limit.",
              ("verb", "host"), _REQUEST_BUCKETS),
    histogram("rest_client_request_size_bytes", "Bytes sent in a body.", ("verb", "host"), _SIZE_BUCKETS),
    histogram("rest_client_response_size_bytes", "Bytes received in a body.", ("verb", "host"), _SIZE_BUCKETS),
    counter("rest_client_request_retries_total", "Requests sent again.", ("code", "verb", "host")),
    histogram("rest_client_dns_resolution_duration_seconds", "Seconds it took to resolve the API server's name.",
              ("host",), _REQUEST_BUCKETS[:-1]),
    gauge("rest_client_exec_plugin_ttl_seconds", "Remaining lifetime of an exec plugin's certificate in seconds."),
    histogram("rest_client_exec_plugin_certificate_rotation_age",
              "Age of an exec plugin's certificate in seconds when it was rotated.", buckets=_ROTATION_AGE_BUCKETS),
    counter("rest_client_exec_plugin_call_total", "Calls of an exec plugin.", ("code", "call_status")),
    counter("rest_client_exec_plugin_policy_call_total", "Exec plugins compared with a policy.", ("allowed", "denied")),
    gauge("rest_client_transport_cache_entries", "Sessions with the API server."),
    counter("rest_client_transport_create_calls_total", "Sessions requested.", ("result",)),
    counter("rest_client_transport_ca_reload_total", "Certificate authorities reloaded.", ("result", "reason")),
    counter("rest_client_transport_cert_rotation_gc_calls_total", "Always 0: sessions are not collected."),
)  # fmt: skip

_COMPONENT_FAMILIES: Final = (
    gauge("leader_election_master_status", "1 for the leader, 0 for others, by lease.", ("name",)),
    counter("leader_election_slowpath_total", "Renewals that had to read the lease first.", ("name",)),
    gauge("kubernetes_build_info", "Always 1; the labels have the version.",
          ("major", "minor", "git_version", "git_commit", "git_tree_state", "build_date", "go_version", "compiler",
           "platform"),
          stability=_BETA),
    gauge("kubernetes_feature_enabled", "Feature gates: 1 if on, 0 if off.", ("name", "stage"), stability=_BETA),
    gauge("version_info", "Always 1; the labels have the binary, emulation and minimum compatibility versions.",
          ("component", "binary", "emulation", "min_compat")),
    counter("registered_metrics_total", "Registered metric families.", ("stability_level", "deprecated_version"),
            stability=_BETA),
    counter("hidden_metrics_total", "Metric families that are hidden, because they are deprecated or switched off.",
            stability=_BETA),
    counter("disabled_metrics_total", "Metric families switched off.", stability=_BETA),
    counter("cardinality_enforcement_unexpected_categorizations_total", "Label values not in their allow-list."),
)  # fmt: skip

_AUTHENTICATION_BUCKETS = exponential_buckets(0.001, 2, 15)

_AUTHENTICATION_FAMILIES: Final = (
    counter("authenticated_user_requests", "Authenticated requests by user name, for a few well-known names.",
            ("username",)),
    counter("authentication_attempts", "Authentication attempts by result.", ("result",)),
    histogram("authentication_duration_seconds", "Seconds an authentication took.", ("result",),
              _AUTHENTICATION_BUCKETS),
    counter("authorization_attempts_total", "Authorization attempts by result.", ("result",)),
    histogram("authorization_duration_seconds", "Seconds an authorization took.", ("result",), _AUTHENTICATION_BUCKETS),
    counter("apiserver_delegated_authn_request_total", "TokenReview requests to the API server.", ("code",)),
    histogram("apiserver_delegated_authn_request_duration_seconds", "Seconds a review request took.", ("code",),
              _REVIEW_BUCKETS),
    counter("apiserver_delegated_authz_request_total", "SubjectAccessReview requests to the API server.", ("code",)),
    histogram("apiserver_delegated_authz_request_duration_seconds", "Seconds a review request took.", ("code",),
              _REVIEW_BUCKETS),
    counter("authentication_token_cache_request_total", "Tokens looked up.", ("status",)),
    histogram("authentication_token_cache_request_duration_seconds", "Seconds a token took to look up.", ("status",),
              _DEFAULT_BUCKETS),
    counter("authentication_token_cache_fetch_total", "Token reviews.", ("status",)),
    gauge("authentication_token_cache_active_fetch_count", "Token reviews in progress.", ("status",)),
    histogram("apiserver_client_certificate_expiration_seconds",
              "Remaining lifetime of client certificates in seconds.", buckets=_CERTIFICATE_LIFETIME_BUCKETS),
)  # fmt: skip

_WORK_QUEUE_FAMILIES: Final = (
    counter("workqueue_adds_total", "Items put into a work queue.", ("name",), stability=_BETA),
    gauge("workqueue_depth", "Items in a work queue.", ("name",), stability=_BETA),
    histogram("workqueue_queue_duration_seconds", "Seconds that an item waited in the queue.", ("name",),
              _WORK_QUEUE_BUCKETS, _BETA),
    histogram("workqueue_work_duration_seconds", "Seconds that processing an item took.", ("name",),
              _WORK_QUEUE_BUCKETS, _BETA),
    counter("workqueue_retries_total", "Items added again after a failure.", ("name",), stability=_BETA),
    gauge("workqueue_unfinished_work_seconds", "Seconds of unfinished work.", ("name",), stability=_BETA),
    gauge("workqueue_longest_running_processor_seconds", "Seconds that the longest running item has taken.", ("name",),
          stability=_BETA),
)  # fmt: skip
"""These families have no values, since this process has no work queues."""

_ALWAYS_ZERO_HELP = (
    "Always 0: kube-scheduler inherits it from the API server's libraries, and this process does not use it."
)

_ALWAYS_ZERO_FAMILIES: Final = (
    *(
        counter(name, _ALWAYS_ZERO_HELP)
        for name in (
            "aggregator_discovery_aggregation_count_total",
            "aggregator_discovery_nopeer_requests_total",
            "aggregator_discovery_peer_aggregated_cache_hits_total",
            "aggregator_discovery_peer_aggregated_cache_misses_total",
            "apiserver_audit_event_total",
            "apiserver_audit_requests_rejected_total",
            "apiserver_storage_data_key_generation_failures_total",
            "apiserver_storage_envelope_transformation_cache_misses_total",
            "apiserver_webhooks_x509_insecure_sha1_total",
            "apiserver_webhooks_x509_missing_san_total",
        )
    ),
    gauge("apiserver_envelope_encryption_dek_cache_fill_percent", _ALWAYS_ZERO_HELP),
    histogram(
        "apiserver_storage_data_key_generation_duration_seconds",
        _ALWAYS_ZERO_HELP,
        buckets=exponential_buckets(5e-6, 2, 14),
    ),
    counter("apiserver_validation_declarative_validation_mismatch_total", _ALWAYS_ZERO_HELP, stability=_BETA),
    counter("apiserver_validation_declarative_validation_panic_total", _ALWAYS_ZERO_HELP, stability=_BETA),
    counter("apiserver_validation_duplicate_validation_error_total", _ALWAYS_ZERO_HELP, stability=Stability.INTERNAL),
)

CLIENT_FAMILIES: Final = (*_REST_CLIENT_FAMILIES, *_AUTHENTICATION_FAMILIES)
"""Families of requests to the API server, and of delegated authentication and authorization."""

PROCESS_FAMILIES: Final = (*CLIENT_FAMILIES, *_COMPONENT_FAMILIES, *_WORK_QUEUE_FAMILIES, *_ALWAYS_ZERO_FAMILIES)
"""All families of the process."""

HEALTH_FAMILIES: Final = (
    gauge("kubernetes_healthcheck", "1 if the last check passed, else 0.", ("name", "type"),
          stability=Stability.STABLE),
    counter("kubernetes_healthchecks_total", "Checks by outcome.", ("name", "type", "status"),
            stability=Stability.STABLE),
)  # fmt: skip
"""The families of `/metrics/slis`."""


class HealthMetrics:
    """Counts health checks by name, endpoint and result: the page `/metrics/slis`.

    Source: cmd/kube-scheduler/app/server.go, installMetricHandler (1.36).
    """

    def __init__(self, start_time: float) -> None:
        """Create the metrics; *start_time* is the start of the process in seconds since 1970."""
        self._registry = CollectorRegistry()
        self._families = MetricFamilies(self._registry, HEALTH_FAMILIES)
        Gauge(_START_TIME, "[ALPHA] Seconds since 1970 at which the process started.", registry=self._registry).set(
            start_time
        )

    def observe_check(self, name: str, endpoint: str, healthy: bool) -> None:
        """Observe a check of `livez`, `healthz` or `readyz`."""
        self._families.set_gauge("kubernetes_healthcheck", name, endpoint, value=float(healthy))
        self._families.increment("kubernetes_healthchecks_total", name, endpoint, "success" if healthy else "error")

    def render(self) -> Iterator[bytes]:
        """Return the parts of the page."""
        return render_metrics(self._registry)

    def reset(self) -> None:
        """Reset all counts."""
        self._families.reset()


RELOAD_FAMILIES: Final = (
    counter("extender_reloads_total", "Reloads of the configuration or the certificate, by result.", ("what", "result"),
            stability=Stability.NONE),
    gauge("extender_last_reload_successful", "Whether the last reload succeeded.", ("what",),
          stability=Stability.NONE),
    gauge("extender_last_reload_success_timestamp_seconds", "Time of the last successful load.", ("what",),
          stability=Stability.NONE),
)  # fmt: skip


class ReloadMetrics:
    """Metrics of files that are reloaded while the process runs; the load at the start counts as successful."""

    def __init__(self, registry: CollectorRegistry) -> None:
        self._families = MetricFamilies(registry, RELOAD_FAMILIES)

    def register_source(self, source: str) -> None:
        """Expose the metrics of a reloaded source; its load at the start counts as successful."""
        for result in ("success", "failure"):
            self._families.get_child("extender_reloads_total", source, result)
        self._set_state(source, succeeded=True)

    def observe_reload(self, source: str, *, succeeded: bool) -> None:
        """Observe a reload of a source."""
        self._families.increment("extender_reloads_total", source, "success" if succeeded else "failure")
        self._set_state(source, succeeded=succeeded)

    def _set_state(self, source: str, *, succeeded: bool) -> None:
        self._families.set_gauge("extender_last_reload_successful", source, value=succeeded)
        if succeeded:
            self._families.set_gauge("extender_last_reload_success_timestamp_seconds", source, value=time.time())
