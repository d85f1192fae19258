"""Rejections of extenders for nodes that plugins have rejected before."""

from extender.cycle.decision import ScheduleFailure
from extender.scheduler.extender_cycle import schedule_with_extenders
from tests.unit.client.scripted_server import Reply
from tests.unit.cycle.fakes import RejectingFilter
from tests.unit.scheduler.extender_harness import (
    FILTER,
    ExtenderHarness,
    create_pending_pod,
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
