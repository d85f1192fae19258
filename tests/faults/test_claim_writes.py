"""Lost responses to the writes of claims: a device is never allocated to two claims."""

import asyncio
from collections.abc import Callable
from typing import Any

import pytest

from extender.fake_apiserver.registry.pod_subresources import bind
from extender.fake_apiserver.registry.resources import RESOURCES_BY_KIND
from tests.faults.builders import LONG_LEASE, FaultHarness, make_node, run
from tests.faulty_apiserver import Fault, FaultKind

CLAIMS = RESOURCES_BY_KIND["resource.k8s.io/v1", "ResourceClaim"]
EVENTS = RESOURCES_BY_KIND["v1", "Event"]
SLICES = RESOURCES_BY_KIND["resource.k8s.io/v1", "ResourceSlice"]
DRIVER = "gpu.example.com"
GPU = "example.com/gpu"


def create_claims_for_one_device(harness: FaultHarness, *names: str) -> None:
    """Create node n1 with one device, and claims for one device."""
    harness.create_nodes(1)
    device_class = {"kind": "DeviceClass", "metadata": {"name": "gpu"}, "spec": {"extendedResourceName": GPU}}
    pool = {"name": "n1", "generation": 1, "resourceSliceCount": 1}
    slice_spec = {"driver": DRIVER, "nodeName": "n1", "pool": pool, "devices": [{"name": "gpu-0"}]}
    resource_slice = {"kind": "ResourceSlice", "metadata": {"name": "n1-gpu"}, "spec": slice_spec}
    requests = [{"name": "gpu", "exactly": {"deviceClassName": "gpu"}}]
    claims = [
        {"kind": "ResourceClaim", "metadata": {"name": name}, "spec": {"devices": {"requests": requests}}}
        for name in names
    ]
    for manifest in (device_class, resource_slice, *claims):
        harness.server.api.create_from_manifest({"apiVersion": "resource.k8s.io/v1", **manifest})


def find_allocated_claims(harness: FaultHarness) -> list[str]:
    return [
        claim["metadata"]["name"]
        for claim in harness.server.api.list_objects(CLAIMS)
        if claim.get("status", {}).get("allocation")
    ]


def make_pod_with_claim(harness: FaultHarness, name: str) -> None:
    claims: list[dict[str, Any]] = [{"name": "gpu", "resourceClaimName": name}]
    harness.create_pods(name, resourceClaims=claims)


@pytest.mark.parametrize(
    "fault",
    [
        Fault(FaultKind.NO_RESPONSE, "patch", "resourceclaims/status", times=3),
        Fault(FaultKind.TIMEOUT, "patch", "resourceclaims/status", times=3),
        Fault(FaultKind.TIMEOUT, "patch", "resourceclaims/status", delay_seconds=100, times=1),
        Fault(FaultKind.TIMEOUT, "patch", "resourceclaims/status", retry_after="1", times=1),
        Fault(FaultKind.DELAY, "patch", "resourceclaims/status", delay_seconds=100, times=1),
    ],
    ids=lambda fault: f"{fault.kind.value} {fault.code} {fault.delay_seconds:g} s {fault.retry_after}",
)
def test_a_device_is_not_allocated_again_while_the_outcome_of_its_allocation_is_unknown(fault: Fault) -> None:
    """The watch of the claims does not show the allocation. kube-scheduler would allocate the device twice."""

    async def scenario(harness: FaultHarness) -> None:
        create_claims_for_one_device(harness, "a", "b")
        # The watch shows the finalizer of the claim and nothing after it.
        harness.inject_fault(FaultKind.STALL_WATCH, "watch", "resourceclaims", times=1, after_events=1)
        harness.server.faults.add(fault)
        await harness.start_leader("DynamicResources", **LONG_LEASE)
        make_pod_with_claim(harness, "a")
        await harness.wait_until(lambda: bool(harness.recorder.requests("PATCH", "/resourceclaims/a/status")))
        await asyncio.sleep(3)
        make_pod_with_claim(harness, "b")
        await asyncio.sleep(150)
        await harness.wait_until_consistent("b")
        assert find_allocated_claims(harness) == ["a"]

    run(scenario)


