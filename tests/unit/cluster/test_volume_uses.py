"""Claims and disks in use follow the pods on nodes, and a fork leaves its origin alone. B080, B081."""

from typing import Any

from extender.cluster.hypothesis import Hypothesis
from extender.cluster.snapshot import Snapshot
from tests.build import a_cluster, a_node, a_pod, a_query

CLAIM = {"name": "v", "persistentVolumeClaim": {"claimName": "data"}}
GENERATED = {"name": "g", "ephemeral": {"volumeClaimTemplate": {"spec": {}}}}
DISK = {"name": "d", "gcePersistentDisk": {"pdName": "disk"}}


def a_user(name: str, *volumes: dict[str, Any], node: str = "") -> Any:
    return a_pod(name, node=node, spec={"volumes": list(volumes)})


def uses(cluster: Snapshot) -> tuple[bool, set[int], set[int], set[int]]:
    return (
        cluster.is_claimed("default/data"),
        cluster.claim_rows("default/data"),
        cluster.claim_rows("default/p-g"),
        cluster.disk_conflicts(cluster.query(a_user("asks", DISK))),
    )


def test_uses_come_and_go_with_pods() -> None:
    state = a_cluster(a_node("a"), a_node("b"), a_user("p", CLAIM, GENERATED, DISK, node="b"))
    assert uses(state.snapshot()) == (True, {1}, {1}, {1})
    state.put_pod(a_user("q", CLAIM, node="a"))
    assert state.snapshot().claim_rows("default/data") == {0, 1}
    state.drop_pod("uid-default-p")
    assert uses(state.snapshot()) == (True, {0}, set(), set())
    state.drop_pod("uid-default-q")
    assert uses(state.snapshot()) == (False, set(), set(), set())


def test_a_generated_claim_is_used_but_not_named() -> None:
    cluster = a_cluster(a_node("a"), a_user("p", GENERATED, node="a")).snapshot()
    assert (cluster.is_claimed("default/p-g"), cluster.claim_rows("default/p-g")) == (False, {0})


def test_uses_move_with_their_node_and_wait_for_it() -> None:
    state = a_cluster(a_node("a"), a_node("b"), a_user("p", CLAIM, node="b"))
    state.drop_node("a")
    assert state.snapshot().claim_rows("default/data") == {0}
    state.drop_node("b")
    assert not state.snapshot().is_claimed("default/data")
    state.put_node(a_node("b"))
    assert state.snapshot().is_claimed("default/data")


def test_a_hypothesis_does_not_change_what_is() -> None:
    state = a_cluster(a_node("a"), a_node("b"), a_user("p", CLAIM, DISK, node="a"))
    cluster = state.snapshot()
    imagined = Hypothesis(cluster)
    imagined.remove(cluster.pods_on("a")["uid-default-p"])
    imagined.place(a_query(a_user("q", DISK), state), "b")
    assert uses(imagined.snapshot()) == (False, set(), set(), {1})
    assert uses(cluster) == (True, {0}, set(), {0})
