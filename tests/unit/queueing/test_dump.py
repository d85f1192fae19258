"""The dump for the log: nodes with what is on them, and who waits, in kube-scheduler's form. Source: H071."""

from extender.framework.profiles import Profile
from extender.queueing.dump import dump_nodes, dump_queue
from extender.queueing.waiting import QueueSettings, SchedulingQueue
from extender.wiring import scheduling
from tests.build import a_cluster, a_node, a_pod

GPU = "example.com/gpu"
NODE = """\
Node name: n1
Deleted: false
Requested Resources: &{MilliCPU:1500 Memory:1024 EphemeralStorage:0 AllowedPodNumber:0 ScalarResources:map[]}
Allocatable Resources:&{MilliCPU:4000 Memory:2048 EphemeralStorage:0 AllowedPodNumber:9 ScalarResources:\
map[example.com/gpu:2]}
Scheduled Pods(number: 1):
name: web, namespace: shop, uid: 1, phase: Running, nominated node: 
Nominated Pods(number: 1):
name: big, namespace: default, uid: 2, phase: , nominated node: n1
"""  # noqa: W291  upstream's lines may end in a space


def test_a_node_is_told_with_amounts_pods_and_nominated_pods() -> None:
    room = {"cpu": "4", "memory": "2Ki", "pods": "9", GPU: "2"}
    web = a_pod("web", namespace="shop", node="n1", requests={"cpu": "1500m", "memory": "1Ki"}, metadata={"uid": "1"},
                status={"phase": "Running"})  # fmt: skip
    big = a_pod("big", metadata={"uid": "2"}, status={"nominatedNodeName": "n1", "phase": ""})
    state = a_cluster(a_node("n1", allocatable=room), web)
    state.nominate(big, "n1")
    assert dump_nodes(state.snapshot()) == NODE


def test_nodes_are_an_empty_line_apart() -> None:
    text = dump_nodes(a_cluster(a_node("n1"), a_node("n2")).snapshot())
    assert "\n\n\nNode name: n2\n" in text


def test_the_queue_is_told_by_place_with_its_pods() -> None:
    profile: Profile = scheduling().first
    queue = SchedulingQueue({profile.scheduler_name: profile}, lambda *_: None, QueueSettings())
    cluster = a_cluster().snapshot()
    for name in ("a", "b"):
        queue.add(cluster.query(a_pod(name, metadata={"uid": name})), 0.0)
    rejected = queue.pop()
    assert rejected is not None
    rejected.rejectors = frozenset(("NodeAffinity",))
    queue.came_back(rejected, 0.0)
    summary, pods = dump_queue(queue)
    assert summary == "activeQ:1; backoffQ:0; unschedulablePods:1"
    assert pods.splitlines() == [
        "name: b, namespace: default, uid: b, phase: , nominated node: ",
        "name: a, namespace: default, uid: a, phase: , nominated node: ",
    ]
