"""Pod groups from the queue to their nodes, or back to the queue together."""

import asyncio
from collections.abc import Callable
from dataclasses import replace
from typing import Any, ClassVar, cast

import msgspec
import pytest

from extender import wiring
from extender.carrying import nobody
from extender.client.errors import ServerError
from extender.cluster.pods import PodQuery
from extender.config.gates import FeatureGates
from extender.framework.points import Write
from extender.framework.profiles import Profile
from extender.loop.outside import Tally
from extender.objects.pod import Pod
from tests.build import a_node, a_pod
from tests.groups import a_group, a_member
from tests.unit.client.scripted import Reply, Stream
from tests.unit.loop.asking import FILTER, Asking, asked, passing
from tests.unit.loop.world import World

CPU = {"cpu": "1"}
ROOM = {"cpu": "2", "memory": "4Gi", "pods": "9"}
GANG = ("GenericWorkload", "GangScheduling")
NOT_ENOUGH = (
    "pod group is unschedulable, waiting for minCount pods from a gang to be scheduled, "
    "one or more plugins asked to wait and no plugin rejected pod"
)


def gated(*gates: str) -> Profile:
    return wiring.scheduling(gates=FeatureGates(dict.fromkeys(gates, True))).first


def members(names: str, **more: Any) -> list[Pod]:
    return [a_member(name, requests=CPU, **more) for name in names]


def nodes_of(world: World, pods: list[Pod]) -> list[str]:
    return [world.node_of(pod) for pod in pods]


def condition(world: World) -> dict[str, Any]:
    """The last condition written into the group's status, without its time."""
    said = [write for write in world.server.said("status") if write.kind == "PodGroup"]
    (only,) = said[-1].body["status"]["conditions"]
    return {name: value for name, value in only.items() if name != "lastTransitionTime"}


def test_a_gang_that_fits_is_bound_together() -> None:
    """A150, A151."""
    world = World(
        a_node("n1", allocatable=ROOM), a_node("n2", allocatable=ROOM), a_group(min_count=3), profile=gated(*GANG)
    )
    pods = members("abc")
    world.create(*pods)

    world.run()

    assert sorted(filter(None, nodes_of(world, pods))) in (["n1", "n1", "n2"], ["n1", "n2", "n2"])
    assert len(world.queue.in_flight) == 0
    assert condition(world) == {
        "type": "PodGroupScheduled",
        "status": "True",
        "reason": "Scheduled",
        "message": "",
        "observedGeneration": 0,
    }


def test_a_gang_waits_for_its_members_before_the_queue() -> None:
    """B130, B132: the pod that completes the gang lets the others in."""
    world = World(a_node("n1"), a_group(min_count=2), profile=gated(*GANG))
    first, second = members("ab")
    world.create(first)
    world.run()
    assert world.queue.counts()["gated"] == 1

    world.create(second)
    world.run()

    assert nodes_of(world, [first, second]) == ["n1", "n1"]


def test_a_gang_that_does_not_fit_goes_back_to_the_queue_as_one() -> None:
    """A149, A150: nothing is assumed or bound, and all are tried again after their backoff."""
    world = World(a_node("n1", allocatable=ROOM), a_group(min_count=3), profile=gated(*GANG))
    pods = members("abc")
    world.create(*pods)

    world.attempt()

    assert dict(world.state.placed) == {}
    told = {key: note for key, reason, note in world.events.told if reason == "FailedScheduling"}
    assert told["default/a"] == told["default/b"] == NOT_ENOUGH
    assert told["default/c"].startswith("0/1 nodes are available: 1 Insufficient cpu.")
    assert condition(world)["message"] == "pod group is unschedulable"
    assert (condition(world)["status"], condition(world)["reason"]) == ("False", "Unschedulable")
    assert world.queue.counts() == {"active": 0, "backoff": 3, "unschedulable": 0, "gated": 0}

    world.feed.added(a_node("n2", allocatable=ROOM))
    world.run(turns=3)
    assert all(nodes_of(world, pods))


def test_with_the_gates_off_members_are_pods_like_any_other() -> None:
    world = World(a_node("n1", allocatable=ROOM), a_group(min_count=3))
    pods = members("abc")
    world.create(*pods)

    world.run()

    assert nodes_of(world, pods) == ["n1", "n1", ""]
    assert [write for write in world.server.writes if write.kind == "PodGroup"] == []


def test_a_scheduled_group_stays_so_whatever_becomes_of_later_members() -> None:
    """A151."""
    status = {"conditions": [{"type": "PodGroupScheduled", "status": "True", "reason": "Scheduled"}]}
    world = World(a_node("n1", allocatable=ROOM), a_group(min_count=1, status=status), profile=gated(*GANG))
    big = a_member("big", requests={"cpu": "9"})
    world.create(big)

    world.attempt()

    assert world.node_of(big) == ""
    assert [write for write in world.server.writes if write.kind == "PodGroup"] == []