@pytest.mark.parametrize(
    ("change", "subresource", "reserved_for", "status_writes"),
    [
        pytest.param(lambda _: {"annotations": {"writer": "other"}}, "", ["a"], 2, id="annotated"),
        pytest.param(lambda _: {"finalizers": None}, "", ["a"], 2, id="the finalizer was removed"),
        # The rejected write, the call of Unreserve, and the reservation of the second attempt.
        pytest.param(lambda allocation: allocation, "status", ["other", "a"], 3, id="allocated by another scheduler"),
    ],
)
def test_the_status_of_a_claim_that_changes_meanwhile_is_written_again_unless_it_was_allocated(
    change: Callable[[Any], Any], subresource: str, reserved_for: list[str], status_writes: int
) -> None:
    """kube-scheduler does the same.

    Source: pkg/scheduler/framework/plugins/dynamicresources/dynamicresources.go, DynamicResources.bindClaim (1.37).
    """
    result = {"request": "gpu", "driver": DRIVER, "pool": "n1", "device": "gpu-0"}
    consumer = {"resource": "pods", "name": "other", "uid": "other"}
    allocation = {"allocation": {"devices": {"results": [result]}}, "reservedFor": [consumer]}

    async def scenario(harness: FaultHarness) -> None:
        create_claims_for_one_device(harness, "a")
        await harness.start_leader("DynamicResources", **LONG_LEASE)
        harness.server.faults.add(Fault(FaultKind.DELAY, "patch", "resourceclaims/status", delay_seconds=5, times=1))
        make_pod_with_claim(harness, "a")
        await harness.wait_until(lambda: bool(harness.recorder.requests("PATCH", "/resourceclaims/a/status")))
        key = "status" if subresource else "metadata"
        harness.server.api.patch(CLAIMS, "default", "a", {key: change(allocation)}, subresource=subresource)
        await harness.wait_until_consistent()
        (claim,) = harness.server.api.list_objects(CLAIMS)
        assert [entry["name"] for entry in claim["status"]["reservedFor"]] == reserved_for
        assert claim["metadata"]["finalizers"] == ["resource.kubernetes.io/delete-protection"]
        assert len(harness.recorder.requests("PATCH", "/resourceclaims/a/status")) == status_writes

    run(scenario)


@pytest.mark.parametrize(
    ("faults", "status_writes"),
    [
        # The allocation of the first attempt, the call of Unreserve, and the reservation of the second attempt.
        pytest.param([], 3, id="without another fault"),
        # The call of Unreserve is made again until its outcome is known.
        pytest.param([Fault(FaultKind.NO_RESPONSE, "patch", "resourceclaims/status", skip=1, times=2)], 5, id="lost"),
        pytest.param([Fault(FaultKind.TIMEOUT, "patch", "resourceclaims/status", skip=1, times=1)], 4, id="timeout"),
    ],
)
def test_a_claim_is_reserved_again_although_the_watch_does_not_show_that_unreserve_has_changed_it(
    faults: list[Fault], status_writes: int
) -> None:
    """kube-scheduler would bind a pod whose claim is not reserved for it."""

    async def scenario(harness: FaultHarness) -> None:
        create_claims_for_one_device(harness, "a")
        # The watch shows the finalizer and the reservation of the first attempt, and nothing after them.
        harness.inject_fault(FaultKind.STALL_WATCH, "watch", "resourceclaims", times=1, after_events=2)
        for fault in (Fault(FaultKind.STATUS, "create", "pods/binding", code=403, times=1), *faults):
            harness.server.faults.add(fault)
        await harness.start_leader("DynamicResources", **LONG_LEASE)
        make_pod_with_claim(harness, "a")
        await harness.wait_until_consistent()
        (claim,) = harness.server.api.list_objects(CLAIMS)
        assert [consumer["name"] for consumer in claim["status"]["reservedFor"]] == ["a"]
        assert len(harness.recorder.requests("PATCH", "/resourceclaims/a/status")) == status_writes

    run(scenario)


