"""What a standalone scheduler tells of itself ends up under kube-scheduler's names."""

from collections.abc import Callable

import pytest

from extender.client.transport import Try
from extender.framework.verdict import Code
from extender.observe.metrics import PluginMetrics, new_registry
from extender.observe.scheduling import Build, Figures, SchedulerMetrics


def metrics(*hidden: str) -> SchedulerMetrics:
    registry = new_registry()
    plugins = PluginMetrics(registry, ["a", "b"], lambda: 0.0, hidden)
    return SchedulerMetrics(registry, plugins, hidden)


def lines(told: SchedulerMetrics) -> set[str]:
    return set(told.page().decode().splitlines())


@pytest.mark.parametrize(
    ("tell", "line"),
    [
        (
            lambda m: m.attempted("a", "scheduled", 0.5),
            'scheduler_schedule_attempts_total{profile="a",result="scheduled"} 1.0',
        ),
        (
            lambda m: m.attempted("a", "error", 0.5),
            'scheduler_scheduling_attempt_duration_seconds_sum{profile="a",result="error"} 0.5',
        ),
        (lambda m: m.decided(0.25), "scheduler_scheduling_algorithm_duration_seconds_sum 0.25"),
        (lambda m: m.bound(3, 2.0), "scheduler_pod_scheduling_attempts_sum 3.0"),
        (lambda m: m.bound(14, 2.0), 'scheduler_pod_scheduling_sli_duration_seconds_sum{attempts="14"} 2.0'),
        (lambda m: m.bound(15, 2.0), 'scheduler_pod_scheduling_sli_duration_seconds_sum{attempts="15+"} 2.0'),
        (lambda m: m.bound_after_flush(), "scheduler_pod_scheduled_after_flush_total 1.0"),
        (lambda m: m.waited("Success", 4.0), 'scheduler_permit_wait_duration_seconds_sum{result="Success"} 4.0'),
        (
            lambda m: m.group_attempted("a", "waiting_on_preemption", 0.5),
            'scheduler_podgroup_schedule_attempts_total{profile="a",result="waiting_on_preemption"} 1.0',
        ),
        (
            lambda m: m.group_attempted("a", "scheduled", 0.5),
            'scheduler_podgroup_scheduling_attempt_duration_seconds_sum{profile="a",result="scheduled"} 0.5',
        ),
        (lambda m: m.group_decided(0.25), "scheduler_podgroup_scheduling_algorithm_duration_seconds_sum 0.25"),
        (lambda m: m.preempted(2), "scheduler_preemption_victims_sum 2.0"),
        (lambda m: m.evicted("error", 1.0), 'scheduler_preemption_goroutines_execution_total{result="error"} 1.0'),
        (
            lambda m: m.moved("backoff", "NodeAdd"),
            'scheduler_queue_incoming_pods_total{event="NodeAdd",queue="backoff"} 1.0',
        ),
        (
            lambda m: m.hinted("NodePorts", "AssignedPodDelete", "QueueSkip", 0.5),
            "scheduler_queueing_hint_execution_duration_seconds_sum"
            '{event="AssignedPodDelete",hint="QueueSkip",plugin="NodePorts"} 0.5',
        ),
        (lambda m: m.handled("NodeAdd", 0.5), 'scheduler_event_handling_duration_seconds_sum{event="NodeAdd"} 0.5'),
        (lambda m: m.created_claim(well=False), 'scheduler_resourceclaim_creates_total{status="failure"} 1.0'),
        (
            lambda m: m.requested(Try("GET", 0, code=200, seconds=0.5)),
            'rest_client_requests_total{code="200",host="host:6443",method="GET"} 1.0',
        ),
        (
            lambda m: m.requested(Try("GET", 0, seconds=0.5)),
            'rest_client_requests_total{code="<error>",host="host:6443",method="GET"} 1.0',
        ),
        (
            lambda m: m.requested(Try("PUT", 0, again=True, code=503)),
            'rest_client_request_retries_total{code="503",host="host:6443",verb="PUT"} 1.0',
        ),
        (
            lambda m: m.requested(Try("PUT", 300, waited=2.0)),
            'rest_client_rate_limiter_duration_seconds_sum{host="host:6443",verb="PUT"} 2.0',
        ),
        (
            lambda m: m.requested(Try("PUT", 300)),
            'rest_client_request_size_bytes_sum{host="host:6443",verb="PUT"} 300.0',
        ),
        (
            lambda m: m.requested(Try("PUT", 0, received=500)),
            'rest_client_response_size_bytes_sum{host="host:6443",verb="PUT"} 500.0',
        ),
        (
            lambda m: m.attached("b", "gpu.example.com", "timeout", 2.0, counts=True),
            "scheduler_dra_bindingconditions_allocations_total"
            '{driver="gpu.example.com",profile="b",status="timeout"} 1.0',
        ),
        (lambda m: m.fetched("ok"), 'authentication_token_cache_fetch_total{status="ok"} 1.0'),
        (
            lambda m: m.observer("b").called("VolumeBinding", "PreBind", Code.ERROR, 0.1),
            'scheduler_volume_scheduling_stage_error_total{operation="bind"} 1.0',
        ),
        (
            lambda m: m.recognised("success", "ann@example.com", 0.5),
            'authenticated_user_requests{username="email_id"} 1.0',
        ),
        (lambda m: m.recognised("failure", "", 0.5), 'authentication_attempts{result="failure"} 1.0'),
        (lambda m: m.judged("allowed", 0.5), 'authorization_attempts_total{result="allowed"} 1.0'),
        (lambda m: m.leads(leading=True), 'leader_election_master_status{name="kube-scheduler"} 1.0'),
        (lambda m: m.reviewed("authz", "201", 0.5), 'apiserver_delegated_authz_request_total{code="201"} 1.0'),
        (
            lambda m: m.observer("b").called("NodeName", "Filter", Code.SUCCESS, 0.1),
            'scheduler_plugin_evaluation_total{extension_point="Filter",plugin="NodeName",profile="b"} 1.0',
        ),
        (
            lambda m: m.observer("b").called("DefaultPreemption", "PostFilter", Code.UNSCHEDULABLE, 0.1),
            "scheduler_preemption_attempts_total 1.0",
        ),
    ],
)
def test_what_is_told_stands_on_the_page(tell: Callable[[SchedulerMetrics], None], line: str) -> None:
    told = metrics()
    told.host = "host:6443"
    tell(told)
    assert line in lines(told)


