"""Rejections of extenders for nodes that plugins have rejected before."""

from typing import Any

import pytest

from extender.cycle.decision import ScheduleFailure
from extender.scheduler.extender_cycle import schedule_with_extenders
from tests.unit.client.scripted_server import Reply
from tests.unit.cycle.fakes import RejectingFilter
from tests.unit.scheduler.extender_harness import (
    FILTER,
    ExtenderHarness,
    create_pending_pod,
    failure_messages,
    filter_response,
    make_harness,
    run_with_extenders,
)


def test_a_plugin_remains_a_rejector_after_an_extender_replaces_its_reason() -> None:
    """Source: pkg/scheduler/schedule_one.go, findNodesThatPassExtenders (1.36)."""
    harness = make_harness(RejectingFilter("R", "n1"), names=("n1", "n2"))
    pod = create_pending_pod(harness)
    rejectors: list[frozenset[str]] = []

    async def test(extender_harness: ExtenderHarness) -> None:
        answer = filter_response(failed={"n1": "too hot", "n2": "no room"})
        extender_harness.server.respond("POST /a/filter", Reply(body=answer))
        with harness.cache.read() as snapshot:
            decision = await schedule_with_extenders(
                harness.context, snapshot.make_pod_info(pod), harness.profile, harness.context.extenders, snapshot
            )
        assert isinstance(decision, ScheduleFailure)
        assert decision.message == "0/2 nodes are available: 1 no room, 1 too hot."
        rejectors.append(decision.rejectors)

    run_with_extenders(harness, [FILTER], test)
    assert rejectors == [{"R", "Extender"}]


@pytest.mark.parametrize(
    ("answer_for_nominated_node", "answer_for_all_nodes", "message"),
    [
        ({"failed": {"n1": "no licence", "ghost": "unknown node"}}, {}, "1 no licence, 1 unknown node."),
        ({"final": {"n1": "no licence"}}, {"failed": {"n3": "busy"}}, "1 busy, 1 no licence."),
        (
            {"failed": {"n1": "no licence", "n2": "cold"}},
            {"failed": {"n1": "busy", "n3": "busy"}},
            "1 cold, 2 busy.",
        ),
        ({}, {"failed": {"n3": "busy"}}, "1 busy."),
    ],
    ids=[
        "the nominated node and an unknown node keep their reasons",
        "also a reason that preemption cannot change",
        "a later reason replaces the earlier one",
        "a node without a reason gets none",
    ],
)
def test_reasons_for_the_nominated_node_alone_stay_when_all_nodes_are_tried(
    answer_for_nominated_node: dict[str, Any], answer_for_all_nodes: dict[str, Any], message: str
) -> None:
    """Source: pkg/scheduler/schedule_one.go, Scheduler.evaluateNominatedNode, findNodesThatPassExtenders (1.37)."""
    harness = make_harness()
    create_pending_pod(harness, status={"nominatedNodeName": "n1"})

    async def test(extender_harness: ExtenderHarness) -> None:
        answers = (answer_for_nominated_node, answer_for_all_nodes)
        replies = [Reply(body=filter_response(**answer)) for answer in answers]
        extender_harness.server.respond("POST /a/filter", *replies)
        assert await harness.scheduler.schedule_one()

    run_with_extenders(harness, [FILTER], test)
    assert failure_messages(harness) == [f"0/3 nodes are available: {message}"]
