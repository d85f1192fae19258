"""Names, classes, binding state and sizes of claims."""

from typing import Any

import pytest

from extender.api.quantity import parse
from extender.cache.tables.volume_uses import collect_volume_uses
from extender.volumes.claims import (
    get_claim_class,
    get_ownership_error,
    get_requested_storage,
    get_volume_capacity,
    get_volume_class,
    is_fully_bound,
    resolve_claim_uses,
    to_nanos,
    uses_claim,
)
from tests.build import make_object, make_pod

BETA_CLASS = "volume.beta.kubernetes.io/storage-class"
POD = make_pod(
    "p",
    namespace="shop",
    spec={
        "volumes": [
            {"name": "a", "persistentVolumeClaim": {"claimName": "data"}},
            {"name": "b", "emptyDir": {}},
            {"name": "c", "ephemeral": {"volumeClaimTemplate": {"spec": {}}}},
        ]
    },
)


def make_claim(name: str = "data", namespace: str = "shop", *, meta: dict[str, Any] | None = None, **spec: Any) -> Any:
    metadata = {"name": name, "namespace": namespace, **(meta or {})}
    return make_object({"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": metadata, "spec": spec})


def make_volume(meta: dict[str, Any] | None = None, **spec: Any) -> Any:
    return make_object(
        {"apiVersion": "v1", "kind": "PersistentVolume", "metadata": {"name": "v", **(meta or {})}, "spec": spec}
    )


def test_claims_of_a_pod_are_listed_in_the_order_of_its_volumes() -> None:
    keys = [(name, key) for _, name, key in resolve_claim_uses(POD, collect_volume_uses(POD).claims)]
    assert keys == [("data", "shop/data"), ("p-c", "shop/p-c")]


@pytest.mark.parametrize(
    ("claim", "is_used"),
    [
        pytest.param(make_claim("data"), True, id="a claim that it names"),
        pytest.param(make_claim("p-c"), True, id="the claim of its ephemeral volume"),
        pytest.param(make_claim("data", "other"), False, id="a claim of another namespace"),
        pytest.param(make_claim("c"), False, id="another claim"),
    ],
)
def test_a_pod_uses_a_claim(claim: Any, is_used: bool) -> None:
    assert uses_claim(POD, collect_volume_uses(POD).claims, claim) is is_used


def test_the_claim_of_an_ephemeral_volume_must_be_controlled_by_the_pod() -> None:
    """Source: pkg/scheduler/framework/plugins/volumebinding/volume_binding.go, VolumeBinding.podHasPVCs (1.36)."""
    owner = {"apiVersion": "v1", "kind": "Pod", "name": "p", "uid": "uid-shop-p", "controller": True}
    message = "PVC shop/p-c was not created for pod shop/p (pod is not owner)"
    assert get_ownership_error(POD, make_claim("p-c", meta={"ownerReferences": [owner]})) is None
    assert get_ownership_error(POD, make_claim("p-c", meta={"ownerReferences": [{**owner, "uid": "x"}]})) == message
    assert (
        get_ownership_error(POD, make_claim("p-c", meta={"ownerReferences": [{**owner, "controller": False}]}))
        == message
    )


def test_the_beta_annotation_overrides_the_storage_class() -> None:
    annotations = {"annotations": {BETA_CLASS: "beta"}}
    assert get_claim_class(make_claim(storageClassName="fast")) == "fast"
    assert get_claim_class(make_claim(meta=annotations, storageClassName="fast")) == "beta"
    assert get_volume_class(make_volume(storageClassName="fast")) == "fast"
    assert get_volume_class(make_volume(annotations, storageClassName="fast")) == "beta"
    assert get_claim_class(make_claim()) == get_volume_class(make_volume()) == ""


def test_a_claim_is_fully_bound_with_a_volume_and_the_annotation() -> None:
    complete = {"annotations": {"pv.kubernetes.io/bind-completed": "yes"}}
    assert is_fully_bound(make_claim(meta=complete, volumeName="v"))
    assert not is_fully_bound(make_claim(volumeName="v"))
    assert not is_fully_bound(make_claim(meta=complete))


def test_sizes_are_compared_exactly() -> None:
    request = get_requested_storage(make_claim(resources={"requests": {"storage": "1500m"}}))
    assert request is not None
    assert to_nanos(request) == 1_500_000_000
    assert to_nanos(get_volume_capacity(make_volume(capacity={"storage": "1Ki"}))) == 1024 * 10**9
    assert (
        get_requested_storage(make_claim()),
        to_nanos(get_volume_capacity(make_volume())),
        to_nanos(parse("1n")),
    ) == (
        None,
        0,
        1,
    )
