"""Metrics of plugins: upstream's names and labels, and the sampling of durations."""

from collections.abc import Iterator

from prometheus_client import CollectorRegistry

from extender.framework.plugin_runner import PluginRunner
from extender.framework.status import Code
from extender.metrics.exposition import render_metrics
from extender.metrics.plugin_metrics import PluginMetrics
from tests.build import make_cluster, make_node, make_pod_info
from tests.fake_plugins import AcceptingFilter


def exposed_lines(registry: CollectorRegistry) -> set[str]:
    return set(b"".join(render_metrics(registry)).decode().splitlines())


def test_every_call_is_counted_and_a_sample_is_timed() -> None:
    registry = CollectorRegistry()
    draws: Iterator[float] = iter([0.05, 0.5, 0.099, 0.1])
    metrics = PluginMetrics(registry, ["default-scheduler"], draws.__next__)
    for seconds in (0.25, 1.0, 0.5, 1.0):
        metrics.observe_plugin_call("NodeAffinity", "Filter", Code.SUCCESS, seconds)
    labels = 'extension_point="Filter",plugin="NodeAffinity"'
    assert {
        f'scheduler_plugin_evaluation_total{{{labels},profile="default-scheduler"}} 4.0',
        f'scheduler_plugin_execution_duration_seconds_count{{{labels},status="Success"}} 2.0',
        f'scheduler_plugin_execution_duration_seconds_sum{{{labels},status="Success"}} 0.75',
    } <= exposed_lines(registry)


def test_points_have_upstream_s_names_and_four_of_them_count_evaluations() -> None:
    registry = CollectorRegistry()
    metrics = PluginMetrics(registry, ["a", "b"], lambda: 0.0)
    metrics.observe_plugin_call("TaintToleration", "NormalizeScore", Code.ERROR, 0.5)
    metrics.observe_extension_point("a", "NormalizeScore", Code.SUCCESS, 0.5)
    lines = exposed_lines(registry)
    call_labels = 'extension_point="ScoreExtensionNormalize",plugin="TaintToleration",status="Error"'
    point_labels = 'extension_point="ScoreExtensionNormalize",profile="a",status="Success"'
    assert f"scheduler_plugin_execution_duration_seconds_count{{{call_labels}}} 1.0" in lines
    assert f"scheduler_framework_extension_point_duration_seconds_count{{{point_labels}}} 1.0" in lines
    assert not any(line.startswith("scheduler_plugin_evaluation_total{") for line in lines)


def test_a_call_with_skip_is_timed_but_is_no_evaluation() -> None:
    registry = CollectorRegistry()
    metrics = PluginMetrics(registry, ["a"], lambda: 0.0)
    for code in (Code.SKIP, Code.SUCCESS, Code.SKIP):
        metrics.observe_plugin_call("NodePorts", "PreFilter", code, 0.5)
    labels = 'extension_point="PreFilter",plugin="NodePorts"'
    assert {
        f'scheduler_plugin_evaluation_total{{{labels},profile="a"}} 1.0',
        f'scheduler_plugin_execution_duration_seconds_count{{{labels},status="Skip"}} 2.0',
    } <= exposed_lines(registry)


def test_the_plugin_runner_reports_to_the_metrics() -> None:
    registry = CollectorRegistry()
    runner = PluginRunner([PluginMetrics(registry, ["a"], lambda: 0.0)])
    cluster = make_cluster(make_node())
    runner.filter(AcceptingFilter(), make_pod_info(cluster=cluster), cluster.snapshot().view(), None)
    labels = 'extension_point="Filter",plugin="AcceptingFilter"'
    assert f'scheduler_plugin_evaluation_total{{{labels},profile="a"}} 1.0' in exposed_lines(registry)
