"""The metric of the age of the cached objects by kind, for all processes that watch a cluster."""

from collections.abc import Callable, Iterator, Mapping
from typing import Final

from prometheus_client import Metric
from prometheus_client.core import GaugeMetricFamily
from prometheus_client.registry import Collector

from extender.metrics.families import Stability, gauge

STALENESS_FAMILY: Final = gauge(
    "extender_cache_staleness_seconds",
    "Time since the last response of the API server for a kind; +Inf before the first.",
    ("kind",),
    stability=Stability.NONE,
)


class StalenessCollector(Collector):
    """Collects the seconds since the last response of the API server when metrics are scraped.

    A reload may add kinds.
    """

    def __init__(self, get_seconds_by_kind: Callable[[], Mapping[str, float]]) -> None:
        """*get_seconds_by_kind* returns the seconds by the name of the kind."""
        self._get_seconds_by_kind = get_seconds_by_kind

    def collect(self) -> Iterator[Metric]:
        """Yield the metric."""
        metric = GaugeMetricFamily(STALENESS_FAMILY.name, STALENESS_FAMILY.help, labels=STALENESS_FAMILY.labels)
        for kind, seconds in self._get_seconds_by_kind().items():
            metric.add_metric([kind], seconds)
        yield metric
