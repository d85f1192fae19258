"""Preemption with extenders: candidates and victims may be dropped, replaced and added, and an error ends it."""

from typing import Any

import pytest

from extender.config.model import ManagedResource
from tests.build import make_node, make_pod
from tests.unit.client.scripted_server import Reply
from tests.unit.scheduler.builders import SchedulerHarness
from tests.unit.scheduler.extender_harness import ExtenderHarness, run_with_extenders

PREEMPT = {"preempt_verb": "preempt", "node_cache_capable": True}
REJECTION = "no candidate node for preemption"
"""A rejection, so the messages of other plugins stay; an error would replace them."""

NO_ROOM = "0/2 nodes are available: 2 Insufficient cpu."


def make_full_nodes() -> SchedulerHarness:
    """Make two full nodes; evicting `low` on n1 is the better choice."""
    return SchedulerHarness(
        make_node("n1"),
        make_node("n2"),
        make_pod("low", node="n1", requests={"cpu": "3"}, priority=1),
        make_pod("tiny", node="n1", requests={"cpu": "1"}, priority=3),
        make_pod("mid", node="n2", requests={"cpu": "4"}, priority=2),
    )


def victims(violations: int = 0, **by_node: list[str]) -> dict[str, Any]:
    """Return the response of a preempt verb with pods by name."""
    return {
        node: {"Pods": [{"UID": f"uid-default-{name}"} for name in names], "NumPDBViolations": violations}
        for node, names in by_node.items()
    }


def preempt_with_extenders(
    configs: list[dict[str, Any]], *answers: Any, turns: int = 1
) -> tuple[SchedulerHarness, list[Any]]:
    """Run an attempt of a preemptor with one response per extender."""
    harness = make_full_nodes()
    harness.create(make_pod("high", requests={"cpu": "2"}, priority=10))
    sent: list[Any] = []

    async def test(extender_harness: ExtenderHarness) -> None:
        for letter, answer in zip("abc", answers, strict=False):
            reply = answer if isinstance(answer, Reply) else Reply(body={"NodeNameToMetaVictims": answer})
            extender_harness.server.respond(f"POST /{letter}/preempt", reply)
        await extender_harness.run_until_idle(turns)
        sent.extend(each.body for each in extender_harness.server.requests)

    run_with_extenders(harness, configs, test)
    return harness, sent


def deleted(harness: SchedulerHarness) -> list[str]:
    return [api_call.name for api_call in harness.api.calls_to("delete")]


def failures(harness: SchedulerHarness) -> list[str]:
    return [note for _, reason, note in harness.events.recorded if reason == "FailedScheduling"]


def test_an_extender_with_a_node_cache_gets_uids() -> None:
    """Source: kube-scheduler/extender/v1/types.go, ExtenderPreemptionArgs (1.36)."""
    harness, (body,) = preempt_with_extenders([PREEMPT], victims(n1=["low"], n2=["mid"]))
    assert set(body) == {"Pod", "NodeNameToVictims", "NodeNameToMetaVictims"}
    assert body["NodeNameToVictims"] is None
    assert body["NodeNameToMetaVictims"] == victims(n1=["low"], n2=["mid"])
    assert body["Pod"]["metadata"]["name"] == "high"
    assert deleted(harness) == ["low"]


def test_an_extender_without_a_node_cache_gets_whole_pods() -> None:
    harness, (body,) = preempt_with_extenders([{"preempt_verb": "preempt"}], victims(n2=["mid"]))
    assert body["NodeNameToMetaVictims"] is None
    (pod,) = body["NodeNameToVictims"]["n1"]["Pods"]
    assert (pod["metadata"]["name"], pod["spec"]["nodeName"]) == ("low", "n1")
    assert body["NodeNameToVictims"]["n1"]["NumPDBViolations"] == 0
    assert deleted(harness) == ["mid"]


def test_a_victim_that_an_extender_names_often_is_evicted_once() -> None:
    """A response may name half a million victims, and each eviction is two requests."""
    harness, _ = preempt_with_extenders([PREEMPT], victims(n1=["low", "tiny"] * 50))
    assert sorted(deleted(harness)) == ["low", "tiny"]


