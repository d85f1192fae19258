"""Metrics of health checks: the page `/metrics/slis`.

Source: cmd/kube-scheduler/app/server.go, installMetricHandler (1.36).
"""

from collections.abc import Iterator
from typing import Final

from prometheus_client import CollectorRegistry, Gauge

from extender.metrics.exposition import render_metrics
from extender.metrics.families import MetricFamilies
from extender.metrics.process_families import HEALTH_FAMILIES

_START_TIME: Final = "process_start_time_seconds"


class HealthMetrics:
    """Counts health checks by name, endpoint and result."""

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
