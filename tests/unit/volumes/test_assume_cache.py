"""Assumed objects are valid while the stored object has the same version."""

from typing import Any

import pytest

from extender.api.kinds.storage import PersistentVolume
from extender.volumes.assume_cache import AssumeCache, bind_volume_to_claim, is_volume_bound_to_claim
from tests.build import make_cluster, make_object


def make_claim(uid: str = "u", namespace: str = "default") -> Any:
    meta = {"name": "data", "namespace": namespace, "uid": uid, "resourceVersion": "1"}
    return make_object({"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": meta})


def make_volume(version: str = "1", name: str = "pv", **spec: Any) -> Any:
    meta = {"name": name, "resourceVersion": version}
    return make_object({"apiVersion": "v1", "kind": "PersistentVolume", "metadata": meta, "spec": spec})


@pytest.mark.parametrize(
    ("ref", "bound"),
    [
        pytest.param(None, False, id="a volume without a claim reference"),
        pytest.param({"namespace": "default", "name": "data"}, True, id="a reference without uid"),
        pytest.param({"namespace": "default", "name": "data", "uid": "u"}, True, id="a reference with the claim's uid"),
        pytest.param(
            {"namespace": "default", "name": "data", "uid": "v"},
            False,
            id="a reference with another uid",
        ),
        pytest.param({"namespace": "other", "name": "data"}, False, id="a reference to another namespace"),
    ],
)
def test_a_volume_is_bound_to_the_claim_of_its_reference(ref: dict[str, str] | None, bound: bool) -> None:
    assert is_volume_bound_to_claim(make_volume(claimRef=ref), make_claim()) is bound


def test_an_assumed_volume_is_valid_until_the_stored_object_changes() -> None:
    stored = make_volume()
    assume_cache, bound = AssumeCache(), bind_volume_to_claim(stored, make_claim())
    assert assume_cache.assume((bound,), (), make_cluster(stored).snapshot()) is None
    assert assume_cache.get_latest_volume(stored) is bound
    changed = make_volume("2")
    assert assume_cache.get_latest_volume(changed) is changed
    other = make_volume(name="other")
    assert assume_cache.get_latest_volume(other) is other


def test_stale_objects_are_removed_when_others_are_assumed() -> None:
    assume_cache, bound = AssumeCache(), bind_volume_to_claim(make_volume(), make_claim())
    assume_cache.assume((bound,), (), make_cluster(make_volume()).snapshot())
    assert assume_cache.assume((), (), make_cluster(make_volume("2")).snapshot()) is None
    assert assume_cache.volumes == {}


@pytest.mark.parametrize(
    ("stored", "error"),
    [
        pytest.param([make_volume("2")], '"pv" is out of sync (stored: 2, assume: 1)', id="a volume that changed"),
        pytest.param([], '"pv" not found', id="a volume that is gone"),
    ],
)
def test_nothing_is_assumed_if_one_object_cannot_be_assumed(stored: list[PersistentVolume], error: str) -> None:
    assume_cache, other = AssumeCache(), make_volume(name="other")
    snapshot = make_cluster(*stored, other).snapshot()
    assert (
        assume_cache.assume(
            (bind_volume_to_claim(other, make_claim()), bind_volume_to_claim(make_volume(), make_claim())), (), snapshot
        )
        == error
    )
    assert assume_cache.volumes == {}


def test_restoring_keeps_an_object_that_was_assumed_again() -> None:
    stored, assume_cache = make_volume(), AssumeCache()
    snapshot = make_cluster(stored).snapshot()
    first, second = bind_volume_to_claim(stored, make_claim("u")), bind_volume_to_claim(stored, make_claim("v"))
    assume_cache.assume((first,), (), snapshot)
    assume_cache.assume((second,), (), snapshot)
    assume_cache.restore((first,), ())
    assert assume_cache.get_latest_volume(stored) is second
    assume_cache.restore((second,), ())
    assert assume_cache.get_latest_volume(stored) is stored
