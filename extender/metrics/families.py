"""Metric families: their declaration, and a set of families in a registry.

Each family is declared once, as data: those of kube-scheduler in `scheduler_families` and `process_families`, and our
own beside their metrics.
"""

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field, replace
from enum import Enum
from functools import partial
from typing import Any, Final

import numpy as np
from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram
from prometheus_client.samples import Sample

from extender.config.releases import Release

_BLOCK_SIZE: Final = 256
"""The number of values of a histogram that are counted at once, because the event loop observes eleven per pod."""


class MetricType(Enum):
    """The type of a metric."""

    COUNTER = "counter"
    GAUGE = "gauge"
    HISTOGRAM = "histogram"


class Stability(Enum):
    """The stability level of a metric in Kubernetes; it prefixes the help text."""

    NONE = ""
    """Kubernetes does not have the metric."""
    INTERNAL = "INTERNAL"
    ALPHA = "ALPHA"
    BETA = "BETA"
    STABLE = "STABLE"


@dataclass(frozen=True, slots=True)
class MetricFamily:
    """A metric family.

    Attributes:
        name: the exposed name; counters end in `_total`.
        help: the help text without the stability level.
        labels: the label names in kube-scheduler's order.
        buckets: the ascending upper bounds of a histogram, without infinity.
        stability: the stability level in kube-scheduler.
        deprecated_version: the release that deprecated the family, such as `1.37.0`; empty if it is not deprecated.
        by_release: by minor release, the attributes that differ there; None: the release does not have the family.
    """

    type: MetricType
    name: str
    help: str
    labels: tuple[str, ...] = ()
    buckets: tuple[float, ...] = ()
    stability: Stability = Stability.ALPHA
    deprecated_version: str = ""
    by_release: Mapping[str, Mapping[str, Any] | None] = field(default_factory=dict)

    @property
    def is_hidden(self) -> bool:
        """Whether kube-scheduler hides the family by default: alpha metrics from the release that deprecates them.

        Source: component-base/metrics/registry.go, shouldHide (1.37).
        """
        return bool(self.deprecated_version) and self.stability is Stability.ALPHA


counter: Final = partial(MetricFamily, MetricType.COUNTER)
gauge: Final = partial(MetricFamily, MetricType.GAUGE)
histogram: Final = partial(MetricFamily, MetricType.HISTOGRAM)
"""Declares a histogram, as `counter` and `gauge` declare the other types: `MetricFamily` without the type."""


def select_families(families: Iterable[MetricFamily], release: Release) -> tuple[MetricFamily, ...]:
    """Return those of *families* that *release* has, as they are there."""
    changes = ((family, family.by_release.get(release.version, {})) for family in families)
    return tuple(replace(family, **change) for family, change in changes if change is not None)


def exponential_buckets(start: float, factor: float, count: int) -> tuple[float, ...]:
    """Return *count* bucket bounds, each *factor* times the previous one, rounded as in Go."""
    bounds = [start]
    while len(bounds) < count:
        bounds.append(bounds[-1] * factor)
    return tuple(bounds)


class MetricFamilies:
    """Metric families in a registry.

    Metrics are cached by family and label values, since prometheus_client's lookup takes a lock.
    """

    def __init__(
        self, registry: CollectorRegistry, families: Iterable[MetricFamily], disabled_families: Collection[str] = ()
    ) -> None:
        """Register *families* except the *disabled_families*, which are counted but not exposed."""
        self._collectors: dict[str, Any] = {
            family.name: _create_collector(family, None if family.name in disabled_families else registry)
            for family in families
        }
        self._children: dict[tuple[str, ...], Any] = {}

    def __contains__(self, name: object) -> bool:
        return name in self._collectors

    def get_child(self, name: str, *labels: str) -> Any:
        """Return the metric of a family with these label values, in the order of the family's labels."""
        key = (name, *labels)
        child = self._children.get(key)
        if child is None:
            collector = self._collectors[name]
            child = self._children[key] = collector.labels(*labels) if labels else collector
        return child

    def increment(self, name: str, *labels: str, by: float = 1.0) -> None:
        """Increment a counter."""
        self.get_child(name, *labels).inc(by)

    def observe(self, name: str, *labels: str, value: float) -> None:
        """Observe a value of a histogram."""
        self.get_child(name, *labels).observe(value)

    def set_gauge(self, name: str, *labels: str, value: float) -> None:
        """Set a gauge."""
        self.get_child(name, *labels).set(value)

    def set_gauges(self, name: str, values: Mapping[tuple[str, ...], float]) -> None:
        """Set a gauge to *values* by label values, and to 0 for other known label values, as kube-scheduler does."""
        for key in [key for key in self._children if key[0] == name and key[1:] not in values]:
            self.set_gauge(*key, value=0)
        for labels, value in values.items():
            self.set_gauge(name, *labels, value=value)

    def reset(self) -> None:
        """Remove all metrics with labels, as kube-scheduler does on DELETE; metrics without labels are not reset.

        Source: cmd/kube-scheduler/app/server.go, installMetricHandler (1.36).
        """
        for key in [key for key in self._children if len(key) > 1]:
            del self._children[key]
        for collector in self._collectors.values():
            if collector._labelnames:  # noqa: SLF001  prometheus_client has no public attribute
                collector.clear()


def _create_collector(family: MetricFamily, registry: CollectorRegistry | None) -> Counter | Gauge | Histogram:
    deprecation = f"(Deprecated since {family.deprecated_version}) " if family.deprecated_version else ""
    stability = f"[{family.stability.value}] " if family.stability.value else ""
    text = f"{stability}{deprecation}{family.help}"
    match family.type:
        case MetricType.COUNTER:
            return Counter(family.name, text, family.labels, registry=registry)
        case MetricType.GAUGE:
            return Gauge(family.name, text, family.labels, registry=registry)
        case MetricType.HISTOGRAM:
            return BufferedHistogram(family.name, text, family.labels, buckets=family.buckets, registry=registry)


class BufferedHistogram(Histogram):
    """A histogram of prometheus_client that counts its values when there are 256 of them, or when it is read.

    prometheus_client takes two locks for each value. Not thread-safe: observe and expose in one thread.
    """

    def _metric_init(self) -> None:
        super()._metric_init()
        self._pending: list[float] = []

    def observe(self, amount: float, exemplar: Any = None) -> None:
        """Observe a value.

        Raises:
            ValueError: there is an exemplar.
        """
        if exemplar is not None:
            raise ValueError("exemplars are not supported")
        pending = self._pending
        pending.append(amount)
        if len(pending) >= _BLOCK_SIZE:
            self._count_pending()

    def _count_pending(self) -> None:
        values = np.array(self._pending, dtype=np.float64)
        self._pending.clear()
        self._sum.inc(float(values.sum()))
        buckets = np.searchsorted(self._upper_bounds, values)
        for index, count in enumerate(np.bincount(buckets).tolist()):
            if count:
                self._buckets[index].inc(count)

    def _child_samples(self) -> Iterable[Sample]:
        if self._pending:
            self._count_pending()
        return super()._child_samples()
