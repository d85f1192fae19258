"""Observations of a standalone scheduler are exposed under kube-scheduler's names."""

from collections.abc import Callable
from typing import Any, cast

import pytest

from extender.config.releases import RELEASE_1_36
from extender.framework.status import Code
from extender.metrics.exposition import make_registry
from extender.metrics.plugin_metrics import PluginMetrics
from extender.metrics.scheduler_metrics import BuildInfo, SchedulerMetrics


def make_metrics(*disabled: str) -> SchedulerMetrics:
    registry = make_registry()
    plugins = PluginMetrics(registry, ["a", "b"], lambda: 0.0, disabled, release=RELEASE_1_36)
    return SchedulerMetrics(registry, plugins, disabled, release=RELEASE_1_36)


def exposed_lines(metrics: SchedulerMetrics) -> set[str]:
    return set(b"".join(metrics.render()).decode().splitlines())


@pytest.mark.parametrize(
    ("record", "line"),
    [
        (
            lambda metrics: metrics.observe_attempt("a", "scheduled", 0.5),
            'scheduler_schedule_attempts_total{profile="a",result="scheduled"} 1.0',
        ),
        (
            lambda metrics: metrics.observe_attempt("a", "error", 0.5),
            'scheduler_scheduling_attempt_duration_seconds_sum{profile="a",result="error"} 0.5',
        ),
        (
            lambda metrics: metrics.observe_scheduling_algorithm(0.25),
            "scheduler_scheduling_algorithm_duration_seconds_sum 0.25",
        ),
        (lambda metrics: metrics.observe_bound_pod(3, 2.0), "scheduler_pod_scheduling_attempts_sum 3.0"),
        (
            lambda metrics: metrics.observe_bound_pod(14, 2.0),
            'scheduler_pod_scheduling_sli_duration_seconds_sum{attempts="14"} 2.0',
        ),
        (
            lambda metrics: metrics.observe_bound_pod(15, 2.0),
            'scheduler_pod_scheduling_sli_duration_seconds_sum{attempts="15+"} 2.0',
        ),
        (lambda metrics: metrics.count_bound_after_flush(), "scheduler_pod_scheduled_after_flush_total 1.0"),
        (
            lambda metrics: metrics.observe_permit_wait("Success", 4.0),
            'scheduler_permit_wait_duration_seconds_sum{result="Success"} 4.0',
        ),
        (
            lambda metrics: metrics.observe_pod_group_attempt("a", "waiting_on_preemption", 0.5),
            'scheduler_podgroup_schedule_attempts_total{profile="a",result="waiting_on_preemption"} 1.0',
        ),
        (
            lambda metrics: metrics.observe_pod_group_attempt("a", "scheduled", 0.5),
            'scheduler_podgroup_scheduling_attempt_duration_seconds_sum{profile="a",result="scheduled"} 0.5',
        ),
        (
            lambda metrics: metrics.observe_pod_group_algorithm(0.25),
            "scheduler_podgroup_scheduling_algorithm_duration_seconds_sum 0.25",
        ),
        (lambda metrics: metrics.observe_preemption("pod", 2, 0, 1), "scheduler_preemption_victims_sum 2.0"),
        (lambda metrics: metrics.observe_preemption("podgroup", 3, 1, 1), "scheduler_preemption_victims_sum 3.0"),
        (
            lambda metrics: metrics.observe_evictions("pod", "error", 1.0),
            'scheduler_preemption_goroutines_execution_total{result="error"} 1.0',
        ),
        (
            lambda metrics: metrics.count_queue_move("backoff", "NodeAdd", 1, "pod"),
            'scheduler_queue_incoming_pods_total{event="NodeAdd",queue="backoff"} 1.0',
        ),
        (
            lambda metrics: metrics.observe_queueing_hint("NodePorts", "AssignedPodDelete", "QueueSkip", 0.5),
            "scheduler_queueing_hint_execution_duration_seconds_sum"
            '{event="AssignedPodDelete",hint="QueueSkip",plugin="NodePorts"} 0.5',
        ),
        (
            lambda metrics: metrics.count_claim_creation(succeeded=False),
            'scheduler_resourceclaim_creates_total{status="failure"} 1.0',
        ),
        (
            lambda metrics: metrics.observe_device_binding("b", "gpu.example.com", "timeout", 2.0, count_binding=True),
            "scheduler_dra_bindingconditions_allocations_total"
            '{driver="gpu.example.com",profile="b",status="timeout"} 1.0',
        ),
        (
            lambda metrics: metrics.make_profile_observer("b").observe_plugin_call(
                "VolumeBinding", "PreBind", Code.ERROR, 0.1
            ),
            'scheduler_volume_scheduling_stage_error_total{operation="bind"} 1.0',
        ),
        (lambda metrics: metrics.set_leading(leading=True), 'leader_election_master_status{name="kube-scheduler"} 1.0'),
        (
            lambda metrics: metrics.make_profile_observer("b").observe_plugin_call(
                "NodeName", "Filter", Code.SUCCESS, 0.1
            ),
            'scheduler_plugin_evaluation_total{extension_point="Filter",plugin="NodeName",profile="b"} 1.0',
        ),
        (
            lambda metrics: metrics.make_profile_observer("b").observe_plugin_call(
                "DefaultPreemption", "PostFilter", Code.UNSCHEDULABLE, 0.1
            ),
            "scheduler_preemption_attempts_total 1.0",
        ),
    ],
)
def test_an_observation_is_exposed(record: Callable[[SchedulerMetrics], None], line: str) -> None:
    metrics = make_metrics()
    record(metrics)
    assert line in exposed_lines(metrics)


