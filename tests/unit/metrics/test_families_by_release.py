"""Metric families differ between the releases as in kube-scheduler."""

from collections.abc import Callable

import pytest
from prometheus_client import CollectorRegistry

from extender.app.wiring import build_setup
from extender.config.feature_gates import FeatureGates
from extender.config.releases import RELEASE_1_36, RELEASE_1_37, Release
from extender.framework.observer import ObservedEvent
from extender.metrics.exposition import make_registry
from extender.metrics.families import MetricFamilies, select_families
from extender.metrics.plugin_metrics import PluginMetrics
from extender.metrics.scheduler_families import SCHEDULER_FAMILIES
from extender.metrics.scheduler_metrics import BuildInfo, SchedulerMetrics, make_scheduler_metrics


def make_metrics(release: Release) -> SchedulerMetrics:
    return make_scheduler_metrics(build_setup(gates=FeatureGates(release=release)).profiles)


def test_1_37_has_more_families_and_replaces_one() -> None:
    """Source: pkg/scheduler/metrics/metrics.go, InitMetrics (1.37)."""
    before = {family.name for family in select_families(SCHEDULER_FAMILIES, RELEASE_1_36)}
    families = {family.name: family for family in select_families(SCHEDULER_FAMILIES, RELEASE_1_37)}

    assert before - families.keys() == {"scheduler_resourceclaim_creates_total"}
    assert {name: families[name].labels for name in families.keys() - before} == {
        "dynamic_resource_allocation_resourceclaim_creates_total": (
            "status", "admin_access", "owner_api_group", "owner_api_kind",
        ),
        "scheduler_queued_entities": ("queue", "type"),
        "scheduler_queue_incoming_entities_total": ("queue", "event", "type"),
        "scheduler_pre_queueing_hint_evaluations_total": ("plugin", "result"),
        "scheduler_batch_rescore_attempts_total": ("profile",),
        "scheduler_batch_rescore_duration_seconds": ("profile",),
        "scheduler_workload_preemption_attempts_total": ("result",),
        "scheduler_workload_preemption_victims": (),
        "scheduler_preemption_workload_disruptions": ("preemptor",),
        "scheduler_preemption_evaluation_duration_seconds": ("preemptor", "result"),
        "scheduler_preemption_execution_duration_seconds": ("preemptor", "result"),
        "scheduler_preemption_pdb_violations_total": ("preemptor",),
        "scheduler_generated_placements_total": ("profile",),
        "scheduler_placement_evaluations_total": ("result", "profile"),
        "scheduler_placement_evaluation_duration_seconds": ("result", "profile"),
    }  # fmt: skip


def test_a_deprecated_family_says_so() -> None:
    """Source: component-base/metrics/opts.go, HistogramOpts.markDeprecated (1.37)."""
    name = "scheduler_preemption_goroutines_duration_seconds"
    registry = CollectorRegistry()
    MetricFamilies(registry, select_families(SCHEDULER_FAMILIES, RELEASE_1_37))
    (help_text,) = [metric.documentation for metric in registry.collect() if metric.name == name]
    assert help_text == "[ALPHA] (Deprecated since 1.37.0) Seconds the evictions of one preemption took."


@pytest.mark.parametrize(
    ("release", "shows_hidden", "is_exposed", "hidden_count"),
    [(RELEASE_1_36, False, True, 0), (RELEASE_1_37, False, False, 1), (RELEASE_1_37, True, True, 0)],
    ids=["1.36 does not deprecate it", "1.37 hides it", "it is shown on request"],
)
def test_a_deprecated_alpha_metric_is_hidden(
    release: Release, shows_hidden: bool, is_exposed: bool, hidden_count: int
) -> None:
    """Source: component-base/metrics/registry.go, shouldHide, kubeRegistry.trackHiddenCollector;
    component-base/metrics/metric.go, lazyMetric.Create (1.37).
    """
    profiles = build_setup(gates=FeatureGates(release=release)).profiles
    metrics = make_scheduler_metrics(profiles, shows_hidden=shows_hidden)
    metrics.set_sources(BuildInfo(release.version, "CPython", "3.13", "linux/amd64", {}), dict)
    page = b"".join(metrics.render()).decode()
    assert ("scheduler_preemption_goroutines_duration_seconds" in page) is is_exposed
    assert f"\nhidden_metrics_total {hidden_count}.0\n" in page
    registered = 'registered_metrics_total{deprecated_version="1.37.0",stability_level="ALPHA"} 1.0'
    assert (registered in page) is shows_hidden, "a hidden metric is not registered"


