"""What PreBind writes for a pod, in the form of the oracle's answers; and which differences of it have a meaning."""

import copy
from typing import Any

import pytest

from tests.oracle.answers import ask_extender, find_answer_differences

META = {"namespace": "shop", "name": "web", "uid": "uid-web"}
CLAIM = {"kind": "ResourceClaim", "metadata": {"namespace": "shop", "name": "gpu", "uid": "uid-gpu"}}
REQUEST = {"name": "r", "exactly": {"deviceClassName": "any", "allocationMode": "ExactCount", "count": 1}}
LATE = {"provisioner": "csi.example.com", "volumeBindingMode": "WaitForFirstConsumer"}


def make_scenario(**spec: Any) -> dict[str, Any]:
    """Return a cluster with two nodes with a device each, a class of late volumes, two claims and a pod."""
    items: list[dict[str, Any]] = [
        {"apiVersion": "resource.k8s.io/v1", "kind": "DeviceClass", "metadata": {"name": "any"}, "spec": {}},
        {"apiVersion": "resource.k8s.io/v1", **CLAIM, "spec": {"devices": {"requests": [REQUEST]}}},
        {"apiVersion": "storage.k8s.io/v1", "kind": "StorageClass", "metadata": {"name": "late"}, **LATE},
        {
            "apiVersion": "v1",
            "kind": "PersistentVolumeClaim",
            "metadata": {"namespace": "shop", "name": "data", "uid": "uid-data"},
            "spec": {
                "accessModes": ["ReadWriteOnce"],
                "storageClassName": "late",
                "resources": {"requests": {"storage": "1Gi"}},
            },
        },
        {
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": META,
            "spec": {"schedulerName": "default-scheduler", "containers": [{"name": "c"}], **spec},
        },
    ]
    for node in ("n1", "n2"):
        pool = {"name": node, "generation": 1, "resourceSliceCount": 1}
        devices = {"driver": "gpu.example.com", "pool": pool, "nodeName": node, "devices": [{"name": "d"}]}
        status = {"allocatable": {"pods": "9"}}
        items += [
            {"apiVersion": "v1", "kind": "Node", "metadata": {"name": node}, "status": status},
            {"apiVersion": "resource.k8s.io/v1", "kind": "ResourceSlice", "metadata": {"name": node}, "spec": devices},
        ]
    return {"apiVersion": "v1", "kind": "List", "items": items}


def test_a_claim_is_allocated_and_reserved_on_each_of_two_nodes() -> None:
    bindings = ask_extender(make_scenario(resourceClaims=[{"name": "gpu", "resourceClaimName": "gpu"}]), "1.37")[
        "bindings"
    ]["shop/web"]
    assert sorted(bindings) == ["n1", "n2"]
    claim = bindings["n2"]["claims"]["shop/gpu"]
    assert claim["allocation"]["devices"]["results"] == [
        {"request": "r", "driver": "gpu.example.com", "pool": "n2", "device": "d"}
    ]
    assert claim["reservedFor"] == [{"resource": "pods", "name": "web", "uid": "uid-web"}]


def test_a_repeated_reservation_is_not_a_write_because_kube_scheduler_does_not_repeat_it() -> None:
    scenario = make_scenario(resourceClaims=[{"name": "gpu", "resourceClaimName": "gpu"}])
    result = {"request": "r", "driver": "gpu.example.com", "pool": "n1", "device": "d"}
    status = {"allocation": {"devices": {"results": [result]}}}
    for consumers, claims in (([], ["shop/gpu"]), ([{"resource": "pods", "name": "web", "uid": "uid-web"}], [])):
        scenario["items"][1]["status"] = {**status, "reservedFor": consumers}
        bindings = ask_extender(scenario, "1.37")["bindings"]["shop/web"]
        assert [[*binding["claims"]] for binding in bindings.values()] == [claims, claims]


def test_a_volume_claim_selects_the_node() -> None:
    volumes = [{"name": "data", "persistentVolumeClaim": {"claimName": "data"}}]
    bindings = ask_extender(make_scenario(volumes=volumes), "1.36")["bindings"]["shop/web"]
    assert {node: binding["selectedNodes"] for node, binding in bindings.items()} == {
        "n1": {"shop/data": "n1"},
        "n2": {"shop/data": "n2"},
    }


def make_answer(**binding: Any) -> dict[str, Any]:
    return {"pods": {}, "bindings": {"shop/web": {"n1": binding}}}


def make_claims(share: str, device: str, **result: Any) -> dict[str, Any]:
    results = [{"device": device, "shareID": share, **result}]
    return {"shop/gpu": {"allocation": {"devices": {"results": results}, "allocationTimestamp": share}}}


@pytest.mark.parametrize(
    ("want", "got", "lines"),
    [
        ({"claims": make_claims("a", "d")}, {"claims": make_claims("b", "d")}, []),
        ({"claims": make_claims("a", "d")}, {"claims": make_claims("a", "e")}, ["claims.shop/gpu.allocation"]),
        (
            {"claims": make_claims("a", "d", consumedCapacity={"memory": "1Gi"})},
            {"claims": make_claims("a", "d", consumedCapacity={"memory": "1024Mi"})},
            [],
        ),
        ({"volumes": {"shop/a": "1Gi"}}, {"volumes": {"shop/a": "2Gi"}}, ["volumes.shop/a"]),
        ({"volumes": {"shop/a": "1Gi", "shop/b": "2Gi"}}, {"volumes": {"shop/a": "2Gi", "shop/b": "1Gi"}}, []),
        ({"requests": None, "podStatus": {}}, {"podStatus": {"extendedResourceClaimStatus": {}}}, []),
    ],
    ids=["identifiers", "devices", "amounts", "a volume", "volumes", "no mappings"],
)
def test_devices_and_capacities_have_a_meaning(want: Any, got: Any, lines: list[str]) -> None:
    differences = find_answer_differences(make_answer(**copy.deepcopy(want)), make_answer(**copy.deepcopy(got)))
    assert [
        line.removeprefix("binding shop/web n1.").partition(".devices")[0].partition(":")[0] for line in differences
    ] == lines


def test_recorded_results_without_bindings_are_compared_without_them() -> None:
    assert find_answer_differences({"pods": {}}, make_answer(requests=[])) == []