def test_the_handling_of_an_event_is_measured(monkeypatch: pytest.MonkeyPatch) -> None:
    times = iter((10.0, 10.5))
    monkeypatch.setattr("prometheus_client.context_managers.default_timer", lambda: next(times))
    metrics = make_metrics()
    with metrics.time_event_handling("NodeAdd"):
        pass
    assert 'scheduler_event_handling_duration_seconds_sum{event="NodeAdd"} 0.5' in exposed_lines(metrics)


def test_gauges_are_read_at_rendering_and_missing_label_values_are_zero() -> None:
    metrics = make_metrics()
    rejected = {("NodeAffinity", "a"): 2, ("NodePorts", "a"): 1}
    gauges = {
        "scheduler_pending_pods": {"active": 1, "gated": 2},
        "scheduler_cache_size": {"nodes": 3},
        "scheduler_unschedulable_pods": rejected,
        "scheduler_inflight_events": {"PodPopped": 4},
        "scheduler_goroutines": {"binding": 5},
    }
    build_info = BuildInfo("1.36.0", "CPython", "3.11", "linux/amd64", {("Gate", "BETA"): True})
    metrics.set_sources(build_info, lambda: cast("Any", gauges))
    assert {
        'scheduler_pending_pods{queue="gated"} 2.0',
        'scheduler_cache_size{type="nodes"} 3.0',
        'scheduler_unschedulable_pods{plugin="NodePorts",profile="a"} 1.0',
        'scheduler_inflight_events{event="PodPopped"} 4.0',
        'scheduler_goroutines{operation="binding"} 5.0',
        'kubernetes_feature_enabled{name="Gate",stage="BETA"} 1.0',
        'version_info{binary="1.36.0",component="kube",emulation="1.36",min_compat="1.35"} 1.0',
        'registered_metrics_total{deprecated_version="",stability_level="INTERNAL"} 1.0',
    } <= exposed_lines(metrics)
    del rejected["NodePorts", "a"]
    assert 'scheduler_unschedulable_pods{plugin="NodePorts",profile="a"} 0.0' in exposed_lines(metrics)


def test_a_reset_removes_labelled_metrics_and_counting_continues() -> None:
    metrics = make_metrics()
    for _ in range(2):
        metrics.observe_attempt("a", "scheduled", 0.5)
        metrics.observe_scheduling_algorithm(0.5)
        metrics.make_profile_observer("a").observe_plugin_call("NodeName", "Filter", Code.SUCCESS, 0.1)
    metrics.reset()
    metrics.observe_attempt("a", "scheduled", 0.5)
    assert 'scheduler_schedule_attempts_total{profile="a",result="scheduled"} 1.0' in exposed_lines(metrics)
    assert "scheduler_scheduling_algorithm_duration_seconds_count 2.0" in exposed_lines(metrics)
    assert not any(line.startswith("scheduler_plugin_evaluation_total{") for line in exposed_lines(metrics))


def test_a_disabled_family_counts_without_being_exposed() -> None:
    """Source: component-base/metrics/metric.go, lazyMetric.preprocessMetric, which hides it (1.37)."""
    metrics = make_metrics("scheduler_schedule_attempts_total", "scheduler_plugin_evaluation_total")
    metrics.observe_attempt("a", "scheduled", 0.5)
    metrics.make_profile_observer("a").observe_plugin_call("NodeName", "Filter", Code.SUCCESS, 0.1)
    page = b"".join(metrics.render()).decode()
    assert "scheduler_schedule_attempts_total" not in page
    assert "scheduler_plugin_evaluation_total" not in page
    assert "disabled_metrics_total 2.0" in page
    assert "\nhidden_metrics_total 2.0\n" in page


def test_families_of_a_disabled_feature_gate_are_not_exposed() -> None:
    """Source: pkg/scheduler/metrics/metrics.go, AsyncAPIPendingCalls, ResourceClaimCreatesTotal,
    DRABindingConditionsAllocationsTotal (1.36).
    """
    registry = make_registry()
    metrics = SchedulerMetrics(registry, PluginMetrics(registry, ["a"]), gates={"SchedulerQueueingHints"})
    metrics.observe_pod_group_algorithm(0.25)
    page = b"".join(metrics.render()).decode()
    shown = {line.split()[2] for line in page.splitlines() if line.startswith("# TYPE scheduler_")}
    assert {"scheduler_inflight_events", "scheduler_pending_pods", "scheduler_preemption_victims"} <= shown
    for part in ("podgroup", "async_api", "preemption_goroutines", "resourceclaim", "bindingconditions", "placement"):
        assert not [name for name in shown if part in name], part
    assert "\ndisabled_metrics_total 0.0\n" in page
