"""The cache of a live cluster: nominations follow the pods' status and the profiles."""

import asyncio
from collections.abc import Callable

from extender.api.kinds.pod import Pod
from extender.app.live_cluster import LiveCluster
from extender.app.wiring import Scheduling, load_scheduling
from extender.basics.clock import SystemClock
from extender.client.kubeconfig import CredentialSource
from extender.client.reflector import Delta
from tests.build import make_node, make_pod

HEAD = "apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\n"


def make_scheduling(name: str) -> Scheduling:
    return load_scheduling(f"{HEAD}profiles: [{{schedulerName: {name}}}]\n".encode(), "config")


def with_cluster(inspect: Callable[[LiveCluster], None]) -> None:
    """Call *inspect* with a cluster of one node, whose profile is default-scheduler."""

    async def main() -> None:
        cluster = LiveCluster(
            make_scheduling("default-scheduler"), CredentialSource(), SystemClock(), "test", observe=lambda _: None
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
        cluster.set_scheduling(make_scheduling("renamed"))
        assert nominated_pods(cluster) == ["new"]

    with_cluster(inspect)
