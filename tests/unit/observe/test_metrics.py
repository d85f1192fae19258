"""Metrics of plugins: upstream's names and labels, one call in ten timed."""

from collections.abc import Iterator

from prometheus_client import CollectorRegistry

from extender.framework.runner import Runner
from extender.framework.verdict import Code
from extender.observe.families import exponential
from extender.observe.metrics import PluginMetrics, exposition, new_registry
from tests.build import a_cluster, a_node, a_query
from tests.fake_plugins import AcceptsAll


def page(registry: CollectorRegistry) -> set[str]:
    return set(exposition(registry).decode().splitlines())


def test_buckets_grow_by_their_factor() -> None:
    assert exponential(1, 2, 4) == [1, 2, 4, 8]


def test_every_call_is_counted_and_those_that_chance_picks_are_timed() -> None:
    registry = CollectorRegistry()
    chances: Iterator[float] = iter([0.05, 0.5, 0.099, 0.1])
    metrics = PluginMetrics(registry, ["default-scheduler"], chances.__next__)
    for seconds in (0.25, 1.0, 0.5, 1.0):
        metrics.called("NodeAffinity", "Filter", Code.SUCCESS, seconds)
    labels = 'extension_point="Filter",plugin="NodeAffinity"'
    assert {
        f'scheduler_plugin_evaluation_total{{{labels},profile="default-scheduler"}} 4.0',
        f'scheduler_plugin_execution_duration_seconds_count{{{labels},status="Success"}} 2.0',
        f'scheduler_plugin_execution_duration_seconds_sum{{{labels},status="Success"}} 0.75',
    } <= page(registry)


def test_points_have_upstream_s_names_and_only_four_of_them_are_evaluations() -> None:
    registry = CollectorRegistry()
    metrics = PluginMetrics(registry, ["a", "b"], lambda: 0.0)
    metrics.called("TaintToleration", "NormalizeScore", Code.ERROR, 0.5)
    metrics.passed("a", "NormalizeScore", Code.SUCCESS, 0.5)
    lines = page(registry)
    timed = 'extension_point="ScoreExtensionNormalize",plugin="TaintToleration",status="Error"'
    passed = 'extension_point="ScoreExtensionNormalize",profile="a",status="Success"'
    assert f"scheduler_plugin_execution_duration_seconds_count{{{timed}}} 1.0" in lines
    assert f"scheduler_framework_extension_point_duration_seconds_count{{{passed}}} 1.0" in lines
    assert not any(line.startswith("scheduler_plugin_evaluation_total{") for line in lines)


def test_the_runner_reports_to_it() -> None:
    registry = CollectorRegistry()
    runner = Runner(PluginMetrics(registry, ["a"], lambda: 0.0))
    cluster = a_cluster(a_node())
    runner.filter(AcceptsAll(), a_query(cluster=cluster), cluster.snapshot().view(), None)
    labels = 'extension_point="Filter",plugin="AcceptsAll"'
    assert f'scheduler_plugin_evaluation_total{{{labels},profile="a"}} 1.0' in page(registry)


def test_the_page_holds_the_process_s_own_metrics_and_no_creation_times() -> None:
    text = exposition(new_registry()).decode()
    assert "process_cpu_seconds_total " in text
    assert "_created" not in text
