"""A node that is gone or closed by the time the pod is to be bound to it gets no pod."""

from typing import Any

import pytest

from extender.cluster.pods import PodQuery
from extender.decide.rechecking import node_now, refused
from extender.framework.verdict import Status
from extender.objects.node import Node
from tests.build import a_node, a_pod
from tests.unit.loop.world import World

TAINTED = {"taints": [{"key": "maintenance", "effect": "NoSchedule"}]}
TOLERATING = {"tolerations": [{"key": "maintenance", "operator": "Exists"}]}
BY_LABEL = {"nodeSelector": {"disk": "ssd"}}
CHANGED = 'node "n1" changed before the pod was bound to it: '


def asked_again(world: World, query: PodQuery, chosen: Node | None) -> Status | None:
    """What is said of n1 now."""
    engine = world.desk.engines["default-scheduler"]
    return refused(query, "n1", chosen, world.state, world.profile, engine)


@pytest.mark.parametrize(
    ("pod", "after", "said"),
    [
        ({}, None, 'node "n1" was deleted before the pod was bound to it'),
        ({}, {"unschedulable": True}, CHANGED + "node(s) were unschedulable"),
        ({}, TAINTED, CHANGED + "node(s) had untolerated taint(s)"),
        (TOLERATING, TAINTED, ""),
        (BY_LABEL, {"labels": {"disk": "ssd"}}, ""),
        (BY_LABEL, {}, CHANGED + "node(s) didn't match Pod's node affinity/selector"),
        ({}, {"allocatable": {"cpu": "1m", "pods": "1"}}, ""),
    ],
    ids=[
        "gone", "cordoned", "tainted", "tainted and tolerated", "label still there", "label gone",
        "smaller, which is for the kubelet to refuse",
    ],
)  # fmt: skip
def test_a_node_that_changed_is_asked_about_again(pod: dict[str, Any], after: dict[str, Any] | None, said: str) -> None:
    world = World(a_node("n1", labels={"disk": "ssd"}))
    chosen = node_now(world.state, "n1")
    if after is None:
        world.state.drop_node("n1")
    else:
        world.state.put_node(a_node("n1", **after))
    query = world.state.snapshot().query(a_pod("web", spec=pod))
    status = asked_again(world, query, chosen)
    assert ("" if status is None else status.message) == said


def test_a_node_that_did_not_change_is_not_asked_about() -> None:
    world = World(a_node("n1", unschedulable=True))
    query = world.state.snapshot().query(a_pod("web"))
    assert asked_again(world, query, node_now(world.state, "n1")) is None
    unknown = asked_again(world, query, None)
    assert unknown is not None
    assert unknown.message == CHANGED + "node(s) were unschedulable"


def test_a_pod_whose_node_is_cordoned_before_its_binding_is_sent_is_tried_on_another() -> None:
    world = World(a_node("n1"))
    pod = a_pod("web", requests={"cpu": "1"})
    carry_out = world.server.carry_out

    async def cordoned_meanwhile(write: Any, *asked: Any) -> None:
        if write.subresource == "binding" and world.state.snapshot().row("n2") is None:
            world.feed.changed(a_node("n1"), a_node("n1", unschedulable=True))
            world.feed.added(a_node("n2"))
        await carry_out(write, *asked)

    world.server.carry_out = cordoned_meanwhile  # type: ignore[method-assign]
    world.create(pod)
    world.run(turns=2)

    assert world.node_of(pod) == "n2"
    assert len(world.server.said("binding")) == 1
    assert [reason for _, reason, _ in world.events.told] == ["FailedScheduling", "Scheduled"]
