"""kube-scheduler and our scheduler in the same scenario: equal events and equal label sets of metrics."""

import re
from dataclasses import dataclass
from typing import Any, Final

import pytest

from tests.controlplane import events, scheduling_scenario
from tests.controlplane.control_plane import ADMIN, ControlPlane
from tests.controlplane.process import free_ports
from tests.controlplane.test_same_endpoints import SchedulerEndpoints, serving_flags

CONFIGURATION: Final[dict[str, Any]] = {
    "profiles": [{"pluginConfig": [{"name": "VolumeBinding", "args": {"bindTimeoutSeconds": 2}}]}]
}

Labels = frozenset[tuple[str, str]]

KNOWN_DIFFERENCES: Final = {
    r"scheduler_batch_|scheduler_get_node_hint|scheduler_store_schedule": "there is no opportunistic batching",
    r".*extension_point=Sign": "there is no opportunistic batching",
    r"scheduler_goroutines.operation=(Filter|Score|InterPodAffinity|PodTopologySpread)": "plugins have no goroutines",
    r"rest_client_.*=PUT": "claims and volumes are patched",
    r"rest_client_transport_create_calls_total.result=hit": "connection pools are not shared",
    r"workqueue_": "there are no work queues",
    r"informer_": "there are no shared informers, which have metrics since 1.37",
    r"kubernetes_build_info|version_info": "versions differ",
    r"scheduler_unschedulable_pods|scheduler_inflight_events": "appear after a request for metrics",
    r"scheduler_plugin_execution_duration_seconds": "a random tenth of the calls",
    r"scheduler_queueing_hint_execution.*hint=": "hints are called in random order up to the first Queue",
    r"scheduler_queue_incoming.*event=(AssignedPodDelete|BackoffComplete|PopFrom)": "depends on timing",
    r"rest_client_requests_total.*code=4": "depends on timing",
}
"""Patterns of label sets that our scheduler lacks or may lack in a run, with the reason."""


@dataclass(frozen=True, slots=True)
class ScenarioResult:
    """The result of the scenario.

    Attributes:
        events_by_pod: the events of the pods.
        metrics: the text of /metrics.
    """

    events_by_pod: dict[str, list[tuple[str, ...]]]
    metrics: str


@pytest.fixture(scope="module")
def results(control_plane: ControlPlane) -> tuple[ScenarioResult, ScenarioResult]:
    """Run the scenario with kube-scheduler and with our scheduler."""
    return _run_scenario(control_plane, ours=False), _run_scenario(control_plane, ours=True)


def _run_scenario(plane: ControlPlane, *, ours: bool) -> ScenarioResult:
    with plane.client() as api:
        try:
            events.delete_events(api)
            for obj in [*scheduling_scenario.make_nodes(), *scheduling_scenario.make_cluster_objects()]:
                api.create(obj)
            plane.start_controllers(*scheduling_scenario.CONTROLLERS)
            api.wait_until("PersistentVolume", scheduling_scenario.all_volumes_available, "available volumes")
            endpoints = _start_scheduler(plane, ours=ours)
            scheduling_scenario.run(api)
            scheduling_scenario.wait_for_last_event(api)
            endpoints.get("/metrics", plane.token(ADMIN))  # a request is counted after its response
            return ScenarioResult(
                scheduling_scenario.events_by_pod(api), endpoints.get("/metrics", plane.token(ADMIN))[1]
            )
        finally:
            plane.stop_other_programs()
            api.delete_created()


def _start_scheduler(plane: ControlPlane, *, ours: bool) -> SchedulerEndpoints:
    port = free_ports(1)[0]
    start = plane.start_extender if ours else plane.start_kube_scheduler
    endpoints = SchedulerEndpoints(start(CONFIGURATION, *serving_flags(plane, port)), port)
    endpoints.wait_until_ready()
    return endpoints


def test_the_events_of_all_pods_are_equal(results: tuple[ScenarioResult, ScenarioResult]) -> None:
    """Types, reasons, actions and notes are equal.

    Source: pkg/scheduler/schedule_one.go, Scheduler.finishBinding; pkg/scheduler/framework/preemption/executor.go,
    NewExecutor (1.36).
    """
    upstream, ours = results
    reasons = {row[1] for rows in upstream.events_by_pod.values() for row in rows}
    assert reasons == {"Scheduled", "FailedScheduling", "Preempted", "BindingConditionsPending"}
    assert len(upstream.events_by_pod) == len(scheduling_scenario.PODS) + 7
    assert ours.events_by_pod == upstream.events_by_pod


def test_all_label_values_and_buckets_of_kube_scheduler_exist(results: tuple[ScenarioResult, ScenarioResult]) -> None:
    upstream, ours = (parse_label_sets(result.metrics) for result in results)
    missing = sorted(
        f"{name}{{{', '.join(f'{key}={value}' for key, value in sorted(labels))}}}"
        for name, upstream_sets in upstream.items()
        for labels in upstream_sets - ours.get(name, set())
    )
    assert len(upstream) > 60
    assert [
        label_set for label_set in missing if not any(re.match(pattern, label_set) for pattern in KNOWN_DIFFERENCES)
    ] == []


def parse_label_sets(text: str) -> dict[str, set[Labels]]:
    """Return the label sets of each family with buckets, without those of the Go runtime and without `host`."""
    label_sets: dict[str, set[Labels]] = {}
    for name, suffix, labels in re.findall(r"(?m)^(?!go_)(\w+?)(_bucket|_count|_sum)?(?:\{(.*)\})? \S+$", text):
        if suffix in {"", "_bucket"}:
            values = re.findall(r'(\w+)="((?:[^"\\]|\\.)*)"', labels)
            label_sets.setdefault(name, set()).add(frozenset(pair for pair in values if pair[0] != "host"))
    return label_sets
