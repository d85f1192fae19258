"""How health checks went: the page `/metrics/slis`. Source: H046."""

from typing import Final

from prometheus_client import CollectorRegistry, Gauge

from extender.observe.families import Families
from extender.observe.metrics import exposition
from extender.observe.process_families import HEALTH_FAMILIES

_START: Final = "process_start_time_seconds"


class CheckMetrics:
    """Counts health checks by name, endpoint and outcome."""

    def __init__(self, started: float) -> None:
        """Nothing checked yet; *started* is when the process began, in seconds since 1970."""
        self._registry = CollectorRegistry()
        self._families = Families(self._registry, HEALTH_FAMILIES)
        Gauge(_START, "[ALPHA] Seconds since 1970 at which the process began.", registry=self._registry).set(started)

    def checked(self, name: str, endpoint: str, well: bool) -> None:
        """A check of `livez`, `healthz` or `readyz` was made."""
        self._families.put("kubernetes_healthcheck", name, endpoint, value=float(well))
        self._families.count("kubernetes_healthchecks_total", name, endpoint, "success" if well else "error")

    def page(self) -> bytes:
        """The page."""
        return exposition(self._registry)

    def reset(self) -> None:
        """Forget what was counted."""
        self._families.reset()
