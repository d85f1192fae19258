"""What many pods or nodes have in common is kept once; a node that only says that it is alive changes nothing."""

import pytest

from extender.basics.intern import Pool
from extender.cluster.state import ClusterState
from extender.objects.codec import decode, from_builtins
from extender.objects.node import Node
from extender.objects.pod import Pod

POD = b"""{"metadata": {"name": "%s", "namespace": "shop", "uid": "%s", "labels": {"app": "web"}},
 "spec": {"nodeName": "%s", "containers": [{"name": "web", "image": "web:1", "resources": {"requests": {"cpu": "1"}}}]},
 "status": {"phase": "Running", "containerStatuses": [{"name": "web", "resources": {"requests": {"cpu": "1"}}}]}}"""


def a_node(name: str = "one", version: str = "1", **status: object) -> Node:
    images = [{"names": [f"registry.example/web:{number}"], "sizeBytes": number} for number in range(3)]
    body = {
        "metadata": {"name": name, "resourceVersion": version, "labels": {"zone": "a"}},
        "status": {"allocatable": {"cpu": "4", "pods": "110"}, "images": images, **status},
    }
    return from_builtins(body, Node)


def test_a_lean_pod_is_equal_and_shares_what_its_template_says() -> None:
    state = ClusterState()
    first, second = (decode(POD % (name, name, node), Pod) for name, node in ((b"a", b"one"), (b"b", b"two")))
    lean_first, lean_second = state.lean(first), state.lean(second)
    assert (lean_first, lean_second) == (first, second)
    assert (lean_second.metadata.name, lean_second.spec.node_name) == ("b", "two")
    assert lean_second.spec.containers is lean_first.spec.containers
    assert lean_second.metadata.labels is lean_first.metadata.labels
    assert lean_second.status.container_statuses is lean_first.status.container_statuses


def test_lean_nodes_are_equal_and_share_their_images() -> None:
    state = ClusterState()
    one, two = state.lean(a_node("one")), state.lean(a_node("two"))
    assert (one, two) == (a_node("one"), a_node("two"))
    assert all(mine is theirs for mine, theirs in zip(one.status.images, two.status.images, strict=True))


def test_a_pool_that_is_full_begins_anew() -> None:
    pool: Pool[tuple[int, ...]] = Pool(most=1)
    first = pool.of((1, 2))
    assert pool.of((1, 2)) is first
    assert [pool.of((number,)) for number in range(3)] == [(0,), (1,), (2,)]
    assert pool.of((1, 2)) == first


@pytest.mark.parametrize(
    ("after", "written"),
    [
        (a_node(version="2"), False),
        (a_node(version="2", allocatable={"cpu": "8", "pods": "110"}), True),
        (a_node(version="2", conditions=[{"type": "Ready", "status": "False"}]), True),
        (a_node(version="2", images=[]), True),
        (from_builtins({"metadata": {"name": "one", "resourceVersion": "2"}}, Node), True),
    ],
    ids=["its version alone", "what it offers", "a condition", "its images", "its labels"],
)
def test_a_node_is_written_when_it_changes_in(after: Node, written: bool) -> None:
    state = ClusterState()
    state.put_node(a_node())
    before = state.snapshot().node_position
    state.put_node(after)
    now = state.snapshot()
    assert (now.node_position > before) is written
    assert now.nodes[0] is after