def test_states_are_asked_for_when_the_page_is_and_what_is_gone_is_zero() -> None:
    told = metrics()
    rejected = {("NodeAffinity", "a"): 2, ("NodePorts", "a"): 1}
    figures = Figures(
        pending=lambda: {"active": 1, "gated": 2},
        cached=lambda: {"nodes": 3},
        rejected=lambda: rejected,
        in_flight=lambda: {"PodPopped": 4},
        running=lambda: {"binding": 5},
    )
    told.tells(Build("1.36.0", "CPython", "3.11", "linux/amd64", {("Gate", "BETA"): True}), figures)
    assert {
        'scheduler_pending_pods{queue="gated"} 2.0',
        'scheduler_cache_size{type="nodes"} 3.0',
        'scheduler_unschedulable_pods{plugin="NodePorts",profile="a"} 1.0',
        'scheduler_inflight_events{event="PodPopped"} 4.0',
        'scheduler_goroutines{operation="binding"} 5.0',
        'kubernetes_feature_enabled{name="Gate",stage="BETA"} 1.0',
        'version_info{binary="1.36.0",component="kube",emulation="1.36",min_compat="1.35"} 1.0',
        'registered_metrics_total{deprecated_version="",stability_level="INTERNAL"} 1.0',
    } <= lines(told)
    del rejected["NodePorts", "a"]
    assert 'scheduler_unschedulable_pods{plugin="NodePorts",profile="a"} 0.0' in lines(told)


def test_a_reset_forgets_what_has_labels_and_counting_goes_on() -> None:
    told = metrics()
    for _ in range(2):
        told.attempted("a", "scheduled", 0.5)
        told.decided(0.5)
        told.observer("a").called("NodeName", "Filter", Code.SUCCESS, 0.1)
    told.reset()
    told.attempted("a", "scheduled", 0.5)
    assert 'scheduler_schedule_attempts_total{profile="a",result="scheduled"} 1.0' in lines(told)
    assert "scheduler_scheduling_algorithm_duration_seconds_count 2.0" in lines(told)
    assert not any(line.startswith("scheduler_plugin_evaluation_total{") for line in lines(told))


def test_a_disabled_family_counts_and_is_not_shown() -> None:
    told = metrics("scheduler_schedule_attempts_total", "scheduler_plugin_evaluation_total")
    told.attempted("a", "scheduled", 0.5)
    told.observer("a").called("NodeName", "Filter", Code.SUCCESS, 0.1)
    page = told.page().decode()
    assert "scheduler_schedule_attempts_total" not in page
    assert "scheduler_plugin_evaluation_total" not in page
    assert "disabled_metrics_total 2.0" in page


def test_families_of_a_feature_gate_that_is_off_are_not_shown() -> None:
    """Source: H030 to H036."""
    registry = new_registry()
    told = SchedulerMetrics(registry, PluginMetrics(registry, ["a"]), gates={"SchedulerQueueingHints"})
    told.group_decided(0.25)
    page = told.page().decode()
    shown = {line.split()[2] for line in page.splitlines() if line.startswith("# TYPE scheduler_")}
    assert {"scheduler_inflight_events", "scheduler_pending_pods", "scheduler_preemption_victims"} <= shown
    for part in ("podgroup", "async_api", "preemption_goroutines", "resourceclaim", "bindingconditions"):
        assert not [name for name in shown if part in name], part
    assert "\ndisabled_metrics_total 0.0\n" in page
