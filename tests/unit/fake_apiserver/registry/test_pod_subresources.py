"""The subresources pods/binding and pods/eviction."""

import pytest

from extender.fake_apiserver.registry.api import Api
from extender.fake_apiserver.registry.api_errors import StatusError
from extender.fake_apiserver.registry.pod_subresources import bind, evict
from extender.fake_apiserver.registry.resources import POD_DISRUPTION_BUDGETS, PODS
from tests.unit.fake_apiserver.builders import Object, make_api, make_binding, make_pod

EVICTION = {"metadata": {"name": "web"}}


def bind_error(api: Api, binding: Object) -> tuple[int, str]:
    with pytest.raises(StatusError) as error:
        bind(api, "default", "web", binding)
    return error.value.code, str(error.value)


def create_running_pod(api: Api, *, ready: str = "True") -> None:
    pod = make_pod(nodeName="n1")
    api.create_from_manifest({**pod, "metadata": {"name": "web", "labels": {"app": "web"}}})
    status = {"phase": "Running", "conditions": [{"type": "Ready", "status": ready}]}
    api.patch_strategically(PODS, "default", "web", {"status": status}, subresource="status")


def create_budget(api: Api, name: str = "b", **status: int) -> None:
    spec = {"selector": {"matchLabels": {"app": "web"}}}
    api.create(POD_DISRUPTION_BUDGETS, "default", {"metadata": {"name": name}, "spec": spec})
    full_status = {"observedGeneration": 1, **status}
    api.patch(POD_DISRUPTION_BUDGETS, "default", name, {"status": full_status}, subresource="status")


def test_a_bound_pod_has_a_node_a_condition_and_no_nominated_node() -> None:
    api = make_api()
    api.create_from_manifest(make_pod())
    waiting = {"type": "PodScheduled", "status": "False", "reason": "Unschedulable"}
    status = {"nominatedNodeName": "n2", "conditions": [waiting]}
    api.patch_strategically(PODS, "default", "web", {"status": status}, subresource="status")
    status_object = bind(
        api, "default", "web", {**make_binding("n1"), "metadata": {"name": "web", "annotations": {"a": "b"}}}
    )
    pod = api.get(PODS, "default", "web")
    assert (status_object["status"], status_object["code"]) == ("Success", 201)
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
    api = make_api()
    api.create_from_manifest(make_pod())
    bind(api, "default", "web", make_binding("n1"))
    expected = 'Operation cannot be fulfilled on pods/binding "web": pod web is already assigned to node "n1"'
    assert bind_error(api, make_binding("n2")) == (409, expected)
    assert bind_error(api, make_binding("n1")) == (409, expected)


def test_a_pod_that_is_being_deleted_is_not_bound() -> None:
    api = make_api()
    api.create_from_manifest({**make_pod(), "metadata": {"name": "web", "finalizers": ["example.com/a"]}})
    api.delete(PODS, "default", "web")
    expected = "pod web is being deleted, cannot be assigned to a host"
    assert bind_error(api, make_binding("n1")) == (
        409,
        f'Operation cannot be fulfilled on pods/binding "web": {expected}',
    )


def test_a_gated_pod_is_not_bound() -> None:
    api = make_api()
    api.create_from_manifest(make_pod(schedulingGates=[{"name": "a"}]))
    expected = 'Operation cannot be fulfilled on pods/binding "web": pod web has non-empty .spec.schedulingGates'
    assert bind_error(api, make_binding("n1")) == (409, expected)


def test_a_binding_with_the_uid_of_a_deleted_pod_is_rejected() -> None:
    api = make_api()
    first = api.create_from_manifest(make_pod())["metadata"]["uid"]
    api.delete(PODS, "default", "web")
    second = api.create_from_manifest(make_pod())["metadata"]["uid"]
    assert bind_error(api, make_binding("n1", uid=first)) == (
        409,
        'Operation cannot be fulfilled on pods "web": StorageError: invalid object, Code: 4, Key:'
        " /registry/pods/default/web, ResourceVersion: 0, AdditionalErrorMsg: Precondition failed: UID in precondition:"
        f" {first}, UID in object meta: {second}",
    )
    bind(api, "default", "web", make_binding("n1", uid=second))


