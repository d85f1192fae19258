"""Metric families that every Kubernetes component has: API client, election, build, features, delegated authentication.

kube-scheduler's `go_*` families are left out: they describe Go's runtime; this process has `python_*` instead.
Source: H040.
"""

from typing import Final

from extender.observe.families import Family, Kind, Stability, exponential

_COUNTER, _GAUGE, _HISTOGRAM = Kind.COUNTER, Kind.GAUGE, Kind.HISTOGRAM
_BETA = Stability.BETA

_REQUEST = (0.005, 0.025, 0.1, 0.25, 0.5, 1.0, 2.0, 4.0, 8.0, 15.0, 30.0, 60.0)
_SIZE = (64, 256, 512, 1024, 4096, 16384, 65536, 262144, 1048576, 4194304, 16777216)
_REVIEW = (0.25, 0.5, 0.7, 1.0, 1.5, 3.0, 5.0, 10.0)
_ORDINARY = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0)
_LIFETIME = (0, 1800, 3600, 7200, 21600, 43200, 86400, 172800, 345600, 604800, 2592000, 7776000, 15552000, 31104000)
_ROTATION = (600, 1800, 3600, 14400, 86400, 604800, 2592000, 7776000, 15552000, 31104000, 124416000)
_ITEM = tuple(exponential(1e-8, 10, 10))

_CLIENT: Final = (
    Family(
        "rest_client_requests_total",
        _COUNTER,
        "Requests to the API server, by HTTP status.",
        ("code", "method", "host"),
    ),
    Family(
        "rest_client_request_duration_seconds",
        _HISTOGRAM,
        "Seconds until the API server's answer was there.",
        ("verb", "host"),
        _REQUEST,
    ),
    Family(
        "rest_client_rate_limiter_duration_seconds",
        _HISTOGRAM,
        "Seconds a request waited for our own rate.",
        ("verb", "host"),
        _REQUEST,
    ),
    Family("rest_client_request_size_bytes", _HISTOGRAM, "Bytes sent in a body.", ("verb", "host"), _SIZE),
    Family("rest_client_response_size_bytes", _HISTOGRAM, "Bytes received in a body.", ("verb", "host"), _SIZE),
    Family("rest_client_request_retries_total", _COUNTER, "Requests sent again.", ("code", "verb", "host")),
    Family(
        "rest_client_dns_resolution_duration_seconds",
        _HISTOGRAM,
        "Seconds it took to resolve the API server's name.",
        ("host",),
        _REQUEST[:-1],
    ),
    Family("rest_client_exec_plugin_ttl_seconds", _GAUGE, "Seconds an exec plugin's certificate has left."),
    Family(
        "rest_client_exec_plugin_certificate_rotation_age",
        _HISTOGRAM,
        "Seconds an exec plugin's certificate lived.",
        buckets=_ROTATION,
    ),
    Family("rest_client_exec_plugin_call_total", _COUNTER, "Calls of an exec plugin.", ("code", "call_status")),
    Family(
        "rest_client_exec_plugin_policy_call_total",
        _COUNTER,
        "Exec plugins compared with a policy.",
        ("allowed", "denied"),
    ),
    Family("rest_client_transport_cache_entries", _GAUGE, "Sessions with the API server."),
    Family("rest_client_transport_create_calls_total", _COUNTER, "Sessions asked for.", ("result",)),
    Family("rest_client_transport_ca_reload_total", _COUNTER, "Authorities read again.", ("result", "reason")),
    Family("rest_client_transport_cert_rotation_gc_calls_total", _COUNTER, "Always 0: sessions are not collected."),
)

_WHO: Final = (
    Family("leader_election_master_status", _GAUGE, "1 for the leader, 0 for others, by lease.", ("name",)),
    Family("leader_election_slowpath_total", _COUNTER, "Renewals that had to read the lease first.", ("name",)),
    Family(
        "kubernetes_build_info",
        _GAUGE,
        "Always 1; the labels tell the version.",
        (
            "major", "minor", "git_version", "git_commit", "git_tree_state", "build_date", "go_version", "compiler",
            "platform",
        ),
        stability=_BETA,
    ),
    Family(
        "kubernetes_feature_enabled",
        _GAUGE,
        "Feature gates: 1 if on, 0 if off.",
        ("name", "stage"),
        stability=_BETA,
    ),
    Family(
        "version_info",
        _GAUGE,
        "Always 1; the labels tell which versions it behaves as.",
        ("component", "binary", "emulation", "min_compat"),
    ),
    Family(
        "registered_metrics_total",
        _COUNTER,
        "Metric families there are.",
        ("stability_level", "deprecated_version"),
        stability=_BETA,
    ),
    Family("hidden_metrics_total", _COUNTER, "Metric families that are hidden: none.", stability=_BETA),
    Family("disabled_metrics_total", _COUNTER, "Metric families switched off.", stability=_BETA),
    Family("cardinality_enforcement_unexpected_categorizations_total", _COUNTER, "Labels outside their allow-list."),
)  # fmt: skip