def test_a_victim_that_an_extender_repeats_counts_in_the_message_and_for_the_selection() -> None:
    """Source: pkg/scheduler/extender.go, HTTPExtender.convertToVictims (1.36)."""
    harness, _ = preempt_with_extenders([PREEMPT], victims(n1=["low", "low"]))
    assert deleted(harness) == ["low"]
    message = "preemption: found a potential placement for pod on node n1, preempting 2 victims"
    assert failures(harness) == [f"{NO_ROOM} {message}"]


def test_the_extender_may_change_the_victims() -> None:
    """Source: pkg/scheduler/extender.go, HTTPExtender.convertPodUIDToPod (1.36)."""
    harness, _ = preempt_with_extenders([PREEMPT], victims(n1=["low", "tiny"]))
    assert sorted(deleted(harness)) == ["low", "tiny"]
    message = "preemption: found a potential placement for pod on node n1, preempting 2 victims"
    assert failures(harness) == [f"{NO_ROOM} {message}"]


def test_pdb_violations_are_counted_by_the_extender() -> None:
    """Source: pkg/scheduler/extender.go, HTTPExtender.convertToVictims (1.36)."""
    answer = {**victims(violations=1, n1=["low"]), **victims(n2=["mid"])}
    harness, _ = preempt_with_extenders([PREEMPT], answer)
    assert deleted(harness) == ["mid"]


def test_the_next_extender_gets_the_candidates_that_the_previous_one_left() -> None:
    """Source: pkg/scheduler/framework/preemption/preemption.go, Evaluator.callExtenders (1.36)."""
    harness, (_, second) = preempt_with_extenders([PREEMPT, PREEMPT], victims(n2=["mid"]), victims(n2=["mid"]))
    assert second["NodeNameToMetaVictims"] == victims(n2=["mid"])
    assert deleted(harness) == ["mid"]


@pytest.mark.parametrize(
    ("answer", "says"),
    [
        ({}, REJECTION),
        (None, REJECTION),
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
def test_an_error_that_ends_the_preemption_is_reported(answer: Any, says: str) -> None:
    """Source: pkg/scheduler/framework/preemption/preemption.go, Evaluator.callExtenders; pkg/scheduler/extender.go,
    HTTPExtender.convertPodUIDToPod (1.36).
    """
    harness, _ = preempt_with_extenders([PREEMPT], answer)
    (note,) = failures(harness)
    name = next(iter(harness.context.extenders)).name
    assert note == f"{NO_ROOM} preemption: {says.format(name=name)}"
    assert deleted(harness) == []


@pytest.mark.parametrize(
    "answer",
    [Reply(500), victims(n9=["low"]), victims(n1=["mid"])],
    ids=["a fault of its own", "a node that is not known", "a pod of another node"],
)
def test_an_ignorable_extender_is_skipped(answer: Any) -> None:
    harness, _ = preempt_with_extenders([{**PREEMPT, "ignorable": True}], answer)
    assert deleted(harness) == ["low"]


def test_an_ignorable_extender_may_drop_nodes_by_leaving_no_victims() -> None:
    """Source: pkg/scheduler/framework/preemption/preemption.go, Evaluator.callExtenders (1.36)."""
    harness, _ = preempt_with_extenders([{**PREEMPT, "ignorable": True}], victims(n1=[], n2=["mid"]))
    assert deleted(harness) == ["mid"]


def test_extenders_without_the_verb_or_interest_are_not_called() -> None:
    other = {**PREEMPT, "managed_resources": (ManagedResource("example.com/gpu"),)}
    # It is not called in a second attempt either, in which one node fits: a slow machine may get that far.
    without_the_verb = {"prioritize_verb": "prioritize", "weight": 1}
    harness, sent = preempt_with_extenders([without_the_verb, other])
    assert sent == []
    assert deleted(harness) == ["low"]


def test_the_preemptor_is_bound_in_the_end() -> None:
    harness, _ = preempt_with_extenders([PREEMPT], victims(n2=["mid"]), turns=3)
    assert harness.api.pods["default/high"].spec.node_name == "n2"
