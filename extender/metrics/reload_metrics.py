"""Metrics of files that are reloaded while the process runs."""

import time

from prometheus_client import CollectorRegistry, Counter, Gauge


class ReloadMetrics:
    """Metrics of reloads; the load at the start counts as successful."""

    def __init__(self, registry: CollectorRegistry) -> None:
        self._reloads = Counter(
            "extender_reloads",
            "Reloads of the configuration or the certificate, by result.",
            ("what", "result"),
            registry=registry,
        )
        self._last_successful = Gauge(
            "extender_last_reload_successful", "Whether the last reload succeeded.", ("what",), registry=registry
        )
        self._last_success_time = Gauge(
            "extender_last_reload_success_timestamp_seconds",
            "Time of the last successful load.",
            ("what",),
            registry=registry,
        )

    def register_source(self, source: str) -> None:
        """Expose the metrics of a reloaded source; its load at the start counts as successful."""
        for result in ("success", "failure"):
            self._reloads.labels(source, result)
        self._set_state(source, succeeded=True)

    def observe_reload(self, source: str, *, succeeded: bool) -> None:
        """Observe a reload of a source."""
        self._reloads.labels(source, "success" if succeeded else "failure").inc()
        self._set_state(source, succeeded=succeeded)

    def _set_state(self, source: str, *, succeeded: bool) -> None:
        self._last_successful.labels(source).set(succeeded)
        if succeeded:
            self._last_success_time.labels(source).set(time.time())
