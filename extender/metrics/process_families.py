"""Metric families that all Kubernetes components have: API client, leader election, build, features, authentication.

kube-scheduler's `go_*` families are omitted, since they describe Go's runtime; this process has `python_*` instead.

Source: component-base/metrics/legacyregistry/registry.go, init (1.36).
"""

from typing import Final

from extender.metrics.families import MetricFamily, MetricType, Stability, exponential_buckets

_COUNTER, _GAUGE, _HISTOGRAM = MetricType.COUNTER, MetricType.GAUGE, MetricType.HISTOGRAM
_BETA = Stability.BETA

_REQUEST_BUCKETS = (0.005, 0.025, 0.1, 0.25, 0.5, 1.0, 2.0, 4.0, 8.0, 15.0, 30.0, 60.0)
_SIZE_BUCKETS = (64, 256, 512, 1024, 4096, 16384, 65536, 262144, 1048576, 4194304, 16777216)
_REVIEW_BUCKETS = (0.25, 0.5, 0.7, 1.0, 1.5, 3.0, 5.0, 10.0)
_DEFAULT_BUCKETS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0)
_CERTIFICATE_LIFETIME_BUCKETS = (
    0,
    1800,
    3600,
    7200,
    21600,
    43200,
    86400,
    172800,
    345600,
    604800,
    2592000,
    7776000,
    15552000,
    31104000,
)
_ROTATION_AGE_BUCKETS = (600, 1800, 3600, 14400, 86400, 604800, 2592000, 7776000, 15552000, 31104000, 124416000)
_WORK_QUEUE_BUCKETS = tuple(exponential_buckets(1e-8, 10, 10))

_REST_CLIENT_FAMILIES: Final = (
    MetricFamily(
        "rest_client_requests_total",
        _COUNTER,
        "Requests to the API server, by HTTP status.",
        ("code", "method", "host"),
    ),
    MetricFamily(
        "rest_client_request_duration_seconds",
        _HISTOGRAM,
        "Seconds until the API server's response.",
        ("verb", "host"),
        _REQUEST_BUCKETS,
    ),
    MetricFamily(
        "rest_client_rate_limiter_duration_seconds",
        _HISTOGRAM,
        "Seconds a request waited for the client's rate limit.",
        ("verb", "host"),
        _REQUEST_BUCKETS,
    ),
    MetricFamily(
        "rest_client_request_size_bytes", _HISTOGRAM, "Bytes sent in a body.", ("verb", "host"), _SIZE_BUCKETS
    ),
    MetricFamily(
        "rest_client_response_size_bytes", _HISTOGRAM, "Bytes received in a body.", ("verb", "host"), _SIZE_BUCKETS
    ),
    MetricFamily("rest_client_request_retries_total", _COUNTER, "Requests sent again.", ("code", "verb", "host")),
    MetricFamily(
        "rest_client_dns_resolution_duration_seconds",
        _HISTOGRAM,
        "Seconds it took to resolve the API server's name.",
        ("host",),
        _REQUEST_BUCKETS[:-1],
    ),
    MetricFamily(
        "rest_client_exec_plugin_ttl_seconds", _GAUGE, "Remaining lifetime of an exec plugin's certificate in seconds."
    ),
    MetricFamily(
        "rest_client_exec_plugin_certificate_rotation_age",
        _HISTOGRAM,
        "Age of an exec plugin's certificate in seconds when it was rotated.",
        buckets=_ROTATION_AGE_BUCKETS,
    ),
    MetricFamily("rest_client_exec_plugin_call_total", _COUNTER, "Calls of an exec plugin.", ("code", "call_status")),
    MetricFamily(
        "rest_client_exec_plugin_policy_call_total",
        _COUNTER,
        "Exec plugins compared with a policy.",
        ("allowed", "denied"),
    ),
    MetricFamily("rest_client_transport_cache_entries", _GAUGE, "Sessions with the API server."),
    MetricFamily("rest_client_transport_create_calls_total", _COUNTER, "Sessions requested.", ("result",)),
    MetricFamily(
        "rest_client_transport_ca_reload_total", _COUNTER, "Certificate authorities reloaded.", ("result", "reason")
    ),
    MetricFamily(
        "rest_client_transport_cert_rotation_gc_calls_total", _COUNTER, "Always 0: sessions are not collected."
    ),
)

