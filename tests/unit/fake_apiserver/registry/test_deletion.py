"""Deletion: grace periods, finalizers, preconditions and namespaces."""

import pytest

from extender.fake_apiserver.registry.api_errors import StatusError
from extender.fake_apiserver.registry.resources import NAMESPACES, PODS, RESOURCES_BY_KIND
from tests.unit.fake_apiserver.builders import ManualClock, make_api, make_node, make_pod

CLAIMS = RESOURCES_BY_KIND["v1", "PersistentVolumeClaim"]


def test_a_pod_without_a_node_is_removed_at_once() -> None:
    api = make_api()
    api.create_from_manifest(make_pod())
    last, removed = api.delete(PODS, "default", "web")
    assert removed
    assert last["metadata"]["resourceVersion"] == str(api.store.resource_version)
    assert api.store.get("pods", "default", "web") is None


def test_a_pod_on_a_node_gets_its_grace_period() -> None:
    api = make_api()
    api.create_from_manifest(make_pod(nodeName="n1"))
    ending, removed = api.delete(PODS, "default", "web")
    assert not removed
    meta = ending["metadata"]
    assert (meta["deletionTimestamp"], meta["deletionGracePeriodSeconds"]) == ("2023-11-14T22:13:50Z", 30)
    assert api.store.get("pods", "default", "web") is not None


def test_a_grace_period_can_only_be_shortened() -> None:
    api = make_api()
    api.create_from_manifest(make_pod(nodeName="n1"))
    api.delete(PODS, "default", "web", {"gracePeriodSeconds": 20})
    longer, _ = api.delete(PODS, "default", "web", {"gracePeriodSeconds": 25})
    assert longer["metadata"]["deletionGracePeriodSeconds"] == 20
    clock = api.clock
    assert isinstance(clock, ManualClock)
    clock.seconds += 3
    shorter, _ = api.delete(PODS, "default", "web", {"gracePeriodSeconds": 5})
    assert shorter["metadata"]["deletionTimestamp"] == "2023-11-14T22:13:25Z"
    _, removed = api.delete(PODS, "default", "web", {"gracePeriodSeconds": 0})
    assert removed


def test_a_finished_pod_is_removed_at_once() -> None:
    api = make_api()
    api.create_from_manifest(make_pod(nodeName="n1"))
    api.patch_strategically(PODS, "default", "web", {"status": {"phase": "Succeeded"}}, subresource="status")
    assert api.delete(PODS, "default", "web")[1]


def test_an_object_is_removed_with_its_last_finalizer() -> None:
    api = make_api()
    meta = {"name": "c", "finalizers": ["kubernetes.io/pvc-protection"]}
    api.create(CLAIMS, "default", {"metadata": meta})
    claim, removed = api.delete(CLAIMS, "default", "c")
    assert not removed
    assert claim["metadata"]["deletionTimestamp"] == "2023-11-14T22:13:20Z"
    api.patch(CLAIMS, "default", "c", {"metadata": {"finalizers": None}})
    assert api.store.get(CLAIMS.storage_key, "default", "c") is None


@pytest.mark.parametrize("field", ["uid", "resourceVersion"])
def test_preconditions_of_a_deletion_are_checked(field: str) -> None:
    api = make_api()
    pod = api.create_from_manifest(make_pod())
    with pytest.raises(StatusError, match=r"in the precondition \(other\) does not match") as error:
        api.delete(PODS, "default", "web", {"preconditions": {field: "other"}})
    assert error.value.code == 409
    assert api.delete(PODS, "default", "web", {"preconditions": {field: pod["metadata"][field]}})[1]


def test_a_namespace_is_removed_when_it_is_empty() -> None:
    api = make_api()
    api.create_from_manifest({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "shop"}})
    api.create_from_manifest(make_node())
    api.create(PODS, "shop", make_pod("waits"))
    api.create(PODS, "shop", make_pod("runs", nodeName="n1"))
    ending, removed = api.delete(NAMESPACES, "", "shop")
    assert (removed, ending["status"]["phase"]) == (False, "Terminating")
    assert [pod["metadata"]["name"] for pod in api.list_objects(PODS, "shop")] == ["runs"]
    with pytest.raises(StatusError, match="because it is being terminated"):
        api.create(PODS, "shop", make_pod("late"))
    api.delete_now(PODS, "shop", "runs")
    assert api.store.get("namespaces", "", "shop") is None


def test_deleting_a_missing_object_is_not_found() -> None:
    with pytest.raises(StatusError, match='pods "web" not found'):
        make_api().delete(PODS, "default", "web")
