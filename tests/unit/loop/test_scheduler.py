"""Pods from the queue to their node, and what becomes of those that do not get there."""

from typing import Any

import pytest

from extender.client.errors import ApiError, ConflictError, ServerError, UnreachableError
from extender.cluster.pods import PodQuery
from extender.cluster.snapshot import Snapshot
from extender.framework.points import ALLOW, Permission, Plan
from extender.framework.verdict import Code, Status, error
from extender.objects.pod import Pod
from extender.plugins.default_binder import DefaultBinder
from tests.build import a_node, a_pod
from tests.unit.decide.stand_ins import a_profile
from tests.unit.loop.world import World

WAIT = Status(Code.WAIT, ("for the others",))


def small(name: str, **given: Any) -> Pod:
    return a_pod(name, requests={"cpu": "1"}, **given)


def test_a_pod_is_bound_to_the_node_that_fits() -> None:
    world = World(a_node("n1", allocatable={"cpu": "100m", "pods": "1"}), a_node("n2"))
    pod = small("web")
    world.create(pod)

    world.run()

    assert world.node_of(pod) == "n2"
    (binding,) = world.server.said("binding")
    assert binding.body["metadata"]["uid"] == pod.metadata.uid
    assert world.events.told == [("default/web", "Scheduled", "Successfully assigned default/web to n2")]
    assert not world.state.is_assumed(pod.metadata.uid)
    assert len(world.queue.in_flight) == 0


def test_pods_are_bound_by_priority() -> None:
    world = World(a_node("n1", allocatable={"cpu": "1", "pods": "10"}))
    low, high = small("low"), small("high", priority=5, spec={"preemptionPolicy": "Never"})
    world.create(low, high)

    world.run()

    assert (world.node_of(high), world.node_of(low)) == ("n1", "")


def test_a_pod_that_fits_nowhere_learns_why_and_is_tried_when_room_is_made() -> None:
    other = a_pod("other", node="n1", requests={"cpu": "4"})
    world = World(a_node("n1"), other)
    pod = small("web")
    world.create(pod)

    world.run()

    message = (
        "0/1 nodes are available: 1 Insufficient cpu. no new claims to deallocate, "
        "preemption: 0/1 nodes are available: 1 No preemption victims found for incoming pod."
    )
    assert world.events.told == [("default/web", "FailedScheduling", message)]
    (patch,) = world.server.said("status")
    assert patch.body["status"]["conditions"][0]["message"] == message
    assert world.queue.counts()["unschedulable"] == 1

    world.feed.removed(other)
    world.run(turns=2)
    assert world.node_of(pod) == "n1"


def test_a_binding_that_is_refused_is_undone_and_tried_again() -> None:
    world = World(a_node("n1"))
    pod = small("web")
    world.server.faults["binding"] = [ServerError("etcd is down", 500)]
    world.create(pod)

    world.run()

    assert world.node_of(pod) == ""
    assert dict(world.state.placed) == {}
    assert world.events.told == [
        ("default/web", "FailedScheduling", 'running Bind plugin "DefaultBinder": etcd is down')
    ]
    assert world.queue.counts()["backoff"] == 1

    world.run(turns=2)
    assert world.node_of(pod) == "n1"


def test_a_binding_that_timed_out_but_succeeded_is_not_tried_elsewhere() -> None:
    """The watch tells that the pod has its node, so it does not come back to the queue (A042, F043)."""
    world = World(a_node("n1"), a_node("n2"))
    pod = small("web")
    world.create(pod)
    world.server.faults["binding"] = [UnreachableError("timed out", sent=True)]
    bound = a_pod("web", node="n2", requests={"cpu": "1"})

    carry_out = world.server.carry_out

    async def bind_and_time_out(write: Any, ask: Any) -> None:
        ask()
        if write.subresource == "binding":
            world.feed.changed(pod, bound)
        await carry_out(write)

    world.server.carry_out = bind_and_time_out  # type: ignore[method-assign]
    world.run(turns=3)

    assert len(world.server.said("binding")) == 1
    assert world.state.placed[pod.metadata.uid].node_name == "n2"
    assert sum(world.queue.counts().values()) == 0


def test_a_binding_whose_answer_is_lost_is_waited_for() -> None:
    """The pod keeps its place meanwhile, so that nothing else is put there, and is not tried again (fault 10)."""
    world = World(a_node("n1"))
    pod = small("web")
    world.create(pod)
    world.server.faults["binding"] = [UnreachableError("timed out", sent=True)]
    seconds = 0.0

    async def seen_after_a_while(waited: float, sleep: Any = world.desk.sleep) -> None:
        nonlocal seconds
        seconds += waited
        assert world.state.is_assumed(pod.metadata.uid)
        if seconds == 5:
            world.feed.changed(pod, a_pod("web", node="n1", requests={"cpu": "1"}))
        await sleep(waited)

    world.desk.sleep = seen_after_a_while
    world.run()

    assert seconds == 5
    assert [reason for _, reason, _ in world.events.told] == ["Scheduled"]
    assert len(world.server.said("binding")) == 1


def test_a_pod_deleted_while_it_is_bound_frees_its_room() -> None:
    world = World(a_node("n1"))
    pod = small("web")
    world.create(pod)

    async def delete_first(write: Any, carry_out: Any = world.server.carry_out) -> None:
        if write.subresource == "binding":
            world.server.pods.clear()
            world.feed.removed(pod)
        await carry_out(write)

    world.server.carry_out = delete_first  # type: ignore[method-assign]
    world.run()

    assert dict(world.state.placed) == {}
    assert world.state.snapshot().view().pod_count.tolist() == [0]
    assert sum(world.queue.counts().values()) == 0
    assert len(world.queue.in_flight) == 0


