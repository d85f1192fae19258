"""Metric families: what one is called, its labels, buckets and stability; and a set of them at work.

A family is declared once, as data, in `scheduler_families` or `process_families`; nothing else names a metric of
kube-scheduler.
"""

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from enum import Enum
from typing import Any

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram


class Kind(Enum):
    """What a family holds."""

    COUNTER = "counter"
    GAUGE = "gauge"
    HISTOGRAM = "histogram"


class Stability(Enum):
    """What Kubernetes promises of a family's name and labels; stands in front of its help text."""

    INTERNAL = "INTERNAL"
    ALPHA = "ALPHA"
    BETA = "BETA"
    STABLE = "STABLE"


@dataclass(frozen=True, slots=True)
class Family:
    """One metric family.

    Attributes:
        name: as it stands on the page; counters with their `_total`.
        kind: what it holds.
        help: what it means, without the stability.
        labels: in kube-scheduler's order.
        buckets: upper bounds, ascending, without infinity; only of histograms.
        stability: as upstream declares it.
    """

    name: str
    kind: Kind
    help: str
    labels: tuple[str, ...] = ()
    buckets: tuple[float, ...] = ()
    stability: Stability = Stability.ALPHA


def exponential(start: float, factor: float, count: int) -> list[float]:
    """*count* bucket bounds, each *factor* times the one before, rounded as Go rounds them."""
    bounds = [start]
    while len(bounds) < count:
        bounds.append(bounds[-1] * factor)
    return bounds


class Families:
    """Families in a registry. Looks children up once each: asking prometheus_client takes a lock and longer."""

    __slots__ = ("_children", "_collectors")

    def __init__(self, registry: CollectorRegistry, families: Iterable[Family], hidden: Collection[str] = ()) -> None:
        """Register all of *families* with *registry*, but those *hidden*: they count and are not shown."""
        self._collectors: dict[str, Any] = {
            family.name: _collector(family, None if family.name in hidden else registry) for family in families
        }
        self._children: dict[tuple[str, ...], Any] = {}

    def __contains__(self, name: object) -> bool:
        return name in self._collectors

    def child(self, name: str, *labels: str) -> Any:
        """The one metric of the family *name* with these label values, in the order of the family's labels."""
        key = (name, *labels)
        found = self._children.get(key)
        if found is None:
            collector = self._collectors[name]
            found = self._children[key] = collector.labels(*labels) if labels else collector
        return found

    def count(self, name: str, *labels: str, by: float = 1.0) -> None:
        """Add *by* to a counter."""
        self.child(name, *labels).inc(by)

    def observe(self, name: str, *labels: str, value: float) -> None:
        """Put *value* into a histogram."""
        self.child(name, *labels).observe(value)

    def put(self, name: str, *labels: str, value: float) -> None:
        """Set a gauge."""
        self.child(name, *labels).set(value)

    def put_all(self, name: str, values: Mapping[tuple[str, ...], float]) -> None:
        """Set a gauge for these label values, and to 0 for all others it had; kube-scheduler forgets none either."""
        for key in [key for key in self._children if key[0] == name and key[1:] not in values]:
            self.put(*key, value=0)
        for labels, value in values.items():
            self.put(name, *labels, value=value)

    def reset(self) -> None:
        """Forget every metric that has labels, as kube-scheduler does on DELETE; the others go on. Source: H046."""
        for key in [key for key in self._children if len(key) > 1]:
            del self._children[key]
        for collector in self._collectors.values():
            if collector._labelnames:  # noqa: SLF001  prometheus_client has no other way to ask
                collector.clear()


def _collector(family: Family, registry: CollectorRegistry | None) -> Counter | Gauge | Histogram:
    text = f"[{family.stability.value}] {family.help}"
    match family.kind:
        case Kind.COUNTER:
            return Counter(family.name, text, family.labels, registry=registry)
        case Kind.GAUGE:
            return Gauge(family.name, text, family.labels, registry=registry)
        case Kind.HISTOGRAM:
            return Histogram(family.name, text, family.labels, buckets=family.buckets, registry=registry)
