"""Metric families: buckets, children, gauges and reset."""

from random import Random

import pytest
from prometheus_client import CollectorRegistry, Histogram, generate_latest

from extender.metrics.exposition import render_metrics
from extender.metrics.families import BufferedHistogram, MetricFamilies, counter, exponential_buckets, gauge

FAMILIES = (
    counter("pods_total", "Pods.", ("queue",)),
    gauge("size", "Size.", ("type",)),
    counter("starts_total", "Starts."),
)


def exposed_lines(registry: CollectorRegistry) -> list[str]:
    lines = b"".join(render_metrics(registry)).decode().splitlines()
    return [line for line in lines if not line.startswith("#") and "_created" not in line]


def test_buckets_grow_by_their_factor() -> None:
    assert exponential_buckets(1, 2, 4) == (1, 2, 4, 8)


def test_a_gauge_is_zero_for_label_values_that_are_missing_later() -> None:
    registry = CollectorRegistry()
    families = MetricFamilies(registry, FAMILIES)
    families.set_gauges("size", {("nodes",): 3, ("pods",): 5})
    families.set_gauges("size", {("nodes",): 4})
    assert {'size{type="nodes"} 4.0', 'size{type="pods"} 0.0'} <= set(exposed_lines(registry))


def test_a_reset_removes_metrics_with_labels_only() -> None:
    registry = CollectorRegistry()
    families = MetricFamilies(registry, FAMILIES)
    families.increment("pods_total", "active", by=2)
    families.increment("starts_total")
    families.reset()
    assert exposed_lines(registry) == ["starts_total 1.0"]
    families.increment("pods_total", "active")
    assert 'pods_total{queue="active"} 1.0' in exposed_lines(registry)


def test_a_hidden_family_counts_without_being_exposed() -> None:
    registry = CollectorRegistry()
    families = MetricFamilies(registry, FAMILIES, disabled_families=("size", "pods_total"))
    families.increment("pods_total", "active")
    assert "pods_total" in families
    assert exposed_lines(registry) == ["starts_total 0.0"]


def test_the_help_text_starts_with_the_stability_level() -> None:
    registry = CollectorRegistry()
    MetricFamilies(registry, FAMILIES)
    assert "# HELP size [ALPHA] Size." in b"".join(render_metrics(registry)).decode().splitlines()


BOUNDS = (0.25, 0.5, 1, 4)


@pytest.mark.parametrize("count", [0, 1, 255, 256, 257, 1000])
def test_the_exposed_text_is_that_of_prometheus_client(count: int) -> None:
    rng, texts = Random(count), set()
    values = [rng.randrange(24) / 4 for _ in range(count)]  # also on the bounds and above the last one
    for histogram_type in (Histogram, BufferedHistogram):
        registry = CollectorRegistry()
        child = histogram_type("wait_seconds", "Wait.", ("queue",), buckets=BOUNDS, registry=registry).labels("active")
        for value in values:
            child.observe(value)
        lines = generate_latest(registry).decode().splitlines()
        texts.add("\n".join(line for line in lines if "_created" not in line))
    assert len(texts) == 1


def test_values_that_are_observed_between_two_reads_are_counted_once() -> None:
    registry = CollectorRegistry()
    histogram = BufferedHistogram("wait_seconds", "Wait.", buckets=BOUNDS, registry=registry)
    histogram.observe(0.5)
    generate_latest(registry)
    histogram.observe(3)
    generate_latest(registry)
    assert registry.get_sample_value("wait_seconds_bucket", {"le": "0.5"}) == 1
    assert registry.get_sample_value("wait_seconds_count") == 2
    assert registry.get_sample_value("wait_seconds_sum") == 3.5


def test_an_exemplar_is_an_error() -> None:
    histogram = BufferedHistogram("wait_seconds", "Wait.", buckets=BOUNDS, registry=CollectorRegistry())
    with pytest.raises(ValueError, match="exemplars are not supported"):
        histogram.observe(1, {"trace_id": "1"})
