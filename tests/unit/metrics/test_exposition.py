"""The registry and its rendering in the Prometheus text format."""

from extender.metrics.exposition import make_registry, render_metrics


def test_the_registry_has_process_metrics_and_no_creation_times() -> None:
    text = b"".join(render_metrics(make_registry())).decode()
    assert "process_cpu_seconds_total " in text
    assert "_created" not in text
