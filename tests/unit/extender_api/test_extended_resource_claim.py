"""The verb bind with the claim that the calling scheduler created for extended resources of the pod."""

import asyncio
from typing import Any, cast

import msgspec
import pytest

from extender.api.extender_v1 import BindingArgs
from extender.api.kinds.devices import ResourceClaim
from extender.api.kinds.pod import Pod
from extender.extender_api.extended_resource_claim import is_claim_allocated, use_claim
from tests.build import make_cluster, make_node, make_pod
from tests.unit.dra.builders import DRIVER, make_claim, make_device_class, make_slice
from tests.unit.extender_api.test_bind import FakeApiServer, bind_all, make_bind_verb

GPU, FPGA = "example.com/gpu", "example.com/fpga"
DEVICES = (
    make_device_class("gpu", extendedResourceName=GPU),
    make_device_class("fpga", extendedResourceName=FPGA),
    make_slice({"node": "n1", "devices": {"d1": {}, "d2": {}}}),
)
NAMED = {"extendedResourceClaimStatus": {
    "resourceClaimName": "trainer-1",
    "requestMappings": [{"containerName": "app", "resourceName": GPU, "requestName": "r"}],
}}  # fmt: skip
RESERVATION = [("patch", "ResourceClaim", "trainer-1")]
ARGS = BindingArgs("trainer", "default", "uid-default-trainer", "n1")


def make_trainer(**requests: str) -> Pod:
    return make_pod("trainer", requests={"cpu": "1", GPU: "1", **requests}, status=NAMED)


def make_trainer_claim(node: str = "n1", uid: str = "uid-default-trainer", **metadata: Any) -> ResourceClaim:
    """Make a claim for extended resources with the device d1, which is available on *node*."""
    requirement = {"key": "metadata.name", "operator": "In", "values": [node]}
    result = {"request": "r", "driver": DRIVER, "pool": "pool", "device": "d1"}
    owner = {"apiVersion": "v1", "kind": "Pod", "name": "trainer", "uid": uid, "controller": True}
    return make_claim(
        "trainer-1",
        {"r": {}},
        metadata={
            "annotations": {"resource.kubernetes.io/extended-resource-claim": "true"},
            "ownerReferences": [owner],
            **metadata,
        },
        status={
            "allocation": {
                "devices": {"results": [result]},
                "nodeSelector": {"nodeSelectorTerms": [{"matchFields": [requirement]}]},
            },
            "reservedFor": [{"resource": "pods", "name": "trainer", "uid": uid}],
        },
    )


def test_a_pod_is_bound_with_the_claim_that_the_scheduler_allocated() -> None:
    trainer = make_trainer()
    server = FakeApiServer(trainer)
    bind_verb, _ = make_bind_verb(server, trainer, *DEVICES, make_trainer_claim())
    assert bind_all(bind_verb, ARGS) == [""]
    assert server.bound == [("default", "trainer", "uid-default-trainer", "n1")]
    assert server.written == RESERVATION
    assert bind_verb.cache.assigned_pods["uid-default-trainer"].pod.spec.containers == trainer.spec.containers


@pytest.mark.parametrize(("free", "error"), [
    ("1", ""),
    ("0", "pod default/trainer does not fit node n1: Insufficient example.com/fpga"),
], ids=["free", "in use"])  # fmt: skip
def test_resources_that_the_claim_does_not_provide_are_checked(free: str, error: str) -> None:
    trainer = make_trainer(**{FPGA: "1"})
    node = make_node("n1", allocatable={"cpu": "4", "pods": "9", FPGA: "1"})
    other = make_pod("other", node="n1", requests={} if free == "1" else {FPGA: "1"})
    server = FakeApiServer(trainer)
    bind_verb, _ = make_bind_verb(server, trainer, node, other, *DEVICES, make_trainer_claim())
    assert bind_all(bind_verb, ARGS) == [error]
    assert server.written == ([] if error else RESERVATION)  # a device plugin provides the FPGA without a claim


def test_a_claim_that_the_watch_shows_late_is_awaited() -> None:
    trainer = make_trainer()
    server = FakeApiServer(trainer)
    bind_verb, _ = make_bind_verb(server, trainer, *DEVICES)
    read_pod = server.pod

    async def read_pod_before_the_claim(namespace: str, name: str) -> Pod | None:
        pod = await read_pod(namespace, name)
        asyncio.get_running_loop().call_soon(bind_verb.cache.add_or_update_object, make_trainer_claim())
        return pod

    cast("Any", server).pod = read_pod_before_the_claim
    assert bind_all(bind_verb, ARGS) == [""]
    assert server.written == RESERVATION


@pytest.mark.parametrize(("claim", "want"), [
    (make_trainer_claim(), True),
    (make_trainer_claim(uid="uid-of-another-pod"), False),
    (make_trainer_claim(deletionTimestamp="2026-01-01T00:00:00Z"), False),
    (msgspec.structs.replace(make_trainer_claim(), status=make_claim("none", {}).status), False),
    (make_claim("trainer-2", {}), False),
], ids=["allocated", "of another pod", "being deleted", "not allocated", "with another name"])  # fmt: skip
def test_only_the_allocated_claim_of_the_pod_is_used(claim: ResourceClaim, want: bool) -> None:
    assert is_claim_allocated(make_trainer(), make_cluster(claim)) is want


def test_a_claim_of_another_node_is_not_available() -> None:
    trainer = make_trainer()
    bind_verb, _ = make_bind_verb(FakeApiServer(trainer), trainer, *DEVICES, make_trainer_claim(node="n2"))
    error = "pod default/trainer does not fit node n1: resourceclaim not available on the node"
    assert bind_all(bind_verb, ARGS) == [error]


def test_a_pod_without_a_claim_for_extended_resources_stays_as_it_is() -> None:
    pod = make_pod("plain", requests={GPU: "1"})
    assert use_claim(pod) is pod