def test_nothing_is_bound_after_the_lease_is_lost() -> None:
    """Asked immediately before each bind (fault 18)."""
    world = World(a_node("n1"))
    pod = small("web")
    world.create(pod)
    assert world.desk.leadership.may_act()

    class Losing:
        """Leads while the decision is made, and no longer when the binding is written."""

        asked = 0

        def may_act(self) -> bool:
            self.asked += 1
            return self.asked == 1

    world.desk.leadership = Losing()
    world.run()

    assert world.server.said("binding") == []
    assert dict(world.state.placed) == {}


def test_a_deleting_pod_is_skipped() -> None:
    """Source: A011."""
    world = World(a_node("n1"))
    world.create(small("web", metadata={"deletionTimestamp": "2026-03-01T00:00:00Z"}))

    world.run()

    assert world.server.writes == []
    assert world.events.told == [("default/web", "FailedScheduling", "skip schedule deleting pod: default/web")]


def test_a_status_that_meets_a_conflict_is_written_again() -> None:
    """Source: A045."""
    world = World(a_node("n1", allocatable={"cpu": "100m", "pods": "1"}))
    world.server.faults["status"] = [ConflictError("changed"), ServerError("busy", 503)]
    world.create(small("web"))

    world.run()

    assert len(world.server.said("status")) == 3


@pytest.mark.parametrize("fault", [ApiError("forbidden", 403), ServerError("busy", 503)])
def test_a_status_that_cannot_be_written_stops_nothing(fault: ApiError) -> None:
    """Source: fault 29."""
    world = World(a_node("n1"))
    world.server.faults["status"] = [fault] * 9
    big, pod = a_pod("big", requests={"cpu": "99"}), small("web")
    world.create(big, pod)

    world.run()

    assert world.node_of(pod) == "n1"


# -- preemption


def crowded() -> World:
    """One full node, a pod of priority 0 on it."""
    return World(a_node("n1"), a_pod("low", node="n1", requests={"cpu": "4"}, priority=0))


def test_a_pod_of_lower_priority_makes_room() -> None:
    world = crowded()
    pod = small("high", priority=10)
    world.create(pod)

    world.run(turns=3)

    assert "default/low" not in world.server.pods
    assert world.node_of(pod) == "n1"
    reasons = [(key, reason) for key, reason, _ in world.events.told]
    assert reasons == [
        ("default/high", "FailedScheduling"),
        ("default/low", "Preempted"),
        ("default/high", "Scheduled"),
    ]
    deletion = world.server.said("delete")[0]
    assert deletion.body == {"preconditions": {"uid": "uid-default-low"}}
    nominated = [write.body["status"].get("nominatedNodeName") for write in world.server.said("status")]
    assert "n1" in nominated


def test_a_preemption_that_fails_is_tried_again() -> None:
    """Source: E044."""
    world = crowded()
    world.server.faults["delete"] = [ServerError("busy", 503)]
    pod = small("high", priority=10)
    world.create(pod)

    world.run(turns=6)

    assert world.node_of(pod) == "n1"


# -- Permit


class Gatekeeper:
    """Lets pods wait until it is told otherwise."""

    name = "Gatekeeper"

    def __init__(self, answer: Permission) -> None:
        self.answer = answer

    def permit(self, *_: Any) -> Permission:
        return self.answer


def waiting_world(answer: Permission) -> tuple[World, Pod]:
    world = World(a_node("n1"), profile=a_profile(Gatekeeper(answer), DefaultBinder()))
    pod = small("web")
    world.create(pod)
    return world, pod


def test_an_allowed_pod_is_bound() -> None:
    world, pod = waiting_world(ALLOW)
    world.run()
    assert world.node_of(pod) == "n1"


class Attaches:
    """Waits for something until its pod is gone; the second pod need not wait."""

    name = "Attaches"

    def pre_bind(self, pod: PodQuery, node: str, *_: Any) -> Plan:
        def wait_for(cluster: Snapshot) -> Status | None:
            return None if pod.uid in cluster.pods_on(node) else error("the pod does not exist any more")

        return Plan() if pod.uid == "second" else Plan((), wait_for, 10, error("timed out"))


@pytest.mark.parametrize(
    ("made_again", "told", "tries"),
    [
        (
            False,
            [("default/web", "FailedScheduling", 'running PreBind plugin "Attaches": the pod does not exist any more')],
            1,
        ),
        (True, [("default/web", "Scheduled", "Successfully assigned default/web to n1")], 2),
    ],
    ids=["gone", "made again"],
)
def test_a_pod_deleted_while_its_node_is_prepared_is_told_why_unless_it_was_made_again(
    made_again: bool, told: list[tuple[str, str, str]], tries: int
) -> None:
    """Source: A042 to A044."""
    world = World(a_node("n1"), profile=a_profile(Attaches(), DefaultBinder()))
    pod = small("web")
    again = small("web", metadata={"uid": "second"})
    world.create(pod)

    async def deleted(seconds: float) -> None:
        world.clock.seconds += seconds
        if world.server.pods[pod.key].metadata.uid == pod.metadata.uid:
            world.feed.removed(world.server.pods.pop(pod.key))
            if made_again:
                world.create(again)

    world.desk.sleep = deleted
    world.run()

    assert world.events.told == told
    assert [list(write.body["status"]) for write in world.server.said("status")] == [["nominatedNodeName"]] * tries
    assert len(world.queue.in_flight) == 0


def test_a_rejected_pod_is_undone() -> None:
    world, pod = waiting_world(Permission(Status(Code.UNSCHEDULABLE, ("not now",))))

    world.run()

    assert world.node_of(pod) == ""
    assert world.events.told == [("default/web", "FailedScheduling", "0/1 nodes are available: 1 not now.")]
    assert dict(world.state.placed) == {}
