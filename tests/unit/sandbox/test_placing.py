"""Tests of pods/binding and pods/eviction, by the rules of the real server."""

import pytest

from extender.sandbox.api import Api
from extender.sandbox.placing import bind, evict
from extender.sandbox.refusals import RefusedError
from extender.sandbox.served import BUDGETS, PODS
from tests.unit.sandbox.calls import Object, a_binding, a_pod, an_api

EVICTION = {"metadata": {"name": "web"}}


def refusal(api: Api, binding: Object) -> tuple[int, str]:
    with pytest.raises(RefusedError) as refused:
        bind(api, "default", "web", binding)
    return refused.value.code, str(refused.value)


def a_running_pod(api: Api, *, ready: str = "True") -> None:
    pod = a_pod(nodeName="n1")
    api.add({**pod, "metadata": {"name": "web", "labels": {"app": "web"}}})
    status = {"phase": "Running", "conditions": [{"type": "Ready", "status": ready}]}
    api.patch(PODS, "default", "web", {"status": status}, strategic=True, part="status")


def a_budget(api: Api, name: str = "b", **status: int) -> None:
    spec = {"selector": {"matchLabels": {"app": "web"}}}
    api.create(BUDGETS, "default", {"metadata": {"name": name}, "spec": spec})
    whole = {"observedGeneration": 1, **status}
    api.patch(BUDGETS, "default", name, {"status": whole}, strategic=False, part="status")


def test_a_bound_pod_has_its_node_its_condition_and_no_nomination() -> None:
    api = an_api()
    api.add(a_pod())
    waiting = {"type": "PodScheduled", "status": "False", "reason": "Unschedulable"}
    status = {"nominatedNodeName": "n2", "conditions": [waiting]}
    api.patch(PODS, "default", "web", {"status": status}, strategic=True, part="status")
    answer = bind(api, "default", "web", {**a_binding("n1"), "metadata": {"name": "web", "annotations": {"a": "b"}}})
    pod = api.get(PODS, "default", "web")
    assert (answer["status"], answer["code"]) == ("Success", 201)
    assert (pod["spec"]["nodeName"], pod["metadata"]["annotations"]) == ("n1", {"a": "b"})
    assert "nominatedNodeName" not in pod["status"]
    assert pod["status"]["conditions"] == [
        {
            "lastProbeTime": None,
            "lastTransitionTime": "2023-11-14T22:13:20Z",
            "type": "PodScheduled",
            "status": "True",
        }
    ]


def test_a_pod_is_bound_once() -> None:
    api = an_api()
    api.add(a_pod())
    bind(api, "default", "web", a_binding("n1"))
    expected = 'Operation cannot be fulfilled on pods/binding "web": pod web is already assigned to node "n1"'
    assert refusal(api, a_binding("n2")) == (409, expected)
    assert refusal(api, a_binding("n1")) == (409, expected)


def test_a_pod_that_is_being_deleted_is_not_bound() -> None:
    api = an_api()
    api.add({**a_pod(), "metadata": {"name": "web", "finalizers": ["example.com/a"]}})
    api.delete(PODS, "default", "web")
    expected = "pod web is being deleted, cannot be assigned to a host"
    assert refusal(api, a_binding("n1")) == (409, f'Operation cannot be fulfilled on pods/binding "web": {expected}')


def test_a_gated_pod_is_not_bound() -> None:
    api = an_api()
    api.add(a_pod(schedulingGates=[{"name": "a"}]))
    expected = 'Operation cannot be fulfilled on pods/binding "web": pod web has non-empty .spec.schedulingGates'
    assert refusal(api, a_binding("n1")) == (409, expected)


