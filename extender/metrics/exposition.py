"""Make a registry with the metrics of the Python process, and render a registry in the Prometheus text format."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from prometheus_client import (
    CollectorRegistry,
    GCCollector,
    Metric,
    PlatformCollector,
    ProcessCollector,
    disable_created_metrics,
    generate_latest,
)
from prometheus_client.registry import Collector

from extender.metrics.process_collector import LinuxProcessCollector

_COUNTERS_WITHOUT_TOTAL: Final = re.compile(rb"\b(authenticated_user_requests|authentication_attempts)_total\b")
"""Counters that kube-scheduler exposes without `_total`, which prometheus_client appends."""

_INTEGER_BOUND: Final = re.compile(rb'(le="[0-9]+)\.0"')


def make_registry() -> CollectorRegistry:
    """Return a registry with the metrics of the Python process, and without `_created` series."""
    disable_created_metrics()  # type: ignore[no-untyped-call]
    registry = CollectorRegistry()
    ProcessCollector(registry=registry)
    PlatformCollector(registry=registry)
    GCCollector(registry=registry)
    registry.register(LinuxProcessCollector())
    return registry


def render_metrics(registry: CollectorRegistry) -> Iterator[bytes]:
    """Yield each metric in the Prometheus text format, with names and bucket bounds as Go's client writes them."""
    for metric in registry.collect():
        text = generate_latest(_SingleMetric(metric))
        yield _COUNTERS_WITHOUT_TOTAL.sub(rb"\1", _INTEGER_BOUND.sub(rb'\1"', text))


@dataclass(frozen=True, slots=True)
class _SingleMetric(Collector):
    """Lets `generate_latest` render one metric."""

    metric: Metric

    def collect(self) -> Iterator[Metric]:
        yield self.metric
