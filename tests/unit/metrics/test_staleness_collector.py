"""The metric of the age of the cached objects."""

from prometheus_client import CollectorRegistry

from extender.metrics.exposition import render_metrics
from extender.metrics.staleness_collector import StalenessCollector


def test_a_page_has_the_current_seconds_of_the_current_kinds() -> None:
    registry, seconds_by_kind = CollectorRegistry(), {"Pod": float("inf")}
    registry.register(StalenessCollector(lambda: seconds_by_kind))
    head = (
        "# HELP extender_cache_staleness_seconds "
        "Time since the last response of the API server for a kind; +Inf before the first.\n"
        "# TYPE extender_cache_staleness_seconds gauge\n"
    )
    assert b"".join(render_metrics(registry)).decode() == head + 'extender_cache_staleness_seconds{kind="Pod"} +Inf\n'
    seconds_by_kind |= {"Pod": 1.5, "Node": 3.0}
    assert b"".join(render_metrics(registry)).decode() == (
        head + 'extender_cache_staleness_seconds{kind="Pod"} 1.5\nextender_cache_staleness_seconds{kind="Node"} 3.0\n'
    )
