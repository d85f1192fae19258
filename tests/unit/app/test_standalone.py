"""Pods that return to the queue of a standalone scheduler."""

import asyncio

from extender.app.standalone import StandaloneScheduler
from extender.app.wiring import build_setup
from extender.basics.clock import SystemClock
from extender.client.kubeconfig import CredentialSource
from extender.config.feature_gates import FeatureGates
from extender.config.releases import RELEASE_1_37
from extender.metrics.scheduler_metrics import make_scheduler_metrics
from tests.build import make_pod
from tests.pod_group_builders import make_group_member, make_pod_group


def make_scheduler() -> StandaloneScheduler:
    """Make a scheduler that queues pod groups. Needs a running event loop."""
    setup = build_setup(gates=FeatureGates({"GenericWorkload": True}, RELEASE_1_37))
    metrics = make_scheduler_metrics(setup.profiles)
    return StandaloneScheduler(
        setup, CredentialSource(), SystemClock(), metrics, max_in_unschedulable_pods_seconds=300.0
    )


def test_a_member_with_a_failed_binding_waits_for_its_deleted_group() -> None:
    async def main() -> None:
        scheduler = make_scheduler()
        scheduler.requeue_pod(make_group_member("a"))
        assert scheduler.queue.count_pending_pods()["incomplete"] == 1
        group = make_pod_group()
        scheduler.cache.add_or_update_object(group)
        scheduler.queue.update_pod_group(None, group, 0.0)
        assert scheduler.queue.count_pending_pods()["active"] == 1

    asyncio.run(main())


def test_a_pod_with_a_failed_binding_is_queued_once() -> None:
    async def main() -> None:
        scheduler = make_scheduler()
        pod = make_pod("a")
        scheduler.requeue_pod(pod)
        scheduler.requeue_pod(pod)
        assert scheduler.queue.count_pending_pods()["active"] == 1
        assert scheduler.queue.pop() is not None
        scheduler.requeue_pod(pod)
        assert scheduler.queue.count_pending_pods()["active"] == 0

    asyncio.run(main())


def test_a_pod_of_another_scheduler_is_not_queued() -> None:
    async def main() -> None:
        scheduler = make_scheduler()
        scheduler.requeue_pod(make_pod("a", spec={"schedulerName": "other"}))
        assert list(scheduler.queue) == []

    asyncio.run(main())
