"""The contents of a scheduler's pages: gauges, pod explanations, and pod resources while leading."""

import asyncio
import json
from collections.abc import Callable
from typing import TypeVar

import pytest

from extender.app.introspection import (
    count_cached_objects,
    count_in_flight_events,
    count_running_tasks,
    count_unschedulable_pods,
    explain_pod,
    make_gauge_sources,
    render_pod_resource_lines,
)
from extender.app.standalone import SchedulerHooks, StandaloneScheduler
from extender.app.wiring import build_scheduling, make_runtime
from extender.basics.clock import SystemClock
from extender.client.kubeconfig import CredentialSource
from extender.config.feature_gates import FeatureGates
from tests.build import make_node, make_pod
from tests.pod_group_builders import make_group_member, make_pod_group

T = TypeVar("T")
PROFILE = "default-scheduler"


def with_scheduler(inspect: Callable[[StandaloneScheduler], T]) -> T:
    """Return *inspect* of a scheduler with one node, a bound pod, an assumed pod, and two queued pods: one rejected."""

    async def main() -> T:
        scheduler = StandaloneScheduler(
            build_scheduling(),
            CredentialSource(),
            SystemClock(),
            SchedulerHooks(),
            max_in_unschedulable_pods_seconds=300.0,
        )
        cache = scheduler.cache
        cache.add_or_update_node(make_node("n1"))
        cache.add_or_update_pod(make_pod("placed", node="n1", requests={"cpu": "1"}))
        cache.add_or_update_pod(make_pod("assumed"))
        cache.assume(make_pod("assumed"), "n1")
        for name in ("big", "small"):
            pod = make_pod(name, requests={"cpu": "40" if name == "big" else "1"})
            cache.add_or_update_pod(pod)
            scheduler.queue.add(cache.snapshot().make_pod_info(pod), 0.0)
        rejected = scheduler.queue.pop()
        assert rejected is not None
        rejected.unschedulable_plugins = frozenset(("NodeResourcesFit", "NodeAffinity"))
        scheduler.queue.add_unschedulable_if_not_present(rejected, 0.0)
        return inspect(scheduler)

    return asyncio.run(main())


def test_cache_sizes_count_assumed_pods_separately() -> None:
    """Assumed pods count as pods too.

    Source: pkg/scheduler/metrics/metrics.go, CacheSize (1.36).
    """
    assert with_scheduler(count_cached_objects) == {"nodes": 1, "pods": 2, "assumed_pods": 1}


def test_a_queued_pod_counts_for_each_plugin_that_rejected_it() -> None:
    """Gauge `scheduler_unschedulable_pods`, by plugin and profile.

    Source: pkg/scheduler/metrics/metrics.go, unschedulableReasons (1.36).
    """
    assert with_scheduler(count_unschedulable_pods) == {
        ("NodeResourcesFit", PROFILE): 1,
        ("NodeAffinity", PROFILE): 1,
    }


def test_an_in_flight_pod_counts_as_an_event() -> None:
    """Its label is `PodPopped`.

    Source: pkg/scheduler/metrics/metrics.go, InFlightEvents (1.36).
    """

    def inspect(scheduler: StandaloneScheduler) -> object:
        scheduler.queue.pop()
        return count_in_flight_events(scheduler)

    assert with_scheduler(inspect) == {"PodPopped": 1}


def test_pending_pods_are_counted_by_queue() -> None:
    """Gauge `scheduler_pending_pods`, by queue.

    Source: pkg/scheduler/metrics/metrics.go, pendingPods (1.36).
    """
    counts = with_scheduler(lambda scheduler: make_gauge_sources(scheduler).pending_pods())
    assert counts == {"active": 1, "backoff": 0, "unschedulable": 1, "gated": 0}


