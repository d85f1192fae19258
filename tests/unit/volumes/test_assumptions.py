"""Promises hold as long as the object they were made from is the newest known. B097."""

from typing import Any

import pytest

from extender.objects.storage import PersistentVolume
from extender.volumes.assumptions import Assumptions, bound_volume, is_bound_to
from tests.build import a_cluster, an_object


def a_claim(uid: str = "u", namespace: str = "default") -> Any:
    meta = {"name": "data", "namespace": namespace, "uid": uid, "resourceVersion": "1"}
    return an_object({"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": meta})


def a_volume(version: str = "1", name: str = "pv", **spec: Any) -> Any:
    meta = {"name": name, "resourceVersion": version}
    return an_object({"apiVersion": "v1", "kind": "PersistentVolume", "metadata": meta, "spec": spec})


@pytest.mark.parametrize(
    ("ref", "bound"),
    [
        pytest.param(None, False, id="a free volume is nobody's"),
        pytest.param({"namespace": "default", "name": "data"}, True, id="a volume meant for the name is the claim's"),
        pytest.param({"namespace": "default", "name": "data", "uid": "u"}, True, id="so is one meant for the claim"),
        pytest.param({"namespace": "default", "name": "data", "uid": "v"}, False, id="a former namesake is another"),
        pytest.param({"namespace": "other", "name": "data"}, False, id="a namesake elsewhere is another"),
    ],
)
def test_whose_a_volume_is(ref: dict[str, str] | None, bound: bool) -> None:
    assert is_bound_to(a_volume(claimRef=ref), a_claim()) is bound


def test_a_promise_shows_until_the_object_changes() -> None:
    known = a_volume()
    promised, after = Assumptions(), bound_volume(known, a_claim())
    assert promised.make((after,), (), a_cluster(known).snapshot()) is None
    assert promised.volume(known) is after
    changed = a_volume("2")
    assert promised.volume(changed) is changed
    other = a_volume(name="other")
    assert promised.volume(other) is other


def test_old_promises_are_forgotten_when_new_ones_are_made() -> None:
    promised, after = Assumptions(), bound_volume(a_volume(), a_claim())
    promised.make((after,), (), a_cluster(a_volume()).snapshot())
    assert promised.make((), (), a_cluster(a_volume("2")).snapshot()) is None
    assert promised.volumes == {}


@pytest.mark.parametrize(
    ("known", "fault"),
    [
        pytest.param([a_volume("2")], '"pv" is out of sync (stored: 2, assume: 1)', id="a volume that changed"),
        pytest.param([], '"pv" not found', id="a volume that is gone"),
    ],
)
def test_nothing_is_promised_of(known: list[PersistentVolume], fault: str) -> None:
    promised, also = Assumptions(), a_volume(name="also")
    cluster = a_cluster(*known, also).snapshot()
    assert promised.make((bound_volume(also, a_claim()), bound_volume(a_volume(), a_claim())), (), cluster) == fault
    assert promised.volumes == {}


def test_what_another_was_promised_since_is_not_taken_back() -> None:
    known, promised = a_volume(), Assumptions()
    cluster = a_cluster(known).snapshot()
    first, second = bound_volume(known, a_claim("u")), bound_volume(known, a_claim("v"))
    promised.make((first,), (), cluster)
    promised.make((second,), (), cluster)
    promised.take_back((first,), ())
    assert promised.volume(known) is second
    promised.take_back((second,), ())
    assert promised.volume(known) is known
