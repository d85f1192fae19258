"""Pods that take node resources through claims, on their way to a node and back. Source: B117 to B119, A022, H063."""

import asyncio
from typing import Any

from extender.client.errors import ConflictError, ServerError
from extender.client.transport import STRATEGIC_MERGE_PATCH
from extender.config.gates import FeatureGates
from extender.framework.points import Write
from extender.loop.api_server import ApiServer
from extender.loop.outside import Always
from tests.build import a_node, a_pod
from tests.unit.allocation.worlds import a_claim, a_class, a_slice
from tests.unit.loop.test_api_server import Calls
from tests.unit.loop.world import World

ON = FeatureGates({"DRANodeAllocatableResources": True})
TAKEN = {"resourceClaimName": "one", "containers": ["app"], "resources": {"cpu": "2"}}
GIVEN_BACK = {
    "metadata": {"uid": "uid-one"},
    "status": {"reservedFor": [{"$patch": "delete", "uid": "uid-default-web"}]},
}


def claiming(name: str, claim: str, cpu: str = "1") -> Any:
    container = {"name": "app", "resources": {"requests": {"cpu": cpu}, "claims": [{"name": "dev"}]}}
    return a_pod(
        name, spec={"containers": [container], "resourceClaims": [{"name": "dev", "resourceClaimName": claim}]}
    )


def a_world() -> World:
    mapping = {"nodeAllocatableResourceMappings": {"cpu": {"allocationMultiplier": "2"}}}
    offered = a_slice({"node": "n1", "devices": {"d0": mapping, "d1": mapping}})
    return World(a_node("n1"), a_class("gpu"), offered, a_claim("one", {"r": {}}), a_claim("two", {"r": {}}), gates=ON)


def cpu(world: World) -> int:
    snapshot = world.state.snapshot()
    return int(snapshot.view().requested(snapshot.vocabulary.resources.id("cpu"))[0])


def pod_statuses(world: World) -> list[Any]:
    bodies = (write.body["status"] for write in world.server.said("status") if write.kind == "Pod")
    key = "nodeAllocatableResourceClaimStatuses"
    return [body[key] for body in bodies if key in body]


def test_a_pod_is_told_what_it_takes_before_it_is_bound_and_the_next_finds_less() -> None:
    world = a_world()
    pod, late = claiming("web", "one"), claiming("late", "two")
    world.create(pod, late)

    world.run()

    assert (world.node_of(pod), world.node_of(late)) == ("n1", "")
    assert pod_statuses(world) == [[TAKEN]]
    order = [(write.kind, write.subresource) for write in world.server.writes if write.name in {"web", "one"}]
    assert order[0] == ("Pod", "status")  # where it is to go, in advance
    assert order[1:] == [("ResourceClaim", ""), ("ResourceClaim", "status"), ("Pod", "status"), ("Pod", "binding")]
    assert cpu(world) == 3000
    message = next(note for key, _, note in world.events.told if key == "default/late")
    assert message.startswith("0/1 nodes are available: 1 Insufficient cpu.")


def test_what_was_written_is_taken_back_before_the_pod_is_tried_again() -> None:
    world = a_world()
    pod = claiming("web", "one")
    world.server.faults["binding"] = [ServerError("etcd is down", 500)]
    world.create(pod)

    world.run()

    assert world.node_of(pod) == ""
    assert pod_statuses(world) == [[TAKEN], None]
    (released,) = [write for write in world.server.writes if write.strategic]
    assert (released.kind, released.name, released.subresource) == ("ResourceClaim", "one", "status")
    assert released.body == GIVEN_BACK
    assert (cpu(world), dict(world.state.placed)) == (0, {})
    assert world.queue.counts()["backoff"] == 1

    world.run(turns=2)
    assert world.node_of(pod) == "n1"


def test_a_claim_that_cannot_be_given_back_keeps_no_pod_from_the_queue() -> None:
    world = a_world()
    world.server.faults["binding"] = [ServerError("etcd is down", 500)]
    world.create(claiming("web", "one"))
    world.server.faults["status"] = []
    carry_out = world.server.carry_out

    async def failing(write: Write) -> None:
        if write.strategic:
            raise ConflictError("the claim was made again")
        await carry_out(write)

    world.server.carry_out = failing  # type: ignore[method-assign]

    world.run()

    assert pod_statuses(world) == [[TAKEN], None]
    assert world.queue.counts()["backoff"] == 1


def test_one_who_leads_no_more_takes_nothing_back() -> None:
    world = a_world()
    pod = claiming("web", "one")
    world.create(pod)
    carry_out = world.server.carry_out

    async def losing(write: Write) -> None:
        await carry_out(write)
        world.leader.leads = False

    world.server.carry_out = losing  # type: ignore[method-assign]

    world.run()

    assert [write.kind for write in world.server.writes if write.strategic] == []
    assert (world.node_of(pod), dict(world.state.placed)) == ("", {})


def test_a_strategic_patch_is_sent_as_one() -> None:
    calls = Calls()
    write = Write("patch", "ResourceClaim", "default", "one", GIVEN_BACK, "status", strategic=True)
    asyncio.run(ApiServer(calls, Always()).carry_out(write))  # type: ignore[arg-type]
    [(verb, args, given)] = calls.made
    assert (verb, args) == ("patch", ("ResourceClaim", "default", "one", GIVEN_BACK))
    assert (given["subresource"], given["content_type"]) == ("status", STRATEGIC_MERGE_PATCH)