def test_a_pod_that_was_deleted_and_created_again_is_not_bound_for_the_first() -> None:
    api = an_api()
    first = api.add(a_pod())["metadata"]["uid"]
    api.delete(PODS, "default", "web")
    second = api.add(a_pod())["metadata"]["uid"]
    assert refusal(api, a_binding("n1", uid=first)) == (
        409,
        'Operation cannot be fulfilled on pods "web": StorageError: invalid object, Code: 4, Key:'
        " /registry/pods/default/web, ResourceVersion: 0, AdditionalErrorMsg: Precondition failed: UID in precondition:"
        f" {first}, UID in object meta: {second}",
    )
    bind(api, "default", "web", a_binding("n1", uid=second))


def test_a_pod_that_is_gone_or_a_binding_without_a_node_is_refused() -> None:
    api = an_api()
    assert refusal(api, a_binding("n1")) == (404, 'pods "web" not found')
    api.add(a_pod())
    assert refusal(api, a_binding(""))[0] == 422
    assert refusal(api, a_binding("n1", name="other")) == (400, "name in URL does not match name in Binding object")


def test_an_evicted_pod_says_why_and_gets_its_grace_period() -> None:
    api = an_api()
    a_running_pod(api)
    assert evict(api, "default", "web", EVICTION)["status"] == "Success"
    pod = api.get(PODS, "default", "web")
    assert pod["metadata"]["deletionGracePeriodSeconds"] == 30
    assert [(each["type"], each.get("reason")) for each in pod["status"]["conditions"]] == [
        ("Ready", None),
        ("DisruptionTarget", "EvictionByEvictionAPI"),
    ]


def test_an_eviction_spends_the_budget() -> None:
    api = an_api()
    a_running_pod(api)
    a_budget(api, disruptionsAllowed=1, currentHealthy=2, desiredHealthy=1)
    evict(api, "default", "web", EVICTION)
    status = api.get(BUDGETS, "default", "b")["status"]
    assert (status["disruptionsAllowed"], status["disruptedPods"]) == (0, {"web": "2023-11-14T22:13:20Z"})


def test_a_spent_budget_refuses_and_the_pod_stays() -> None:
    api = an_api()
    a_running_pod(api)
    a_budget(api, disruptionsAllowed=0, currentHealthy=1, desiredHealthy=1)
    with pytest.raises(RefusedError) as refused:
        evict(api, "default", "web", EVICTION)
    assert (refused.value.code, str(refused.value)) == (
        429,
        "Cannot evict pod as it would violate the pod's disruption budget.",
    )
    assert refused.value.status["details"]["causes"] == [
        {"reason": "DisruptionBudget", "message": "The disruption budget b needs 1 healthy pods and has 1 currently"}
    ]
    assert "deletionTimestamp" not in api.get(PODS, "default", "web")["metadata"]


def test_a_budget_that_nobody_worked_out_yet_refuses_for_ten_seconds() -> None:
    api = an_api()
    a_running_pod(api)
    a_budget(api, disruptionsAllowed=1, observedGeneration=0)
    with pytest.raises(RefusedError) as refused:
        evict(api, "default", "web", EVICTION)
    assert (refused.value.code, refused.value.retry_after) == (429, 10)


def test_a_pod_that_is_not_ready_may_go_when_enough_others_are() -> None:
    api = an_api()
    a_running_pod(api, ready="False")
    a_budget(api, disruptionsAllowed=0, currentHealthy=1, desiredHealthy=1)
    assert evict(api, "default", "web", EVICTION)["status"] == "Success"


def test_two_budgets_for_one_pod_are_an_error() -> None:
    api = an_api()
    a_running_pod(api)
    a_budget(api, "a", disruptionsAllowed=1)
    a_budget(api, "b", disruptionsAllowed=1)
    with pytest.raises(RefusedError, match="more than one PodDisruptionBudget") as refused:
        evict(api, "default", "web", EVICTION)
    assert refused.value.code == 500


def test_budgets_do_not_count_for_a_pod_that_does_not_run() -> None:
    api = an_api()
    api.add({**a_pod(), "metadata": {"name": "web", "labels": {"app": "web"}}})
    a_budget(api, disruptionsAllowed=0)
    evict(api, "default", "web", EVICTION)
    assert api.store.get("pods", "default", "web") is None
