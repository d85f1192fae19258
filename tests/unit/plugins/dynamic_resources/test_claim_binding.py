"""The calls that write the allocations of a pod's claims, and that reserve the claims."""

import copy
from typing import Any

import msgspec
import pytest

from extender.api.kinds.devices import ResourceClaim
from extender.framework.api_plan import ApiPlan
from extender.framework.status import error_status
from tests.build import make_cluster, make_node, make_pod, make_pod_info
from tests.unit.dra.builders import DRIVER, make_allocated_claim, make_claim, make_device_class
from tests.unit.plugins.dynamic_resources.test_api_calls import (
    STAMP,
    make_cache,
    make_plugin,
    make_pod_with_claims,
    plan_pre_bind,
    run_filter,
)

FINALIZER = "resource.kubernetes.io/delete-protection"


def make_current_claim(uid: str = "uid-one", finalizers: tuple[str, ...] = (), **status: Any) -> bytes:
    """Return the JSON of claim `one` with resource version 9."""
    metadata = {
        "namespace": "default", "name": "one", "uid": uid, "resourceVersion": "9", "finalizers": finalizers,
    }  # fmt: skip
    return msgspec.json.encode({"metadata": metadata, "status": status})


def test_an_allocation_is_written_after_the_finalizer() -> None:
    claim = make_claim("one", {"r": {}}, metadata={"resourceVersion": "7"})
    plan = plan_pre_bind(make_plugin(), make_cache(claim), make_pod_with_claims("one"))

    finalizer, status = plan.calls
    assert (finalizer.verb, finalizer.kind, finalizer.namespace, finalizer.name, finalizer.subresource) == (
        "patch", "ResourceClaim", "default", "one", "",
    )  # fmt: skip
    assert finalizer.body == {
        "metadata": {
            "uid": "uid-one",
            "resourceVersion": "7",
            "finalizers": ["resource.kubernetes.io/delete-protection"],
        }
    }
    assert (status.verb, status.name, status.subresource) == ("patch", "one", "status")
    finalizer.on_written("8")
    assert status.is_resent
    assert status.body == {
        "metadata": {"uid": "uid-one", "resourceVersion": "8"},
        "status": {
            "allocation": {
                "devices": {"results": [{"request": "r", "driver": DRIVER, "pool": "pool", "device": "d0"}]},
                "nodeSelector": {
                    "nodeSelectorTerms": [
                        {"matchFields": [{"key": "metadata.name", "operator": "In", "values": ["n"]}]}
                    ]
                },
                "allocationTimestamp": STAMP,
            },
            "reservedFor": [{"resource": "pods", "name": "pod", "uid": "uid-default-pod"}],
        },
    }
    assert (plan.wait_condition, plan.timeout) == (None, 0.0)


def test_an_allocated_claim_is_only_reserved() -> None:
    other = {"resource": "pods", "name": "other", "uid": "other"}
    claim = make_allocated_claim("one", ["d0"], allocation={"allocationTimestamp": STAMP}, reservedFor=[other])
    plan = plan_pre_bind(make_plugin(), make_cache(claim), make_pod_with_claims("one"))
    (status,) = plan.calls
    assert status.strategic
    assert status.body == {
        "metadata": {"uid": "uid-one"},
        "status": {"reservedFor": [{"resource": "pods", "name": "pod", "uid": "uid-default-pod"}]},
    }


def test_a_claim_that_is_reserved_already_is_reserved_again() -> None:
    """Unreserve of an earlier attempt may have removed the reservation after the snapshot."""
    consumer = {"resource": "pods", "name": "pod", "uid": "uid-default-pod"}
    claim = make_allocated_claim("one", ["d0"], reservedFor=[consumer])
    (call,) = plan_pre_bind(make_plugin(), make_cache(claim), make_pod_with_claims("one")).calls
    assert (call.verb, call.name, call.subresource, call.strategic) == ("patch", "one", "status", True)
    assert call.body == {"metadata": {"uid": "uid-one"}, "status": {"reservedFor": [consumer]}}


@pytest.mark.parametrize(
    ("update", "message"),
    [
        pytest.param(
            lambda cache: cache.remove_object(ResourceClaim, "default/one"),
            "claim default/one got deleted in the meantime",
            id="deleted",
        ),
        pytest.param(
            lambda cache: cache.add_or_update_object(make_allocated_claim("one", ["d1"])),
            "claim default/one got allocated elsewhere in the meantime",
            id="allocated",
        ),
    ],
)
def test_a_claim_that_changed_since_pre_filter_fails_the_binding(update: Any, message: str) -> None:
    cache = make_cache(make_claim("one", {"r": {}}))
    plugin, pod_info = make_plugin(), make_pod_info(make_pod_with_claims("one"), cache)
    state = run_filter(plugin, pod_info, cache)
    plugin.reserve(pod_info, "n", cache.snapshot(), state)
    update(cache)
    assert plugin.pre_bind(pod_info, "n", cache.snapshot(), state) == error_status(message)


