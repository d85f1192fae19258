"""Metrics of health checks."""

from extender.metrics.process_families import HealthMetrics


def test_checks_are_exposed_with_their_last_result_and_their_counts() -> None:
    metrics = HealthMetrics(1700000000.0)
    metrics.observe_check("ping", "healthz", True)
    metrics.observe_check("ping", "healthz", False)
    lines = b"".join(metrics.render()).decode().splitlines()
    assert 'kubernetes_healthcheck{name="ping",type="healthz"} 0.0' in lines
    assert 'kubernetes_healthchecks_total{name="ping",status="success",type="healthz"} 1.0' in lines
    assert 'kubernetes_healthchecks_total{name="ping",status="error",type="healthz"} 1.0' in lines
    assert "process_start_time_seconds 1.7e+09" in lines


def test_a_reset_removes_the_checks_but_not_the_start_time() -> None:
    metrics = HealthMetrics(1700000000.0)
    metrics.observe_check("ping", "readyz", True)
    metrics.reset()
    page = b"".join(metrics.render()).decode()
    assert "kubernetes_healthcheck{" not in page
    assert "process_start_time_seconds 1.7e+09" in page
