"""The buffered histogram exposes what prometheus_client's histogram exposes."""

from random import Random

import pytest
from prometheus_client import CollectorRegistry, Histogram, generate_latest

from extender.metrics.buffered_histogram import BufferedHistogram

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