@pytest.mark.parametrize("finalizers", [(), (FINALIZER,)], ids=["the finalizer was removed", "an annotation changed"])
def test_an_allocation_is_written_again_after_a_conflict_with_another_change(finalizers: tuple[str, ...]) -> None:
    """The controller of claims removes the finalizer just after a deallocation.

    Source: pkg/controller/resourceclaim/controller.go, Controller.syncClaim (1.37).
    """
    claim = make_claim("one", {"r": {}}, metadata={"resourceVersion": "7", "finalizers": [FINALIZER]})
    (status,) = plan_pre_bind(make_plugin(), make_cache(claim), make_pod_with_claims("one")).calls
    written_status = status.body["status"]
    assert status.on_conflict is not None
    result = status.on_conflict(make_current_claim(finalizers=("example.com/other", *finalizers)))
    assert isinstance(result, tuple)
    (finalizer,) = result
    version = {"uid": "uid-one", "resourceVersion": "9"}
    assert finalizer.body == {"metadata": {**version, "finalizers": ["example.com/other", FINALIZER]}}
    assert status.body == {"metadata": version, "status": written_status}
    finalizer.on_written("10")
    assert status.body["metadata"] == {"uid": "uid-one", "resourceVersion": "10"}


def test_the_finalizer_is_added_to_the_current_ones_after_a_conflict() -> None:
    claim = make_claim("one", {"r": {}}, metadata={"resourceVersion": "7"})
    finalizer, _ = plan_pre_bind(make_plugin(), make_cache(claim), make_pod_with_claims("one")).calls
    assert finalizer.on_conflict is not None
    assert finalizer.on_conflict(make_current_claim(finalizers=("example.com/other",))) == ()
    version = {"uid": "uid-one", "resourceVersion": "9"}
    assert finalizer.body == {"metadata": {**version, "finalizers": ["example.com/other", FINALIZER]}}


@pytest.mark.parametrize("call_index", [0, 1], ids=["finalizer", "status"])
@pytest.mark.parametrize(
    ("current_claim", "message"),
    [
        (make_current_claim(allocation={}), "claim default/one got allocated elsewhere in the meantime"),
        (make_current_claim("uid-other"), "claim default/one got deleted in the meantime"),
    ],
    ids=["allocated", "deleted and created again"],
)
def test_a_claim_that_was_allocated_or_deleted_is_not_written_after_a_conflict(
    call_index: int, current_claim: bytes, message: str
) -> None:
    plan = plan_pre_bind(make_plugin(), make_cache(make_claim("one", {"r": {}})), make_pod_with_claims("one"))
    call = plan.calls[call_index]
    body = copy.deepcopy(call.body)
    assert call.on_conflict is not None
    assert call.on_conflict(current_claim) == message
    assert call.body == body


def test_a_timestamp_is_written_again_with_the_current_consumers_after_a_conflict() -> None:
    """An allocation of an older scheduler has no timestamp."""
    plan = plan_pre_bind(make_plugin(), make_cache(make_allocated_claim("one", ["d0"])), make_pod_with_claims("one"))
    (status,) = plan.calls
    other = {"resource": "pods", "name": "other", "uid": "other"}
    allocation = status.body["status"]["allocation"]
    assert allocation["allocationTimestamp"] == STAMP
    assert status.on_conflict is not None
    current_allocation = {**allocation, "allocationTimestamp": None}
    assert status.on_conflict(make_current_claim(allocation=current_allocation, reservedFor=[other])) == ()
    pod = {"resource": "pods", "name": "pod", "uid": "uid-default-pod"}
    assert status.body["status"] == {"allocation": allocation, "reservedFor": [other, pod]}


def test_the_new_claim_of_extended_resources_is_written_again_after_a_conflict() -> None:
    cache = make_cache(make_device_class("served", extendedResourceName="example.com/gpu"))
    create, status, _ = plan_pre_bind(make_plugin(), cache, make_pod(requests={"example.com/gpu": "1"})).calls
    create.on_written("8")
    assert status.body["metadata"] == {"resourceVersion": "8"}
    assert status.on_conflict is not None
    assert not isinstance(status.on_conflict(make_current_claim("uid-new")), str)
    assert status.body["metadata"] == {"uid": "uid-new", "resourceVersion": "9"}