def test_pods_that_share_a_claim_are_reserved_at_the_same_time() -> None:
    """kube-scheduler repeats a write after a conflict with the write for another pod.

    Source: pkg/scheduler/framework/plugins/dynamicresources/dynamicresources.go, DynamicResources.bindClaim (1.36).
    """

    async def scenario(harness: FaultHarness) -> None:
        create_claims_for_one_device(harness, "a")
        await harness.start_leader("DynamicResources", **LONG_LEASE)
        make_pod_with_claim(harness, "a")
        await harness.wait_until_consistent()
        harness.server.faults.add(Fault(FaultKind.DELAY, "patch", "resourceclaims/status", delay_seconds=5, times=3))
        for name in ("b", "c", "d"):
            harness.create_pods(name, resourceClaims=[{"name": "gpu", "resourceClaimName": "a"}])
        await harness.wait_until_consistent()
        (claim,) = harness.server.api.list_objects(CLAIMS)
        assert sorted(consumer["name"] for consumer in claim["status"]["reservedFor"]) == ["a", "b", "c", "d"]
        # The allocation for the first pod, and a reservation for each of the others.
        assert len(harness.recorder.requests("PATCH", "/resourceclaims/a/status")) == 4

    run(scenario)


@pytest.mark.parametrize(
    ("resource", "reserved_for", "purpose"),
    [
        pytest.param("resourceclaims", "", "add finalizer", id="finalizer"),
        pytest.param("resourceclaims/status", "", "add allocation and reservation", id="allocation"),
        pytest.param("resourceclaims/status", "b", "add reservation", id="reservation"),
    ],
)
def test_the_message_of_a_failed_write_says_what_it_adds(resource: str, reserved_for: str, purpose: str) -> None:
    """kube-scheduler's message starts in the same way.

    Source: pkg/scheduler/framework/plugins/dynamicresources/dynamicresources.go, DynamicResources.bindClaim (1.37).
    """

    async def scenario(harness: FaultHarness) -> None:
        create_claims_for_one_device(harness, "a")
        await harness.start_leader("DynamicResources", **LONG_LEASE)
        if reserved_for:
            harness.create_pods(reserved_for, resourceClaims=[{"name": "gpu", "resourceClaimName": "a"}])
            await harness.wait_until_consistent()
        harness.server.faults.add(Fault(FaultKind.STATUS, "patch", resource, code=403, times=1))
        make_pod_with_claim(harness, "a")
        await harness.wait_until_consistent()
        (event,) = (each for each in harness.server.api.list_objects(EVENTS) if each["reason"] == "FailedScheduling")
        start = f'running PreBind plugin "DynamicResources": {purpose} to claim default/a: '
        assert event["message"].startswith(start), event["message"]

    run(scenario)


@pytest.mark.parametrize("code", [403, 500])
def test_a_deallocation_that_fails_is_tried_again_every_ten_seconds(code: int) -> None:
    """Each failure had activated the pod at once: hundreds of attempts in a second."""
    terms = [{"matchFields": [{"key": "metadata.name", "operator": "In", "values": ["gone"]}]}]
    result = {"request": "gpu", "driver": DRIVER, "pool": "gone", "device": "gpu-0"}
    allocation = {"nodeSelector": {"nodeSelectorTerms": terms}, "devices": {"results": [result]}}

    async def scenario(harness: FaultHarness) -> None:
        create_claims_for_one_device(harness, "a")
        harness.server.api.patch(CLAIMS, "default", "a", {"status": {"allocation": allocation}}, subresource="status")
        await harness.start_leader("DynamicResources", **LONG_LEASE)
        harness.server.faults.add(Fault(FaultKind.STATUS, "patch", "resourceclaims/status", code=code))
        make_pod_with_claim(harness, "a")
        await asyncio.sleep(35)
        assert len(harness.recorder.requests("PATCH", "/resourceclaims/a/status")) == 4
        harness.server.faults.clear()
        await harness.wait_until_consistent()

    run(scenario)