def test_a_scheduled_group_stays_so_though_the_watch_is_late() -> None:
    """A151: what was written counts at once."""
    world = World(a_node("n1", allocatable=ROOM), a_group(min_count=2), profile=gated(*GANG))
    world.create(*members("abc"))
    assert condition_after(world) == "True"

    world.create(a_member("d", requests=CPU))
    assert condition_after(world) == "True"
    assert len([write for write in world.server.writes if write.kind == "PodGroup"]) == 1


def condition_after(world: World) -> str:
    """The status of the last condition written, after one more attempt."""
    world.attempt()
    return str(condition(world)["status"])


def test_a_member_whose_binding_fails_is_tried_again_alone() -> None:
    world = World(a_node("n1", allocatable=ROOM), a_group(min_count=2), profile=gated(*GANG))
    pods = members("ab")
    world.server.faults["binding"] = [ServerError("etcd is down", 500)]
    world.create(*pods)

    world.run(turns=3)

    assert nodes_of(world, pods) == ["n1", "n1"]


WAP = (*GANG, "WorkloadAwarePreemption")


def test_a_group_makes_room_for_itself_as_a_whole() -> None:
    """A153, E054: one victim would do for a member, but the gang needs both."""
    low = [a_pod(f"low-{at}", node=f"n{at}", requests={"cpu": "2"}) for at in (1, 2)]
    nodes = [a_node(f"n{at}", allocatable=ROOM) for at in (1, 2)]
    group = a_group(min_count=2, priority=10)
    world = World(*nodes, *low, group, profile=gated(*WAP))
    pods = [a_member(name, requests={"cpu": "2"}, priority=10) for name in "ab"]
    world.create(*pods)

    world.attempt()

    assert sorted(write.name for write in world.server.said("delete")) == ["low-1", "low-2"]
    why = [write.body["status"]["conditions"][0] for write in world.server.said("status") if write.name == "low-1"]
    assert why[0]["message"] == "default-scheduler: preempting to accommodate a higher priority podgroup"
    preempted = {key: note for key, reason, note in world.events.told if reason == "Preempted"}
    assert preempted["default/low-2"] == "Preempted by podgroup uid-ring on node cluster"
    assert condition(world)["message"] == "pod group is unschedulable"

    world.run(turns=3)
    assert sorted(nodes_of(world, pods)) == ["n1", "n2"]
    assert condition(world)["status"] == "True"


@pytest.mark.parametrize(
    ("priority", "policy", "said"),
    [
        pytest.param(0, None, "No preemption victims found for incoming preemptor", id="nobody is of lower priority"),
        pytest.param(10, "Never", "not eligible due to preemptionPolicy=Never.", id="a member must not preempt"),
    ],
)
def test_a_group_is_told_why_no_room_is_made(priority: int, policy: str | None, said: str) -> None:
    """E052."""
    spec = {} if policy is None else {"preemptionPolicy": policy}
    low = a_pod("low", node="n1", requests={"cpu": "2"})
    world = World(a_node("n1", allocatable=ROOM), low, a_group(min_count=1, priority=priority), profile=gated(*WAP))
    world.create(a_member("a", requests={"cpu": "2"}, priority=priority, spec=spec))

    world.attempt()

    assert condition(world)["message"] == f"pod group is unschedulable, {said}"
    assert world.server.said("delete") == []


def test_an_extender_has_its_say_about_every_member() -> None:
    """A147, F026: it is asked with the members before on their nodes, and lets each have one node only."""
    nodes = [a_node(name, allocatable={"cpu": "1", "memory": "4Gi", "pods": "9"}) for name in ("n1", "n2", "n3")]
    world = World(*nodes, a_group(min_count=2), profile=gated(*GANG))
    pods = members("ab")
    world.create(*pods)

    async def test(asking: Asking) -> None:
        asking.server.on("POST /a/filter", Reply(body=passing("n3")), Reply(body=passing("n1")))
        await asking.settle()
        offered = [body["NodeNames"] for body in asking.bodies("a/filter")]
        assert offered == [["n1", "n2", "n3"], ["n1", "n2"]]

    asked(world, [FILTER], test)
    assert sorted(nodes_of(world, pods)) == ["n1", "n3"]


def test_an_extender_that_refuses_a_member_keeps_the_gang_away() -> None:
    world = World(a_node("n1"), a_group(min_count=2), profile=gated(*GANG))
    pods = members("ab")
    world.create(*pods)

    async def test(asking: Asking) -> None:
        refuses = passing(failed={"n1": "not here"})
        asking.server.on("POST /a/filter", Reply(body=passing("n1")), Reply(body=refuses))
        await asking.world.scheduler.turn()
        told = {key: note for key, reason, note in world.events.told if reason == "FailedScheduling"}
        assert told["default/a"] == NOT_ENOUGH
        assert told["default/b"].startswith("0/1 nodes are available: 1 not here.")

    asked(world, [FILTER], test)
    assert nodes_of(world, pods) == ["", ""]