def test_a_binding_of_a_missing_pod_or_without_a_node_is_rejected() -> None:
    api = make_api()
    assert bind_error(api, make_binding("n1")) == (404, 'pods "web" not found')
    api.create_from_manifest(make_pod())
    assert bind_error(api, make_binding(""))[0] == 422
    assert bind_error(api, make_binding("n1", name="other")) == (
        400,
        "name in URL does not match name in Binding object",
    )


def test_an_evicted_pod_has_a_condition_and_its_grace_period() -> None:
    api = make_api()
    create_running_pod(api)
    assert evict(api, "default", "web", EVICTION)["status"] == "Success"
    pod = api.get(PODS, "default", "web")
    assert pod["metadata"]["deletionGracePeriodSeconds"] == 30
    assert [(condition["type"], condition.get("reason")) for condition in pod["status"]["conditions"]] == [
        ("Ready", None),
        ("DisruptionTarget", "EvictionByEvictionAPI"),
    ]


def test_an_eviction_decrements_the_allowed_disruptions() -> None:
    api = make_api()
    create_running_pod(api)
    create_budget(api, disruptionsAllowed=1, currentHealthy=2, desiredHealthy=1)
    evict(api, "default", "web", EVICTION)
    status = api.get(POD_DISRUPTION_BUDGETS, "default", "b")["status"]
    assert (status["disruptionsAllowed"], status["disruptedPods"]) == (0, {"web": "2023-11-14T22:13:20Z"})


def test_a_budget_without_allowed_disruptions_rejects_the_eviction() -> None:
    api = make_api()
    create_running_pod(api)
    create_budget(api, disruptionsAllowed=0, currentHealthy=1, desiredHealthy=1)
    with pytest.raises(StatusError) as error:
        evict(api, "default", "web", EVICTION)
    assert (error.value.code, str(error.value)) == (
        429,
        "Cannot evict pod as it would violate the pod's disruption budget.",
    )
    assert error.value.status["details"]["causes"] == [
        {"reason": "DisruptionBudget", "message": "The disruption budget b needs 1 healthy pods and has 1 currently"}
    ]
    assert "deletionTimestamp" not in api.get(PODS, "default", "web")["metadata"]


def test_a_budget_that_is_not_yet_observed_rejects_with_retry_after() -> None:
    api = make_api()
    create_running_pod(api)
    create_budget(api, disruptionsAllowed=1, observedGeneration=0)
    with pytest.raises(StatusError) as error:
        evict(api, "default", "web", EVICTION)
    assert (error.value.code, error.value.retry_after) == (429, 10)


def test_an_unready_pod_may_be_evicted_while_enough_pods_are_healthy() -> None:
    api = make_api()
    create_running_pod(api, ready="False")
    create_budget(api, disruptionsAllowed=0, currentHealthy=1, desiredHealthy=1)
    assert evict(api, "default", "web", EVICTION)["status"] == "Success"


def test_two_budgets_for_one_pod_are_an_error() -> None:
    api = make_api()
    create_running_pod(api)
    create_budget(api, "a", disruptionsAllowed=1)
    create_budget(api, "b", disruptionsAllowed=1)
    with pytest.raises(StatusError, match="more than one PodDisruptionBudget") as error:
        evict(api, "default", "web", EVICTION)
    assert error.value.code == 500


def test_budgets_do_not_apply_to_a_pending_pod() -> None:
    api = make_api()
    api.create_from_manifest({**make_pod(), "metadata": {"name": "web", "labels": {"app": "web"}}})
    create_budget(api, disruptionsAllowed=0)
    evict(api, "default", "web", EVICTION)
    assert api.store.get("pods", "default", "web") is None
