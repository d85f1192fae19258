"""Observations of API requests and of delegated authentication are exposed under Kubernetes' names."""

from collections.abc import Callable

import pytest
from prometheus_client import CollectorRegistry

from extender.client.transport import RequestAttempt
from extender.metrics.client_metrics import ClientMetrics
from extender.metrics.exposition import render_metrics
from extender.metrics.families import MetricFamilies
from extender.metrics.process_families import CLIENT_FAMILIES


@pytest.mark.parametrize(
    ("record", "line"),
    [
        (
            lambda metrics: metrics.observe_request(RequestAttempt("GET", 0, code=200, seconds=0.5)),
            'rest_client_requests_total{code="200",host="host:6443",method="GET"} 1.0',
        ),
        (
            lambda metrics: metrics.observe_request(RequestAttempt("GET", 0, seconds=0.5)),
            'rest_client_requests_total{code="<error>",host="host:6443",method="GET"} 1.0',
        ),
        (
            lambda metrics: metrics.observe_request(RequestAttempt("PUT", 0, is_retry=True, code=503)),
            'rest_client_request_retries_total{code="503",host="host:6443",verb="PUT"} 1.0',
        ),
        (
            lambda metrics: metrics.observe_request(RequestAttempt("PUT", 300, rate_limit_wait=2.0)),
            'rest_client_rate_limiter_duration_seconds_sum{host="host:6443",verb="PUT"} 2.0',
        ),
        (
            lambda metrics: metrics.observe_request(RequestAttempt("PUT", 300)),
            'rest_client_request_size_bytes_sum{host="host:6443",verb="PUT"} 300.0',
        ),
        (
            lambda metrics: metrics.observe_request(RequestAttempt("PUT", 0, response_bytes=500)),
            'rest_client_response_size_bytes_sum{host="host:6443",verb="PUT"} 500.0',
        ),
        (lambda metrics: metrics.count_token_fetch("ok"), 'authentication_token_cache_fetch_total{status="ok"} 1.0'),
        (
            lambda metrics: metrics.observe_authentication("success", "ann@example.com", 0.5),
            'authenticated_user_requests{username="email_id"} 1.0',
        ),
        (
            lambda metrics: metrics.observe_authentication("failure", "", 0.5),
            'authentication_attempts{result="failure"} 1.0',
        ),
        (
            lambda metrics: metrics.observe_authorization("allowed", 0.5),
            'authorization_attempts_total{result="allowed"} 1.0',
        ),
        (
            lambda metrics: metrics.observe_review("authz", "201", 0.5),
            'apiserver_delegated_authz_request_total{code="201"} 1.0',
        ),
        (
            lambda metrics: metrics.observe_token_lookup("hit", 0.5),
            'authentication_token_cache_request_total{status="hit"} 1.0',
        ),
        (
            lambda metrics: metrics.observe_authentication("success", "ann", 0.5),
            'authenticated_user_requests{username="other"} 1.0',
        ),
        (
            lambda metrics: metrics.observe_authentication("success", "kubelet", 0.5),
            'authenticated_user_requests{username="kubelet"} 1.0',
        ),
    ],
)
def test_an_observation_is_exposed(record: Callable[[ClientMetrics], None], line: str) -> None:
    registry = CollectorRegistry()
    metrics = ClientMetrics(MetricFamilies(registry, CLIENT_FAMILIES))
    metrics.host = "host:6443"
    record(metrics)
    assert line in b"".join(render_metrics(registry)).decode().splitlines()
