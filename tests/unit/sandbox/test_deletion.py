"""Tests of how objects go."""

import pytest

from extender.sandbox.refusals import RefusedError
from extender.sandbox.served import BY_KIND, NAMESPACES, PODS
from tests.unit.sandbox.calls import HandClock, a_node, a_pod, an_api

CLAIMS = BY_KIND["v1", "PersistentVolumeClaim"]


def test_a_pod_without_a_node_goes_at_once() -> None:
    api = an_api()
    api.add(a_pod())
    last, gone = api.delete(PODS, "default", "web")
    assert gone
    assert last["metadata"]["resourceVersion"] == str(api.store.version)
    assert api.store.get("pods", "default", "web") is None


def test_a_pod_on_a_node_gets_its_grace_period() -> None:
    api = an_api()
    api.add(a_pod(nodeName="n1"))
    ending, gone = api.delete(PODS, "default", "web")
    assert not gone
    meta = ending["metadata"]
    assert (meta["deletionTimestamp"], meta["deletionGracePeriodSeconds"]) == ("2023-11-14T22:13:50Z", 30)
    assert api.store.get("pods", "default", "web") is not None


def test_a_grace_period_only_gets_shorter() -> None:
    api = an_api()
    api.add(a_pod(nodeName="n1"))
    api.delete(PODS, "default", "web", {"gracePeriodSeconds": 20})
    longer, _ = api.delete(PODS, "default", "web", {"gracePeriodSeconds": 25})
    assert longer["metadata"]["deletionGracePeriodSeconds"] == 20
    clock = api.clock
    assert isinstance(clock, HandClock)
    clock.seconds += 3
    shorter, _ = api.delete(PODS, "default", "web", {"gracePeriodSeconds": 5})
    assert shorter["metadata"]["deletionTimestamp"] == "2023-11-14T22:13:25Z"
    _, gone = api.delete(PODS, "default", "web", {"gracePeriodSeconds": 0})
    assert gone


def test_a_finished_pod_goes_at_once() -> None:
    api = an_api()
    api.add(a_pod(nodeName="n1"))
    api.patch(PODS, "default", "web", {"status": {"phase": "Succeeded"}}, strategic=True, part="status")
    assert api.delete(PODS, "default", "web")[1]


def test_finalizers_keep_an_object_until_the_last_is_taken_away() -> None:
    api = an_api()
    meta = {"name": "c", "finalizers": ["kubernetes.io/pvc-protection"]}
    api.create(CLAIMS, "default", {"metadata": meta})
    kept, gone = api.delete(CLAIMS, "default", "c")
    assert not gone
    assert kept["metadata"]["deletionTimestamp"] == "2023-11-14T22:13:20Z"
    api.patch(CLAIMS, "default", "c", {"metadata": {"finalizers": None}}, strategic=False)
    assert api.store.get(CLAIMS.place, "default", "c") is None


@pytest.mark.parametrize("field", ["uid", "resourceVersion"])
def test_a_deletion_can_name_the_object_it_means(field: str) -> None:
    api = an_api()
    pod = api.add(a_pod())
    with pytest.raises(RefusedError, match=r"in the precondition \(other\) does not match") as refused:
        api.delete(PODS, "default", "web", {"preconditions": {field: "other"}})
    assert refused.value.code == 409
    assert api.delete(PODS, "default", "web", {"preconditions": {field: pod["metadata"][field]}})[1]


def test_a_namespace_goes_when_all_in_it_is_gone() -> None:
    api = an_api()
    api.add({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "shop"}})
    api.add(a_node())
    api.create(PODS, "shop", a_pod("waits"))
    api.create(PODS, "shop", a_pod("runs", nodeName="n1"))
    ending, gone = api.delete(NAMESPACES, "", "shop")
    assert (gone, ending["status"]["phase"]) == (False, "Terminating")
    assert [pod["metadata"]["name"] for pod in api.each(PODS, "shop")] == ["runs"]
    with pytest.raises(RefusedError, match="because it is being terminated"):
        api.create(PODS, "shop", a_pod("late"))
    api.remove(PODS, "shop", "runs")
    assert api.store.get("namespaces", "", "shop") is None


def test_what_is_not_there_is_not_found() -> None:
    with pytest.raises(RefusedError, match='pods "web" not found'):
        an_api().delete(PODS, "default", "web")
