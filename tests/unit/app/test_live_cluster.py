"""The cache of a live cluster: nominations follow the pods' status and the profiles."""

import asyncio
from collections.abc import Callable

from extender.api.kinds.pod import Pod
from extender.app.live_cluster import LiveCluster
from extender.app.wiring import SchedulerSetup, load_setup
from extender.basics.clock import SystemClock
from extender.client.kubeconfig import CredentialSource
from extender.client.reflector import Delta
from extender.extender_api.best_node.assumptions import Assumptions
from tests.build import make_node, make_pod

HEAD = "apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\n"


def make_setup(name: str) -> SchedulerSetup:
    return load_setup(f"{HEAD}profiles: [{{schedulerName: {name}}}]\n".encode(), "config")


def with_cluster(inspect: Callable[[LiveCluster], None]) -> None:
    """Call *inspect* with a cluster of one node, whose profile is default-scheduler."""

    async def main() -> None:
        cluster = LiveCluster(
            make_setup("default-scheduler"), CredentialSource(), SystemClock(), observe=lambda _: None
        )
        cluster.cache.add_or_update_node(make_node("n1"))
        inspect(cluster)
        await cluster.close()

    asyncio.run(main())


def deliver(cluster: LiveCluster, old: Pod | None, new: Pod | None) -> None:
    cluster.informers.reflectors[Pod].deliver([Delta(old, new)])


def nominated_pods(cluster: LiveCluster) -> list[str]:
    return [pod_info.pod.metadata.name for pod_info in cluster.cache.snapshot().nominated_pods("n1")]


def test_a_nomination_follows_the_status_of_the_pod() -> None:
    plain, nominated = make_pod("web"), make_pod("web", status={"nominatedNodeName": "n1"})

    def inspect(cluster: LiveCluster) -> None:
        deliver(cluster, None, plain)
        assert nominated_pods(cluster) == []
        deliver(cluster, plain, nominated)
        assert nominated_pods(cluster) == ["web"]
        deliver(cluster, nominated, plain)
        assert nominated_pods(cluster) == []
        deliver(cluster, plain, None)
        deliver(cluster, None, nominated)
        assert nominated_pods(cluster) == ["web"]

    with_cluster(inspect)


def test_nominations_of_removed_schedulers_are_removed_and_those_of_new_schedulers_added() -> None:
    old = make_pod("old", status={"nominatedNodeName": "n1"})
    new = make_pod("new", spec={"schedulerName": "renamed"}, status={"nominatedNodeName": "n1"})

    def inspect(cluster: LiveCluster) -> None:
        deliver(cluster, None, old)
        deliver(cluster, None, new)
        assert nominated_pods(cluster) == ["old"]
        cluster.apply_setup(make_setup("renamed"))
        assert nominated_pods(cluster) == ["new"]

    with_cluster(inspect)


def test_the_watch_confirms_and_ends_assumptions_of_pods_of_any_scheduler() -> None:
    ours, other = make_pod("ours"), make_pod("other", spec={"schedulerName": "unknown"})
    conditions = [{"type": "PodScheduled", "status": "False", "reason": "Unschedulable"}]
    failed = make_pod("other", spec={"schedulerName": "unknown"}, status={"conditions": conditions})

    def inspect(cluster: LiveCluster) -> None:
        events: list[str] = []
        assumptions = Assumptions(cluster.cache, 60.0, events.append)
        cluster.observe_pods(assumptions.on_pod_change, assumptions.on_pod_delete)
        for pod in (ours, other):
            deliver(cluster, None, pod)
            assumptions.assume(pod, pod, "n1")
        deliver(cluster, ours, make_pod("ours", node="n1"))
        deliver(cluster, other, failed)
        assert events == ["chosen", "assumed", "chosen", "assumed", "confirmed", "unscheduled"]
        assert list(cluster.cache.assigned_pods) == ["uid-default-ours"]
        assert list(cluster.cache.pending_pods) == ["uid-default-other"]

    with_cluster(inspect)


def test_the_watch_ends_assumptions_of_deleted_and_recreated_pods() -> None:
    first, second = make_pod("first"), make_pod("second", spec={"schedulerName": "unknown"})

    def inspect(cluster: LiveCluster) -> None:
        events: list[str] = []
        assumptions = Assumptions(cluster.cache, 60.0, events.append)
        cluster.observe_pods(assumptions.on_pod_change, assumptions.on_pod_delete)
        for pod in (first, second):
            deliver(cluster, None, pod)
            assumptions.assume(pod, pod, "n1")
        deliver(cluster, first, make_pod("first", metadata={"uid": "recreated"}))
        deliver(cluster, second, None)
        assert events[-2:] == ["deleted", "deleted"]
        assert len(assumptions) == 0
        assert not any(assumptions.assume(pod, pod, "n1") for pod in (first, second))
        assert dict(cluster.cache.assigned_pods) == {}
        assert list(cluster.cache.pending_pods) == ["recreated"]

    with_cluster(inspect)


def test_a_pod_that_was_assumed_before_its_first_event_is_not_nominated() -> None:
    nominated = make_pod("web", status={"nominatedNodeName": "n1"})

    def inspect(cluster: LiveCluster) -> None:
        assumptions = Assumptions(cluster.cache)
        cluster.observe_pods(assumptions.on_pod_change, assumptions.on_pod_delete)
        assumptions.assume(make_pod("web"), make_pod("web"), "n1")
        deliver(cluster, None, nominated)
        assert nominated_pods(cluster) == []
        assumptions.on_request(nominated)
        assert nominated_pods(cluster) == ["web"]

    with_cluster(inspect)


def test_pending_pods_of_any_scheduler_are_members_of_pod_groups() -> None:
    """A scheduler with another name may call the verbs for the pods of a gang."""
    pod = make_pod("web", spec={"schedulerName": "another", "schedulingGroup": {"podGroupName": "train"}})

    def inspect(cluster: LiveCluster) -> None:
        deliver(cluster, None, pod)
        assert list(cluster.cache.snapshot().pod_group("default/train").pending) == [pod.metadata.uid]

    with_cluster(inspect)