_COMPONENT_FAMILIES: Final = (
    MetricFamily("leader_election_master_status", _GAUGE, "1 for the leader, 0 for others, by lease.", ("name",)),
    MetricFamily("leader_election_slowpath_total", _COUNTER, "Renewals that had to read the lease first.", ("name",)),
    MetricFamily(
        "kubernetes_build_info",
        _GAUGE,
        "Always 1; the labels have the version.",
        (
            "major", "minor", "git_version", "git_commit", "git_tree_state", "build_date", "go_version", "compiler",
            "platform",
        ),
        stability=_BETA,
    ),
    MetricFamily(
        "kubernetes_feature_enabled",
        _GAUGE,
        "Feature gates: 1 if on, 0 if off.",
        ("name", "stage"),
        stability=_BETA,
    ),
    MetricFamily(
        "version_info",
        _GAUGE,
        "Always 1; the labels have the binary, emulation and minimum compatibility versions.",
        ("component", "binary", "emulation", "min_compat"),
    ),
    MetricFamily(
        "registered_metrics_total",
        _COUNTER,
        "Registered metric families.",
        ("stability_level", "deprecated_version"),
        stability=_BETA,
    ),
    MetricFamily("hidden_metrics_total", _COUNTER, "Metric families that are hidden: none.", stability=_BETA),
    MetricFamily("disabled_metrics_total", _COUNTER, "Metric families switched off.", stability=_BETA),
    MetricFamily(
        "cardinality_enforcement_unexpected_categorizations_total", _COUNTER, "Label values not in their allow-list."
    ),
)  # fmt: skip

_AUTHENTICATION_BUCKETS = tuple(exponential_buckets(0.001, 2, 15))

_AUTHENTICATION_FAMILIES: Final = (
    MetricFamily(
        "authenticated_user_requests",
        _COUNTER,
        "Authenticated requests by user name, for a few well-known names.",
        ("username",),
    ),
    MetricFamily("authentication_attempts", _COUNTER, "Authentication attempts by result.", ("result",)),
    MetricFamily(
        "authentication_duration_seconds",
        _HISTOGRAM,
        "Seconds an authentication took.",
        ("result",),
        _AUTHENTICATION_BUCKETS,
    ),
    MetricFamily("authorization_attempts_total", _COUNTER, "Authorization attempts by result.", ("result",)),
    MetricFamily(
        "authorization_duration_seconds",
        _HISTOGRAM,
        "Seconds an authorization took.",
        ("result",),
        _AUTHENTICATION_BUCKETS,
    ),
    MetricFamily(
        "apiserver_delegated_authn_request_total", _COUNTER, "TokenReview requests to the API server.", ("code",)
    ),
    MetricFamily(
        "apiserver_delegated_authn_request_duration_seconds",
        _HISTOGRAM,
        "Seconds a review request took.",
        ("code",),
        _REVIEW_BUCKETS,
    ),
    MetricFamily(
        "apiserver_delegated_authz_request_total",
        _COUNTER,
        "SubjectAccessReview requests to the API server.",
        ("code",),
    ),
    MetricFamily(
        "apiserver_delegated_authz_request_duration_seconds",
        _HISTOGRAM,
        "Seconds a review request took.",
        ("code",),
        _REVIEW_BUCKETS,
    ),
    MetricFamily("authentication_token_cache_request_total", _COUNTER, "Tokens looked up.", ("status",)),
    MetricFamily(
        "authentication_token_cache_request_duration_seconds",
        _HISTOGRAM,
        "Seconds a token took to look up.",
        ("status",),
        _DEFAULT_BUCKETS,
    ),
    MetricFamily("authentication_token_cache_fetch_total", _COUNTER, "Token reviews.", ("status",)),
    MetricFamily("authentication_token_cache_active_fetch_count", _GAUGE, "Token reviews in progress.", ("status",)),
    MetricFamily(
        "apiserver_client_certificate_expiration_seconds",
        _HISTOGRAM,
        "Remaining lifetime of client certificates in seconds.",
        buckets=_CERTIFICATE_LIFETIME_BUCKETS,
    ),
)

