"""Make a registry with the metrics of the Python process, and render a registry in the Prometheus text format."""

import logging
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from prometheus_client import (
    REGISTRY,
    CollectorRegistry,
    Metric,
    disable_created_metrics,
    generate_latest,
)
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily
from prometheus_client.registry import Collector

from extender.metrics.families import Stability, gauge

log = logging.getLogger("extender.metrics")

_COUNTERS_WITHOUT_TOTAL: Final = re.compile(rb"\b(authenticated_user_requests|authentication_attempts)_total\b")
"""Counters that kube-scheduler exposes without `_total`, which prometheus_client appends."""

_INTEGER_BOUND: Final = re.compile(rb'(le="[0-9]+)\.0"')
_UNLIMITED: Final = float(2**64 - 1)


def make_registry() -> CollectorRegistry:
    """Return a registry with the metrics of the Python process and of plugins, and without `_created` series.

    Plugins register metrics in the default registry of prometheus_client, which has those of the process too.
    """
    disable_created_metrics()  # type: ignore[no-untyped-call]
    registry = CollectorRegistry()
    registry.register(DefaultRegistryCollector())
    registry.register(LinuxProcessCollector())
    return registry


class DefaultRegistryCollector(Collector):
    """Collects the metrics of the default registry of prometheus_client when metrics are scraped."""

    def collect(self) -> Iterator[Metric]:
        """Yield the metrics up to one that raises. Metrics of plugins must not take our own with them."""
        try:
            yield from REGISTRY.collect()
        except Exception:
            log.exception("a metric of a plugin cannot be read; the metrics registered after it are missing")


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


class LinuxProcessCollector(Collector):
    """Collects what prometheus_client lacks from Linux's /proc: network traffic and the address space limit.

    It yields no metrics on other systems. Traffic is counted per network namespace.
    """

    def __init__(self, proc: Path = Path("/proc/self")) -> None:
        self._proc = proc

    def collect(self) -> Iterator[Metric]:
        """Yield the families whose values are available."""
        counters = parse_netstat(self._read("net/netstat"))
        for counter, name, help_text in (
            ("InOctets", "process_network_receive_bytes", "Bytes received over the network."),
            ("OutOctets", "process_network_transmit_bytes", "Bytes sent over the network."),
        ):
            if counter in counters:
                yield CounterMetricFamily(name, help_text, value=counters[counter])
        limit = parse_address_space_limit(self._read("limits"))
        if limit is not None:
            yield GaugeMetricFamily("process_virtual_memory_max_bytes", "Bytes that may be addressed.", value=limit)

    def _read(self, name: str) -> str:
        try:
            return (self._proc / name).read_text()
        except OSError:
            return ""


def parse_netstat(netstat: str) -> dict[str, float]:
    """Return the IP counters of /proc/self/net/netstat, which has a line of names and a line of values."""
    lines = [line.split()[1:] for line in netstat.splitlines() if line.startswith("IpExt:")]
    if len(lines) != 2:
        return {}
    return {name: float(value) for name, value in zip(*lines, strict=False)}


def parse_address_space_limit(limits: str) -> float | None:
    """Return the soft limit of the address space in bytes from /proc/self/limits; None if it is missing."""
    for line in limits.splitlines():
        if line.startswith("Max address space"):
            soft_limit = line.removeprefix("Max address space").split()[0]
            return _UNLIMITED if soft_limit == "unlimited" else float(soft_limit)
    return None


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