_ASKED = tuple(exponential(0.001, 2, 15))

_CALLERS: Final = (
    Family("authenticated_user_requests", _COUNTER, "Requests by who asks, where that is of a few.", ("username",)),
    Family("authentication_attempts", _COUNTER, "Callers looked at, by outcome.", ("result",)),
    Family("authentication_duration_seconds", _HISTOGRAM, "Seconds a caller took to look at.", ("result",), _ASKED),
    Family("authorization_attempts_total", _COUNTER, "Rights looked at, by outcome.", ("result",)),
    Family("authorization_duration_seconds", _HISTOGRAM, "Seconds rights took to look at.", ("result",), _ASKED),
    Family(
        "apiserver_delegated_authn_request_total", _COUNTER, "Questions about tokens put to the API server.", ("code",)
    ),
    Family(
        "apiserver_delegated_authn_request_duration_seconds",
        _HISTOGRAM,
        "Seconds such a question took.",
        ("code",),
        _REVIEW,
    ),
    Family(
        "apiserver_delegated_authz_request_total", _COUNTER, "Questions about rights put to the API server.", ("code",)
    ),
    Family(
        "apiserver_delegated_authz_request_duration_seconds",
        _HISTOGRAM,
        "Seconds such a question took.",
        ("code",),
        _REVIEW,
    ),
    Family("authentication_token_cache_request_total", _COUNTER, "Tokens looked up.", ("status",)),
    Family(
        "authentication_token_cache_request_duration_seconds",
        _HISTOGRAM,
        "Seconds a token took to look up.",
        ("status",),
        _ORDINARY,
    ),
    Family("authentication_token_cache_fetch_total", _COUNTER, "Tokens asked about.", ("status",)),
    Family("authentication_token_cache_active_fetch_count", _GAUGE, "Tokens being asked about.", ("status",)),
    Family(
        "apiserver_client_certificate_expiration_seconds",
        _HISTOGRAM,
        "Seconds that callers' certificates have left.",
        buckets=_LIFETIME,
    ),
)

_WORK_QUEUES: Final = (
    Family("workqueue_adds_total", _COUNTER, "Items put into a work queue.", ("name",), stability=_BETA),
    Family("workqueue_depth", _GAUGE, "Items in a work queue.", ("name",), stability=_BETA),
    Family("workqueue_queue_duration_seconds", _HISTOGRAM, "Seconds an item waited.", ("name",), _ITEM, _BETA),
    Family("workqueue_work_duration_seconds", _HISTOGRAM, "Seconds an item took.", ("name",), _ITEM, _BETA),
    Family("workqueue_retries_total", _COUNTER, "Items put back.", ("name",), stability=_BETA),
    Family("workqueue_unfinished_work_seconds", _GAUGE, "Seconds of unfinished work.", ("name",), stability=_BETA),
    Family(
        "workqueue_longest_running_processor_seconds",
        _GAUGE,
        "Seconds the longest item has taken.",
        ("name",),
        stability=_BETA,
    ),
)
"""Without values: there are no work queues here."""

_INHERITED = "Always 0: kube-scheduler has it from the API server's libraries, and nothing here does that."

_ALWAYS_ZERO: Final = (
    *(
        Family(name, _COUNTER, _INHERITED)
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
    Family("apiserver_envelope_encryption_dek_cache_fill_percent", _GAUGE, _INHERITED),
    Family(
        "apiserver_storage_data_key_generation_duration_seconds",
        _HISTOGRAM,
        _INHERITED,
        buckets=tuple(exponential(5e-6, 2, 14)),
    ),
    Family("apiserver_validation_declarative_validation_mismatch_total", _COUNTER, _INHERITED, stability=_BETA),
    Family("apiserver_validation_declarative_validation_panic_total", _COUNTER, _INHERITED, stability=_BETA),
    Family("apiserver_validation_duplicate_validation_error_total", _COUNTER, _INHERITED, stability=Stability.INTERNAL),
)

CALL_FAMILIES: Final = (*_CLIENT, *_CALLERS)
"""Of requests to the API server, and of callers about whom it is asked."""

PROCESS_FAMILIES: Final = (*CALL_FAMILIES, *_WHO, *_WORK_QUEUES, *_ALWAYS_ZERO)
"""All of them."""

HEALTH_FAMILIES: Final = (
    Family(
        "kubernetes_healthcheck",
        _GAUGE,
        "1 if the check passed when it was last asked, else 0.",
        ("name", "type"),
        stability=Stability.STABLE,
    ),
    Family(
        "kubernetes_healthchecks_total",
        _COUNTER,
        "Checks by outcome.",
        ("name", "type", "status"),
        stability=Stability.STABLE,
    ),
)
"""Those of `/metrics/slis`."""
