"""The contents of a scheduler's pages: gauges, pod explanations, and pod resources while leading."""

import asyncio
from collections.abc import Callable
from typing import TypeVar

import pytest

from extender.app.introspection import (
    count_cached_objects,
    count_in_flight_events,
    count_running_tasks,
    count_unschedulable_pods,
    read_gauges,
    render_pod_resource_lines,
)
from extender.app.standalone import StandaloneScheduler
from extender.app.wiring import build_setup
from extender.basics.clock import SystemClock
from extender.client.kubeconfig import CredentialSource
from extender.metrics.scheduler_metrics import make_scheduler_metrics
from extender.queueing.queued_entities import QueuedPodInfo
from tests.build import make_node, make_pod

T = TypeVar("T")
PROFILE = "default-scheduler"


def with_scheduler(inspect: Callable[[StandaloneScheduler], T]) -> T:
    """Return *inspect* of a scheduler with one node, a bound pod, an assumed pod, and two queued pods: one rejected."""

    async def main() -> T:
        setup = build_setup()
        scheduler = StandaloneScheduler(
            setup,
            CredentialSource(),
            SystemClock(),
            make_scheduler_metrics(setup.profiles),
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
        assert isinstance(rejected, QueuedPodInfo)
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
    counts = with_scheduler(lambda scheduler: read_gauges(scheduler)["scheduler_pending_pods"])
    assert counts == {"active": 1, "backoff": 0, "unschedulable": 1, "gated": 0, "incomplete": 0, "pending": 0}


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