def test_running_tasks_are_counted_by_operation() -> None:
    """The operation is determined by the name of the coroutine.

    Source: pkg/scheduler/metrics/metrics.go, Goroutines (1.36).
    """

    async def run_binding_cycle() -> None:
        await asyncio.Event().wait()

    async def main() -> object:
        tasks = [asyncio.create_task(run_binding_cycle()) for _ in range(2)]
        await asyncio.sleep(0)
        counts = count_running_tasks()
        for task in tasks:
            task.cancel()
        return counts

    assert asyncio.run(main()) == {"binding": 2, "DefaultPreemption": 0, "prioritizing_extender": 0, "status": 0}


@pytest.mark.parametrize(("leading", "expected"), [(True, True), (False, False)])
def test_only_the_leader_exports_pod_resources(leading: bool, expected: bool) -> None:
    """Page `/metrics/resources`.

    Source: pkg/scheduler/metrics/resources/resources.go, podResourceCollector.CollectWithStability (1.36).
    """
    page = with_scheduler(lambda scheduler: "".join(render_pod_resource_lines(scheduler, leading=leading)))
    assert ('node="n1",pod="placed"' in page) is expected
    assert bool(page) is expected


@pytest.mark.parametrize(
    ("pod", "expected_start"),
    [
        ("big", "Pod default/big\n  fits on none of 1 node\n  0/1 nodes are available: 1 Insufficient cpu."),
        ("small", "Pod default/small\n  fits on"),
        ("placed", "Pod default/placed\n  is on node n1\n"),
    ],
)
def test_a_pod_is_explained(pod: str, expected_start: str) -> None:
    text = with_scheduler(
        lambda scheduler: explain_pod(scheduler, {PROFILE: make_runtime()}, "default", pod, as_json=False)
    )
    assert text is not None
    assert text.startswith(expected_start)


def test_the_json_explanation_has_the_filter_results_of_every_node() -> None:
    text = with_scheduler(
        lambda scheduler: explain_pod(scheduler, {PROFILE: make_runtime()}, "default", "big", as_json=True)
    )
    assert text is not None
    assert json.loads(text)["nodes"]["n1"]["filters"]["NodeResourcesFit"]["reasons"] == ["Insufficient cpu"]


def test_an_unknown_pod_has_no_explanation() -> None:
    assert with_scheduler(lambda scheduler: explain_pod(scheduler, {}, "default", "nope", as_json=False)) is None


def with_gang(inspect: Callable[[StandaloneScheduler], T]) -> T:
    """Return *inspect* of a scheduler with a gang of two pods, of which only one fits."""

    async def main() -> T:
        gates = FeatureGates({"GenericWorkload": True, "GangScheduling": True})
        scheduler = StandaloneScheduler(
            build_scheduling(gates=gates),
            CredentialSource(),
            SystemClock(),
            SchedulerHooks(),
            max_in_unschedulable_pods_seconds=300.0,
        )
        scheduler.cache.add_or_update_node(make_node("n1", allocatable={"cpu": "1", "pods": "9"}))
        scheduler.cache.add_or_update_object(make_pod_group(min_count=2))
        for name in "ab":
            scheduler.cache.add_or_update_pod(make_group_member(name, requests={"cpu": "1"}))
        return inspect(scheduler)

    return asyncio.run(main())


def test_a_member_of_a_gang_is_explained_with_its_gang() -> None:
    """The gang of two does not fit, so its member goes nowhere.

    Source: pkg/scheduler/schedule_one.go, Scheduler.ScheduleOne; pkg/scheduler/schedule_one_podgroup.go,
    Scheduler.podGroupInfoForPod, Scheduler.frameworkForPodGroup, Scheduler.podGroupSchedulingDefaultAlgorithm (1.36).
    """

    def inspect(scheduler: StandaloneScheduler) -> list[str | None]:
        return [
            explain_pod(scheduler, {PROFILE: make_runtime()}, "default", "a", as_json=as_json)
            for as_json in (False, True)
        ]

    text, json_text = with_gang(inspect)
    assert text is not None
    assert json_text is not None
    assert "As a member of pod group default/ring, scheduled together with 1 other pod\n    it is not placed" in text
    group = json.loads(json_text)["podGroup"]
    assert (group["name"], group["members"], group["scheduled"], group["node"]) == ("default/ring", 2, False, None)