def test_extended_resources_get_a_claim_and_a_pod_status() -> None:
    cache = make_cache(make_device_class("served", extendedResourceName="example.com/gpu"))
    plan = plan_pre_bind(make_plugin(), cache, make_pod(requests={"example.com/gpu": "2"}))

    create, status, pod = plan.calls
    name = create.name
    assert name.startswith("pod-extended-resources-")
    assert len(name) == len("pod-extended-resources-") + 5
    assert (create.verb, create.kind) == ("create", "ResourceClaim")
    assert create.body["metadata"] == {
        "name": name,
        "generateName": "pod-extended-resources-",
        "namespace": "default",
        "annotations": {"resource.kubernetes.io/extended-resource-claim": "true"},
        "finalizers": ["resource.kubernetes.io/delete-protection"],
        "ownerReferences": [
            {"apiVersion": "v1", "kind": "Pod", "name": "pod", "uid": "uid-default-pod", "controller": True}
        ],
    }
    exactly = {"deviceClassName": "served", "allocationMode": "ExactCount", "count": 2}
    assert create.body["spec"] == {"devices": {"requests": [{"name": "container-0-request-0", "exactly": exactly}]}}
    devices = [entry["device"] for entry in status.body["status"]["allocation"]["devices"]["results"]]
    assert (status.name, status.subresource, devices) == (name, "status", ["d0", "d1"])
    assert (pod.kind, pod.name, pod.subresource) == ("Pod", "pod", "status")
    assert pod.body["status"]["extendedResourceClaimStatus"] == {
        "requestMappings": [
            {"containerName": "app", "resourceName": "example.com/gpu", "requestName": "container-0-request-0"}
        ],
        "resourceClaimName": name,
    }


def test_extended_resources_get_a_claim_also_after_pods_requested_many_others() -> None:
    """The pod was placed without devices."""
    cache = make_cache(make_device_class("served", extendedResourceName="example.com/gpu"))
    for number in range(300):
        cache.add_or_update_pod(make_pod(f"other-{number}", node="n", requests={f"example.com/{number}": "1"}))
    plan = plan_pre_bind(make_plugin(), cache, make_pod(requests={"example.com/gpu": "2"}))
    assert [call.kind for call in plan.calls] == ["ResourceClaim", "ResourceClaim", "Pod"]


def test_extended_resources_of_a_device_plugin_need_no_claim() -> None:
    device_class = make_device_class("served", extendedResourceName="example.com/gpu")
    cache = make_cluster(make_node("n", allocatable={"example.com/gpu": "2"}), device_class)
    assert plan_pre_bind(make_plugin(), cache, make_pod(requests={"example.com/gpu": "2"})) == ApiPlan()


def test_a_pod_with_claims_is_not_bound_where_a_device_plugin_serves_its_extended_resources() -> None:
    """The claims are written before PreBind fails, and Unreserve deletes the new one.

    Source: pkg/scheduler/framework/plugins/dynamicresources/extendeddynamicresources.go,
    DynamicResources.patchPodExtendedResourceClaimStatus (1.37).
    """
    device_class = make_device_class("served", extendedResourceName="example.com/gpu")
    plugin = make_plugin()
    cache = make_cache(make_claim("one", {"r": {}}), device_class)
    cache.add_or_update_node(make_node("n", allocatable={"example.com/gpu": "2"}))
    pod = make_pod_info(make_pod_with_claims("one", requests={"example.com/gpu": "2"}), cache)
    state = run_filter(plugin, pod, cache)
    assert plugin.reserve(pod, "n", cache.snapshot(), state) is None

    plan = plugin.pre_bind(pod, "n", cache.snapshot(), state)
    assert isinstance(plan, ApiPlan)
    assert [(call.verb, call.kind, call.subresource) for call in plan.calls] == [
        ("patch", "ResourceClaim", ""),
        ("patch", "ResourceClaim", "status"),
        ("create", "ResourceClaim", ""),
        ("patch", "ResourceClaim", "status"),
    ]
    message = "nil or empty request mappings, no update of pod default/pod ExtendedResourceClaimStatus"
    assert plan.wait_condition is not None
    assert plan.wait_condition(cache.snapshot()) == error_status(message)
    undo_calls = plugin.unreserve(pod, "n", state)
    assert [(call.verb, call.name == plan.calls[2].name) for call in undo_calls] == [
        ("patch", False),
        ("patch", True),
        ("delete", True),
    ]
