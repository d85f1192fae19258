"""Pods that take node resources through claims: binding and Unreserve.

Source: pkg/scheduler/framework/plugins/dynamicresources/dynamicresources.go, DynamicResources.Reserve,
DynamicResources.Unreserve, DynamicResources.bindClaim; pkg/scheduler/schedule_one.go, Scheduler.assume (1.36).
"""

import asyncio
from typing import Any

from extender.client.errors import ConflictError, ServerError
from extender.client.transport import STRATEGIC_MERGE_PATCH
from extender.config.feature_gates import FeatureGates
from extender.config.releases import RELEASE_1_36
from extender.framework.api_plan import ApiCall
from extender.scheduler.api_writer import ApiWriter
from tests.build import make_node, make_pod
from tests.unit.dra.builders import make_claim, make_device_class, make_slice
from tests.unit.scheduler.builders import SchedulerHarness
from tests.unit.scheduler.test_api_writer import FakeWriter

ON = FeatureGates({"DRANodeAllocatableResources": True}, RELEASE_1_36)
CLAIM_RESOURCES = {"resourceClaimName": "one", "containers": ["app"], "resources": {"cpu": "2"}}
UNRESERVE_PATCH = {
    "metadata": {"uid": "uid-one"},
    "status": {"reservedFor": [{"$patch": "delete", "uid": "uid-default-web"}]},
}


def claiming(name: str, claim: str, cpu: str = "1") -> Any:
    container = {"name": "app", "resources": {"requests": {"cpu": cpu}, "claims": [{"name": "dev"}]}}
    return make_pod(
        name, spec={"containers": [container], "resourceClaims": [{"name": "dev", "resourceClaimName": claim}]}
    )


def make_harness() -> SchedulerHarness:
    mapping = {"nodeAllocatableResourceMappings": {"cpu": {"allocationMultiplier": "2"}}}
    offered = make_slice({"node": "n1", "devices": {"d0": mapping, "d1": mapping}})
    return SchedulerHarness(
        make_node("n1"),
        make_device_class("gpu"),
        offered,
        make_claim("one", {"r": {}}),
        make_claim("two", {"r": {}}),
        gates=ON,
    )


def cpu(harness: SchedulerHarness) -> int:
    snapshot = harness.cache.snapshot()
    return int(snapshot.view().requested(snapshot.symbols.resources.intern("cpu"))[0])


def pod_statuses(harness: SchedulerHarness) -> list[Any]:
    bodies = (api_call.body["status"] for api_call in harness.api.calls_to("status") if api_call.kind == "Pod")
    key = "nodeAllocatableResourceClaimStatuses"
    return [body[key] for body in bodies if key in body]


def test_the_status_lists_claim_resources_before_binding_and_the_next_pod_finds_less() -> None:
    harness = make_harness()
    pod, late = claiming("web", "one"), claiming("late", "two")
    harness.create(pod, late)

    harness.run()

    assert (harness.node_of(pod), harness.node_of(late)) == ("n1", "")
    assert pod_statuses(harness) == [[CLAIM_RESOURCES]]
    order = [(api_call.kind, api_call.subresource) for api_call in harness.api.calls if api_call.name in {"web", "one"}]
    assert order[0] == ("Pod", "status")  # where it is to go, in advance
    assert order[1:] == [("ResourceClaim", ""), ("ResourceClaim", "status"), ("Pod", "status"), ("Pod", "binding")]
    assert cpu(harness) == 3000
    message = next(note for key, _, note in harness.events.recorded if key == "default/late")
    assert message.startswith("0/1 nodes are available: 1 Insufficient cpu.")


def test_written_status_is_undone_before_the_pod_is_retried() -> None:
    harness = make_harness()
    pod = claiming("web", "one")
    harness.api.errors["binding"] = [ServerError("etcd is down", 500)]
    harness.create(pod)

    harness.run()

    assert harness.node_of(pod) == ""
    assert pod_statuses(harness) == [[CLAIM_RESOURCES], None]
    (released,) = [api_call for api_call in harness.api.calls if api_call.strategic]
    assert (released.kind, released.name, released.subresource) == ("ResourceClaim", "one", "status")
    assert released.body == UNRESERVE_PATCH
    assert (cpu(harness), dict(harness.cache.assigned_pods)) == (0, {})
    assert harness.queue.count_pending_pods()["backoff"] == 1

    harness.run(turns=2)
    assert harness.node_of(pod) == "n1"


def test_a_failed_unreserve_call_does_not_stop_the_requeue() -> None:
    harness = make_harness()
    harness.api.errors["binding"] = [ServerError("etcd is down", 500)]
    harness.create(claiming("web", "one"))
    harness.api.errors["status"] = []
    call = harness.api.call

    async def failing(api_call: ApiCall, *_: Any) -> None:
        if api_call.strategic:
            raise ConflictError("the claim was recreated")
        await call(api_call)

    harness.api.call = failing

    harness.run()

    assert pod_statuses(harness) == [[CLAIM_RESOURCES], None]
    assert harness.queue.count_pending_pods()["backoff"] == 1


def test_a_former_leader_makes_no_unreserve_calls() -> None:
    harness = make_harness()
    pod = claiming("web", "one")
    harness.create(pod)
    call = harness.api.call

    async def losing(api_call: ApiCall, *_: Any) -> None:
        await call(api_call)
        harness.leader.leads = False

    harness.api.call = losing

    harness.run()

    assert [api_call.kind for api_call in harness.api.calls if api_call.strategic] == []
    assert (harness.node_of(pod), dict(harness.cache.assigned_pods)) == ("", {})


def test_a_strategic_patch_is_sent_as_one() -> None:
    writer = FakeWriter()
    api_call = ApiCall("patch", "ResourceClaim", "default", "one", UNRESERVE_PATCH, "status", strategic=True)
    asyncio.run(ApiWriter(writer).call(api_call))  # type: ignore[arg-type]
    [(verb, args, given)] = writer.calls
    assert (verb, args) == ("patch", ("ResourceClaim", "default", "one", UNRESERVE_PATCH))
    assert (given["options"].subresource, given["content_type"]) == ("status", STRATEGIC_MERGE_PATCH)