_WORK_QUEUE_FAMILIES: Final = (
    MetricFamily("workqueue_adds_total", _COUNTER, "Items put into a work queue.", ("name",), stability=_BETA),
    MetricFamily("workqueue_depth", _GAUGE, "Items in a work queue.", ("name",), stability=_BETA),
    MetricFamily(
        "workqueue_queue_duration_seconds",
        _HISTOGRAM,
        "Seconds that an item waited in the queue.",
        ("name",),
        _WORK_QUEUE_BUCKETS,
        _BETA,
    ),
    MetricFamily(
        "workqueue_work_duration_seconds",
        _HISTOGRAM,
        "Seconds that processing an item took.",
        ("name",),
        _WORK_QUEUE_BUCKETS,
        _BETA,
    ),
    MetricFamily("workqueue_retries_total", _COUNTER, "Items added again after a failure.", ("name",), stability=_BETA),
    MetricFamily(
        "workqueue_unfinished_work_seconds", _GAUGE, "Seconds of unfinished work.", ("name",), stability=_BETA
    ),
    MetricFamily(
        "workqueue_longest_running_processor_seconds",
        _GAUGE,
        "Seconds that the longest running item has taken.",
        ("name",),
        stability=_BETA,
    ),
)
"""These families have no values, since this process has no work queues."""

_ALWAYS_ZERO_HELP = (
    "Always 0: kube-scheduler inherits it from the API server's libraries, and this process does not use it."
)

_ALWAYS_ZERO_FAMILIES: Final = (
    *(
        MetricFamily(name, _COUNTER, _ALWAYS_ZERO_HELP)
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
    MetricFamily("apiserver_envelope_encryption_dek_cache_fill_percent", _GAUGE, _ALWAYS_ZERO_HELP),
    MetricFamily(
        "apiserver_storage_data_key_generation_duration_seconds",
        _HISTOGRAM,
        _ALWAYS_ZERO_HELP,
        buckets=tuple(exponential_buckets(5e-6, 2, 14)),
    ),
    MetricFamily(
        "apiserver_validation_declarative_validation_mismatch_total", _COUNTER, _ALWAYS_ZERO_HELP, stability=_BETA
    ),
    MetricFamily(
        "apiserver_validation_declarative_validation_panic_total", _COUNTER, _ALWAYS_ZERO_HELP, stability=_BETA
    ),
    MetricFamily(
        "apiserver_validation_duplicate_validation_error_total",
        _COUNTER,
        _ALWAYS_ZERO_HELP,
        stability=Stability.INTERNAL,
    ),
)

CLIENT_FAMILIES: Final = (*_REST_CLIENT_FAMILIES, *_AUTHENTICATION_FAMILIES)
"""Families of requests to the API server, and of delegated authentication and authorization."""

PROCESS_FAMILIES: Final = (*CLIENT_FAMILIES, *_COMPONENT_FAMILIES, *_WORK_QUEUE_FAMILIES, *_ALWAYS_ZERO_FAMILIES)
"""All families of the process."""

HEALTH_FAMILIES: Final = (
    MetricFamily(
        "kubernetes_healthcheck",
        _GAUGE,
        "1 if the last check passed, else 0.",
        ("name", "type"),
        stability=Stability.STABLE,
    ),
    MetricFamily(
        "kubernetes_healthchecks_total",
        _COUNTER,
        "Checks by outcome.",
        ("name", "type", "status"),
        stability=Stability.STABLE,
    ),
)
"""The families of `/metrics/slis`."""