@pytest.mark.parametrize("what", ["the first member", "its node"])
def test_what_goes_while_others_are_decided_is_not_bound(what: str) -> None:
    nodes = [a_node("n1", allocatable=ROOM), a_node("n2", allocatable=ROOM)]
    world = World(*nodes, a_group(min_count=1), profile=gated(*GANG))
    first, second = members("ab")
    world.create(first, second)

    async def test(asking: Asking) -> None:
        late = Stream([1.0, msgspec.json.encode(passing("n2"))])
        asking.server.on("POST /a/filter", Reply(body=passing("n1")), late)
        turn = asyncio.create_task(world.scheduler.turn())
        while len(asking.bodies("a/filter")) < 2:
            await asyncio.sleep(0.1)
        world.feed.removed(first if what == "the first member" else nodes[0])
        await turn
        while world.desk.jobs:
            await asyncio.sleep(0.1)

    asked(world, [FILTER], test)
    assert nodes_of(world, [first, second]) == ["", "n2"]
    assert [placed.key for placed in world.state.placed.values()] == ["default/b"]
    assert len(world.queue.in_flight) == 0


class Counting:
    """Remembers how attempts for groups ended, and breaks if told to; a tally that keeps nothing else."""

    def __init__(self, fault: Exception | None = None) -> None:
        self.results: list[str] = []
        self._fault = fault

    def __getattr__(self, what: str) -> Callable[..., None]:
        return nobody

    def group_attempted(self, profile: str, result: str, seconds: float) -> None:
        self.results.append(result)

    def group_decided(self, seconds: float) -> None:
        if self._fault is not None:
            raise self._fault


class Faulty:
    """A plugin that breaks."""

    name: ClassVar[str] = "Faulty"

    def filter(self, *_: Any) -> Any:
        raise RuntimeError("out of order")


def counted(world: World, *pods: Pod) -> list[str]:
    """How the first attempt for the group of *pods* is counted."""
    counting = Counting()
    world.desk.tally = cast("Tally", counting)
    world.create(*pods)
    world.attempt()
    return counting.results


@pytest.mark.parametrize(
    ("min_count", "priority", "result"),
    [(2, 0, "scheduled"), (3, 0, "unschedulable"), (3, 9, "waiting_on_preemption")],
)
def test_attempts_are_counted_by_how_they_ended(min_count: int, priority: int, result: str) -> None:
    """H034."""
    low = a_pod("low", node="n2", requests={"cpu": "2"})
    nodes = [a_node(name, allocatable=ROOM) for name in ("n1", "n2")]
    group = a_group(min_count=min_count, priority=priority)
    world = World(*nodes, low, group, profile=gated(*WAP))
    assert counted(world, *members("abc", priority=priority)) == [result]


def test_a_plugin_that_breaks_makes_the_attempt_an_error() -> None:
    """A148, A151: the member it broke on is told so, the next that it was another."""
    profile = gated(*GANG)
    broken = replace(profile, filters=(*profile.filters, Faulty()))
    world = World(a_node("n1", allocatable=ROOM), a_group(min_count=2), profile=broken)
    assert counted(world, *members("ab")) == ["error"]
    fault = 'running "Faulty" filter plugin: RuntimeError: out of order'
    whole = f"failed to schedule other pod from a pod group: {fault}"
    assert {key: note for key, _, note in world.events.told} == {"default/a": fault, "default/b": whole}
    assert (condition(world)["reason"], condition(world)["message"]) == ("SchedulerError", whole)


def test_a_fault_of_our_own_brings_all_members_back_to_the_queue() -> None:
    world = World(a_node("n1", allocatable=ROOM), a_group(min_count=2), profile=gated(*GANG))
    world.desk.tally = cast("Tally", Counting(RuntimeError("no ink")))
    pods = members("ab")
    world.create(*pods)

    world.attempt()

    assert {key: note for key, _, note in world.events.told} == dict.fromkeys(
        ("default/a", "default/b"), "RuntimeError: no ink"
    )
    assert world.queue.counts()["backoff"] == 2
    assert len(world.queue.in_flight) == 0


class Noting:
    """Wants something written whenever a reservation is taken back."""

    name: ClassVar[str] = "Noting"

    def reserve(self, *_: Any) -> None:
        """All is set aside."""

    def unreserve(self, pod: PodQuery, *_: Any) -> tuple[Write, ...]:
        return (Write("patch", "ResourceClaim", "default", pod.pod.metadata.name, {}),)


@pytest.mark.parametrize(("min_count", "told"), [(2, []), (3, ["a", "b"])], ids=["it fits", "it does not"])
def test_only_members_that_go_nowhere_give_back_what_was_set_aside_for_them(min_count: int, told: list[str]) -> None:
    """B118."""
    plain = gated(*GANG)
    profile = replace(plain, reserves=(*plain.reserves, Noting()))
    world = World(a_node("n1", allocatable=ROOM), a_group(min_count=min_count), profile=profile)
    world.create(*members("abc"[:min_count]))
    world.attempt()
    assert sorted(write.name for write in world.server.writes if write.kind == "ResourceClaim") == told
