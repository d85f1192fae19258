"""Metrics of files that are read again while the process runs."""

import time

from prometheus_client import CollectorRegistry, Counter, Gauge


class ReloadMetrics:
    """Counts what is read again; what was read at the start counts as read well."""

    def __init__(self, registry: CollectorRegistry) -> None:
        self._count = Counter(
            "extender_reloads",
            "Changes of the configuration or the certificate that were taken over (success), or not (failure).",
            ("what", "result"),
            registry=registry,
        )
        self._well = Gauge(
            "extender_last_reload_successful",
            "Whether what the files hold now is in force.",
            ("what",),
            registry=registry,
        )
        self._at = Gauge(
            "extender_last_reload_success_timestamp_seconds",
            "When what is in force was read.",
            ("what",),
            registry=registry,
        )

    def watched(self, what: str) -> None:
        """From now on *what* is kept fresh."""
        for result in ("success", "failure"):
            self._count.labels(what, result)
        self._stands(what, well=True)

    def reloaded(self, what: str, *, well: bool) -> None:
        """*what* was read again, and is in force if that went well."""
        self._count.labels(what, "success" if well else "failure").inc()
        self._stands(what, well=well)

    def _stands(self, what: str, *, well: bool) -> None:
        self._well.labels(what).set(well)
        if well:
            self._at.labels(what).set(time.time())
