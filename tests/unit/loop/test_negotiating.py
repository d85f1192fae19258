"""Victims put before extenders: nodes and pods may be dropped, replaced and added, and one may say no."""

from typing import Any

import pytest

from extender.config.model import ManagedResource
from tests.build import a_node, a_pod
from tests.unit.client.scripted import Reply
from tests.unit.loop.asking import Asking, asked
from tests.unit.loop.world import World

PREEMPT = {"preempt_verb": "preempt", "node_cache_capable": True}
NOBODY = "no candidate node for preemption"
"""A refusal, so the other plugins' words stand beside it; an error stands alone."""

NO_ROOM = "0/2 nodes are available: 2 Insufficient cpu."


def crowded() -> World:
    """Two full nodes; evicting `low`, on n1, is the better way."""
    return World(
        a_node("n1"),
        a_node("n2"),
        a_pod("low", node="n1", requests={"cpu": "3"}, priority=1),
        a_pod("tiny", node="n1", requests={"cpu": "1"}, priority=3),
        a_pod("mid", node="n2", requests={"cpu": "4"}, priority=2),
    )


def victims(violations: int = 0, **by_node: list[str]) -> dict[str, Any]:
    """The answer of preempt, with pods by name."""
    return {
        node: {"Pods": [{"UID": f"uid-default-{name}"} for name in names], "NumPDBViolations": violations}
        for node, names in by_node.items()
    }


def negotiated(configs: list[dict[str, Any]], *answers: Any, turns: int = 1) -> tuple[World, list[Any]]:
    """An attempt of a pod that needs room; the extenders answer so, one each."""
    world = crowded()
    world.create(a_pod("high", requests={"cpu": "2"}, priority=10))
    sent: list[Any] = []

    async def test(asking: Asking) -> None:
        for letter, answer in zip("abc", answers, strict=False):
            reply = answer if isinstance(answer, Reply) else Reply(body={"NodeNameToMetaVictims": answer})
            asking.server.on(f"POST /{letter}/preempt", reply)
        await asking.settle(turns)
        sent.extend(each.body for each in asking.server.asked)

    asked(world, configs, test)
    return world, sent


def deleted(world: World) -> list[str]:
    return [write.name for write in world.server.said("delete")]


def failures(world: World) -> list[str]:
    return [note for _, reason, note in world.events.told if reason == "FailedScheduling"]


def test_an_extender_with_a_node_cache_is_told_uids() -> None:
    """Source: F021."""
    world, (body,) = negotiated([PREEMPT], victims(n1=["low"], n2=["mid"]))
    assert set(body) == {"Pod", "NodeNameToVictims", "NodeNameToMetaVictims"}
    assert body["NodeNameToVictims"] is None
    assert body["NodeNameToMetaVictims"] == victims(n1=["low"], n2=["mid"])
    assert body["Pod"]["metadata"]["name"] == "high"
    assert deleted(world) == ["low"]


def test_an_extender_without_one_is_sent_whole_pods() -> None:
    world, (body,) = negotiated([{"preempt_verb": "preempt"}], victims(n2=["mid"]))
    assert body["NodeNameToMetaVictims"] is None
    (pod,) = body["NodeNameToVictims"]["n1"]["Pods"]
    assert (pod["metadata"]["name"], pod["spec"]["nodeName"]) == ("low", "n1")
    assert body["NodeNameToVictims"]["n1"]["NumPDBViolations"] == 0
    assert deleted(world) == ["mid"]


def test_the_extender_may_want_other_victims() -> None:
    """Source: E027."""
    world, _ = negotiated([PREEMPT], victims(n1=["low", "tiny"]))
    assert sorted(deleted(world)) == ["low", "tiny"]
    assert failures(world) == [NO_ROOM]


def test_broken_budgets_are_those_that_the_extender_counts() -> None:
    """Source: F045."""
    answer = {**victims(violations=1, n1=["low"]), **victims(n2=["mid"])}
    world, _ = negotiated([PREEMPT], answer)
    assert deleted(world) == ["mid"]


def test_the_next_extender_is_asked_about_what_the_one_before_left() -> None:
    """Source: E023."""
    world, (_, second) = negotiated([PREEMPT, PREEMPT], victims(n2=["mid"]), victims(n2=["mid"]))
    assert second["NodeNameToMetaVictims"] == victims(n2=["mid"])
    assert deleted(world) == ["mid"]


@pytest.mark.parametrize(
    ("answer", "says"),
    [
        ({}, NOBODY),
        (None, NOBODY),
        (victims(n1=[]), 'expected at least one victim pod on node "n1"'),
        ({"n1": None}, 'expected at least one victim pod on node "n1"'),
        (
            victims(n1=["mid"]),
            "extender: {name} claims to preempt pod (UID: &{{uid-default-mid}}) on node: n1, "
            "but the pod is not found on that node",
        ),
        (victims(n9=["low"]), 'nodeinfo not found for node name "n9"'),
        (Reply(500), "failed preempt with extender at URL {name}preempt, code 500"),
        (Reply(body={"NodeNameToMetaVictims": [1]}), "NodeNameToMetaVictims: Expected `object`, got `array`"),
    ],
    ids=[
        "no node is left",
        "null",
        "a node without victims",
        "null for the victims",
        "a pod of another node",
        "a node that is not known",
        "a fault of its own",
        "garbage",
    ],
)
def test_what_ends_the_preemption_is_told(answer: Any, says: str) -> None:
    """Source: E024 to E026, F044."""
    world, _ = negotiated([PREEMPT], answer)
    (note,) = failures(world)
    name = next(iter(world.desk.extenders)).name
    before = f"{NO_ROOM} no new claims to deallocate," if says == NOBODY else NO_ROOM
    assert note == f"{before} preemption: {says.format(name=name)}"
    assert deleted(world) == []


@pytest.mark.parametrize(
    "answer",
    [Reply(500), victims(n9=["low"]), victims(n1=["mid"])],
    ids=["a fault of its own", "a node that is not known", "a pod of another node"],
)
def test_an_extender_that_may_fail_is_passed_over(answer: Any) -> None:
    world, _ = negotiated([{**PREEMPT, "ignorable": True}], answer)
    assert deleted(world) == ["low"]


def test_of_one_that_may_fail_nodes_without_victims_are_dropped() -> None:
    """Source: E025."""
    world, _ = negotiated([{**PREEMPT, "ignorable": True}], victims(n1=[], n2=["mid"]))
    assert deleted(world) == ["mid"]


def test_extenders_without_the_verb_or_an_interest_are_not_asked() -> None:
    other = {**PREEMPT, "managed_resources": (ManagedResource("example.com/gpu"),)}
    world, sent = negotiated([{"filter_verb": "filter"}, other])
    assert sent == []
    assert deleted(world) == ["low"]


def test_the_preemptor_gets_the_room_in_the_end() -> None:
    world, _ = negotiated([PREEMPT], victims(n2=["mid"]), turns=3)
    assert world.server.pods["default/high"].spec.node_name == "n2"