def test_the_page_of_1_37_has_the_new_series() -> None:
    metrics = make_metrics(RELEASE_1_37)
    metrics.set_sources(
        BuildInfo("1.37.2", "CPython", "3.13", "linux/amd64", {}),
        lambda: {
            "scheduler_pending_pods": {"active": 4, "gated": 2},
            "scheduler_queued_entities": {("active", "podgroup"): 1, ("gated", "pod"): 2},
        },
    )
    metrics.count_queue_move("active", "UnscheduledPodAdd", 3, "podgroup")
    metrics.count_queue_move("active", "UnscheduledPodAdd", 1, "")
    metrics.count_claim_creation(succeeded=True)
    lines = b"".join(metrics.render()).decode().splitlines()

    assert 'scheduler_queued_entities{queue="gated",type="pod"} 2.0' in lines
    assert 'scheduler_queue_incoming_pods_total{event="UnscheduledPodAdd",queue="active"} 4.0' in lines
    family = "scheduler_queue_incoming_entities_total"
    assert [line for line in lines if line.startswith(f"{family}{{")] == [
        f'{family}{{event="UnscheduledPodAdd",queue="active",type="podgroup"}} 1.0'
    ]
    assert 'scheduler_queued_entities{queue="active",type="podgroup"} 1.0' in lines
    assert (
        "dynamic_resource_allocation_resourceclaim_creates_total"
        '{admin_access="false",owner_api_group="",owner_api_kind="Pod",status="success"} 1.0'
    ) in lines
    help_texts = {line.split()[2]: line.split()[3] for line in lines if line.startswith("# HELP ")}
    assert help_texts["scheduler_scheduling_algorithm_duration_seconds"] == "[BETA]"
    assert help_texts["scheduler_plugin_execution_duration_seconds"] == "[BETA]"


@pytest.mark.parametrize(
    ("record", "line"),
    [
        (
            lambda metrics: metrics.observe_preemption("pod", 2, 0, 1),
            'scheduler_preemption_pdb_violations_total{preemptor="pod"} 1.0',
        ),
        (
            lambda metrics: metrics.observe_preemption("podgroup", 5, 2, 0),
            "scheduler_workload_preemption_victims_sum 5.0",
        ),
        (
            lambda metrics: metrics.observe_preemption("compositepodgroup", 7, 2, 0),
            "scheduler_workload_preemption_victims_sum 7.0",
        ),
        (
            lambda metrics: metrics.observe_preemption("podgroup", 5, 2, 0),
            'scheduler_preemption_workload_disruptions_sum{preemptor="podgroup"} 2.0',
        ),
        (
            lambda metrics: metrics.observe_evictions("podgroup", "success", 3.0),
            'scheduler_preemption_execution_duration_seconds_sum{preemptor="podgroup",result="success"} 3.0',
        ),
        (
            lambda metrics: metrics.make_profile_observer("b").observe_event(
                ObservedEvent.PREEMPTION_EVALUATION, ("pod", "Success"), 0.5
            ),
            'scheduler_preemption_evaluation_duration_seconds_sum{preemptor="pod",result="Success"} 0.5',
        ),
        (
            lambda metrics: metrics.make_profile_observer("b").observe_event(
                ObservedEvent.POD_GROUP_PREEMPTION, ("Unschedulable",), 1.0
            ),
            'scheduler_workload_preemption_attempts_total{result="Unschedulable"} 1.0',
        ),
        (
            lambda metrics: metrics.make_profile_observer("b").observe_event(
                ObservedEvent.PLACEMENTS_GENERATED, ("b",), 7
            ),
            'scheduler_generated_placements_total{profile="b"} 7.0',
        ),
        (
            lambda metrics: metrics.make_profile_observer("b").observe_event(
                ObservedEvent.PLACEMENT_EVALUATION, ("feasible", "b"), 0.5
            ),
            'scheduler_placement_evaluations_total{profile="b",result="feasible"} 1.0',
        ),
        (
            lambda metrics: metrics.make_profile_observer("b").observe_event(
                ObservedEvent.PLACEMENT_EVALUATION, ("feasible", "b"), 0.5
            ),
            'scheduler_placement_evaluation_duration_seconds_sum{profile="b",result="feasible"} 0.5',
        ),
    ],
)
def test_preemptions_and_placements_of_1_37_are_exposed(record: Callable[[SchedulerMetrics], None], line: str) -> None:
    registry = make_registry()
    plugin_metrics = PluginMetrics(registry, ["b"], release=RELEASE_1_37)
    metrics = SchedulerMetrics(registry, plugin_metrics, release=RELEASE_1_37)
    record(metrics)
    assert line in b"".join(metrics.render()).decode().splitlines()


def test_the_page_of_1_36_has_no_series_of_1_37() -> None:
    metrics = make_metrics(RELEASE_1_36)
    metrics.count_queue_move("active", "UnschedulablePodAdd", 1, "pod")
    metrics.count_claim_creation(succeeded=False)
    page = b"".join(metrics.render()).decode()

    assert 'scheduler_resourceclaim_creates_total{status="failure"} 1.0\n' in page
    assert "entities" not in page
    assert "dynamic_resource_allocation" not in page