@pytest.mark.parametrize("blind", [False, True], ids=["seen by the watch", "not seen by the watch"])
def test_the_claim_of_a_pod_that_another_scheduler_has_bound_stays_reserved(blind: bool) -> None:
    """kube-scheduler removes the reservation, and the devices of the running pod may be allocated again."""
    node_of_any_device = {"allNodes": True, "pool": {"name": "net", "generation": 1, "resourceSliceCount": 1}}

    async def scenario(harness: FaultHarness) -> None:
        create_claims_for_one_device(harness, "a")
        harness.server.api.patch(SLICES, "", "n1-gpu", {"spec": {"nodeName": None, **node_of_any_device}})
        if blind:
            harness.inject_fault(FaultKind.STALL_WATCH, "watch", "pods", times=1, after_events=1)
        await harness.start_leader("DynamicResources", **LONG_LEASE)
        harness.server.faults.add(Fault(FaultKind.DELAY, "create", "pods/binding", delay_seconds=2, times=1))
        make_pod_with_claim(harness, "a")
        await harness.wait_until(lambda: bool(harness.recorder.requests("POST", "/pods/a/binding")))
        claims = harness.server.api.list_objects(CLAIMS)
        harness.server.api.create_from_manifest(make_node("far"))
        target = {"metadata": {"name": "a"}, "target": {"kind": "Node", "name": "far"}}
        bind(harness.server.api, "default", "a", target)
        await harness.wait_until_consistent()
        assert [consumer["name"] for consumer in claims[0]["status"]["reservedFor"]] == ["a"]
        assert harness.server.api.list_objects(CLAIMS) == claims

    run(scenario)


@pytest.mark.parametrize("is_gone", [False, True], ids=["deleted by the scheduler", "deleted by another client"])
def test_a_pod_is_scheduled_again_although_the_watch_has_missed_its_deleted_claim_for_extended_resources(
    is_gone: bool,
) -> None:
    """The devices of the claim had stayed in flight for ever. kube-scheduler frees them at once."""

    async def scenario(harness: FaultHarness) -> None:
        create_claims_for_one_device(harness)
        harness.inject_fault(FaultKind.STALL_WATCH, "watch", "resourceclaims", times=1)
        await harness.start_leader("DynamicResources", **LONG_LEASE)
        harness.server.faults.add(Fault(FaultKind.STATUS, "create", "pods/binding", code=403, times=1))
        harness.server.faults.add(Fault(FaultKind.DELAY, "delete", "resourceclaims", delay_seconds=5, times=1))
        resources = {"requests": {"cpu": "1", GPU: "1"}, "limits": {GPU: "1"}}
        harness.create_pods("a", containers=[{"name": "c", "image": "app:1", "resources": resources}])
        await harness.wait_until(lambda: harness.recorder.received[-1].method == "DELETE")
        if is_gone:
            (claim,) = harness.server.api.list_objects(CLAIMS)
            harness.server.api.delete_now(CLAIMS, "default", claim["metadata"]["name"])
        harness.inject_fault(FaultKind.GONE, "watch", "resourceclaims", times=1)
        await harness.wait_until(lambda: harness.node_of("a") == "n1")
        (claim,) = harness.server.api.list_objects(CLAIMS)
        assert [consumer["name"] for consumer in claim["status"]["reservedFor"]] == ["a"]

    run(scenario)
