"""The dump of nodes with their pods, and of queued pods, in kube-scheduler's format.

Source: pkg/scheduler/backend/cache/debugger/debugger.go, CacheDebugger.ListenForSignal (1.36).
"""

import pytest

from extender.app.introspection import dump_nodes, dump_queue
from extender.app.wiring import build_setup
from extender.config.feature_gates import FeatureGates
from extender.config.releases import RELEASE_1_36, RELEASE_1_37, Release
from extender.framework.profiles import Profile
from extender.queueing.entity_queues import QueueSettings
from extender.queueing.pod_group_queue import make_scheduling_queue
from extender.queueing.queued_entities import QueuedPodInfo
from tests.build import make_cluster, make_node, make_pod

GPU = "example.com/gpu"
NODE = """\
Node name: n1
Deleted: false
Requested Resources: &{MilliCPU:1500 Memory:1024 EphemeralStorage:0 AllowedPodNumber:0 ScalarResources:\
map[example.com/license:3]}
Allocatable Resources:&{MilliCPU:4000 Memory:2048 EphemeralStorage:0 AllowedPodNumber:9 ScalarResources:\
map[example.com/gpu:2]}
Scheduled Pods(number: 1):
name: web, namespace: shop, uid: 1, phase: Running, nominated node: 
Nominated Pods(number: 1):
name: big, namespace: default, uid: 2, phase: , nominated node: n1
"""  # noqa: W291  upstream's lines may end in a space


def test_a_node_is_dumped_with_its_resources_pods_and_nominated_pods() -> None:
    allocatable = {"cpu": "4", "memory": "2Ki", "pods": "9", GPU: "2"}
    requests = {"cpu": "1500m", "memory": "1Ki", "example.com/license": "3"}
    web = make_pod("web", namespace="shop", node="n1", requests=requests,
                   metadata={"uid": "1"}, status={"phase": "Running"})  # fmt: skip
    big = make_pod("big", metadata={"uid": "2"}, status={"nominatedNodeName": "n1", "phase": ""})
    cache = make_cluster(make_node("n1", allocatable=allocatable), web)
    cache.nominate(big, "n1")
    assert dump_nodes(cache.snapshot()) == NODE


def test_nodes_are_separated_by_empty_lines() -> None:
    text = dump_nodes(make_cluster(make_node("n1"), make_node("n2")).snapshot())
    assert "\n\n\nNode name: n2\n" in text


@pytest.mark.parametrize(
    ("release", "unschedulable"),
    [(RELEASE_1_36, "unschedulablePods:1"), (RELEASE_1_37, "unschedulableEntities:1")],
    ids=["1.36", "1.37"],
)
def test_the_queue_is_dumped_with_counts_and_pods(release: Release, unschedulable: str) -> None:
    """Source: pkg/scheduler/backend/queue/scheduling_queue.go, pendingPodsSummary (1.36, 1.37)."""
    profile: Profile = build_setup(gates=FeatureGates(release=release)).first_profile
    queue = make_scheduling_queue({profile.scheduler_name: profile}, lambda *_: None, QueueSettings())
    snapshot = make_cluster().snapshot()
    for name in ("a", "b"):
        queue.add(snapshot.make_pod_info(make_pod(name, metadata={"uid": name})), 0.0)
    rejected = queue.pop()
    assert isinstance(rejected, QueuedPodInfo)
    rejected.unschedulable_plugins = frozenset(("NodeAffinity",))
    queue.add_unschedulable_if_not_present(rejected, 0.0)
    summary, pods = dump_queue(queue)
    assert summary == f"activeQ:1; backoffQ:0; {unschedulable}"
    assert pods.splitlines() == [
        "name: b, namespace: default, uid: b, phase: , nominated node: ",
        "name: a, namespace: default, uid: a, phase: , nominated node: ",
    ]
