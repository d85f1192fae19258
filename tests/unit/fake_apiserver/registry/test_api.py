"""The API without HTTP: creating, updating and patching objects."""

import pytest

from extender.fake_apiserver.registry.api import Api
from extender.fake_apiserver.registry.api_errors import StatusError
from extender.fake_apiserver.registry.resources import NAMESPACES, NODES, PODS, RESOURCES_BY_KIND
from tests.unit.fake_apiserver.builders import Object, make_api, make_node, make_pod

LEASES = RESOURCES_BY_KIND["coordination.k8s.io/v1", "Lease"]
CLASSES = RESOURCES_BY_KIND["scheduling.k8s.io/v1", "PriorityClass"]
BUDGETS = RESOURCES_BY_KIND["policy/v1", "PodDisruptionBudget"]


def update_spec(api: Api, pod: Object, **spec: object) -> Object:
    return api.update(PODS, "default", pod["metadata"]["name"], {**pod, "spec": {**pod["spec"], **spec}})[0]


def test_a_created_object_has_uid_timestamp_and_resource_version() -> None:
    api = make_api()
    meta = api.create_from_manifest(make_pod())["metadata"]
    assert (meta["namespace"], meta["creationTimestamp"], meta["generation"]) == ("default", "2023-11-14T22:13:20Z", 1)
    assert len(meta["uid"]) == 36
    assert meta["resourceVersion"] == str(api.store.resource_version)


def test_a_generated_name_has_its_prefix_and_depends_on_the_seed() -> None:
    pod = {**make_pod(), "metadata": {"generateName": "web-"}}
    first, second = (
        Api(seed=1).create_from_manifest(pod)["metadata"]["name"],
        Api(seed=1).create_from_manifest(pod)["metadata"]["name"],
    )
    assert first == second
    assert first.startswith("web-")
    assert len(first) == 9


def test_a_pod_gets_an_api_server_s_defaults() -> None:
    container = {
        "name": "c",
        "image": "app",
        "resources": {"limits": {"cpu": "1"}},
        "ports": [{"containerPort": 80}],
    }
    pod = make_api().create_from_manifest(make_pod(containers=[container], hostNetwork=True))
    spec = pod["spec"]
    assert spec["schedulerName"] == "default-scheduler"
    assert (spec["restartPolicy"], spec["terminationGracePeriodSeconds"]) == ("Always", 30)
    assert (spec["priority"], spec["preemptionPolicy"]) == (0, "PreemptLowerPriority")
    assert spec["containers"][0]["resources"] == {"limits": {"cpu": "1"}, "requests": {"cpu": "1"}}
    assert spec["containers"][0]["ports"] == [{"containerPort": 80, "protocol": "TCP", "hostPort": 80}]
    assert spec["containers"][0]["imagePullPolicy"] == "Always"
    assert [item["key"] for item in spec["tolerations"]] == [
        "node.kubernetes.io/not-ready",
        "node.kubernetes.io/unreachable",
    ]
    assert pod["status"] == {"phase": "Pending", "qosClass": "Burstable"}


@pytest.mark.parametrize(
    ("resources", "expected"),
    [
        ({}, "BestEffort"),
        ({"requests": {"cpu": "1"}}, "Burstable"),
        ({"limits": {"cpu": "1", "memory": "1Gi"}}, "Guaranteed"),
        ({"limits": {"cpu": "1", "memory": "1Gi"}, "requests": {"cpu": "500m"}}, "Burstable"),
        ({"limits": {"cpu": "1"}}, "Burstable"),
        ({"requests": {"example.com/gpu": "1"}}, "BestEffort"),
    ],
    ids=["no requests", "a cpu request", "limits of both", "requests below limits", "a cpu limit", "others"],
)
def test_the_qos_class_follows_from_requests_and_limits(resources: Object, expected: str) -> None:
    container = {"name": "c", "image": "app:1", "resources": resources}
    assert make_api().create_from_manifest(make_pod(containers=[container]))["status"]["qosClass"] == expected


def test_a_gated_pod_is_created_with_its_condition() -> None:
    pod = make_api().create_from_manifest(make_pod(schedulingGates=[{"name": "example.com/quota"}]))
    assert pod["status"]["conditions"] == [
        {
            "type": "PodScheduled",
            "status": "False",
            "reason": "SchedulingGated",
            "message": "Scheduling is blocked due to non-empty scheduling gates",
        }
    ]


def test_the_priority_is_that_of_the_class() -> None:
    api = make_api()
    meta = {"name": "never"}
    api.create(CLASSES, "", {"metadata": meta, "value": 7, "preemptionPolicy": "Never"})
    spec = api.create_from_manifest(make_pod(priorityClassName="never"))["spec"]
    assert (spec["priority"], spec["preemptionPolicy"]) == (7, "Never")


def test_pods_without_a_class_get_the_global_default() -> None:
    api = make_api()
    api.create(CLASSES, "", {"metadata": {"name": "normal"}, "value": 5, "globalDefault": True})
    spec = api.create_from_manifest(make_pod())["spec"]
    assert (spec["priorityClassName"], spec["priority"]) == ("normal", 5)


@pytest.mark.parametrize(
    ("manifest", "code", "message"),
    [
        (make_pod(priorityClassName="no"), 403, 'pods "web" is forbidden: no PriorityClass with name no was found'),
        (
            make_pod(priority=3),
            403,
            'pods "web" is forbidden: the integer value of priority (3) must not be provided in pod spec;'
            " priority admission controller computed 0 from the given PriorityClass name",
        ),
        (make_pod(containers=[]), 422, 'Pod "web" is invalid: spec.containers: Required value'),
        (make_pod(name=""), 422, 'Pod "" is invalid: metadata.name: Required value: name or generateName is required'),
        ({**make_pod(), "metadata": {"name": "a", "namespace": "no"}}, 404, 'namespaces "no" not found'),
        (
            {**make_pod(), "metadata": {"name": "a", "resourceVersion": "3"}},
            500,
            "resourceVersion should not be set on objects to be created",
        ),
    ],
    ids=["an unknown class", "a priority of its own", "no containers", "no name", "an unknown namespace", "a version"],
)
def test_an_invalid_pod_is_rejected(manifest: Object, code: int, message: str) -> None:
    with pytest.raises(StatusError) as error:
        make_api().create_from_manifest(manifest)
    assert (error.value.code, str(error.value)) == (code, message)


@pytest.mark.parametrize(
    ("meta", "message"),
    [
        ({"name": 5}, "metadata.name: Expected `str`, got `int`"),
        ({"generateName": 5}, "metadata.generateName: Expected `str`, got `int`"),
        ({"name": "web", "labels": 5}, "metadata.labels: Expected `object`, got `int`"),
        ({"name": "web", "generation": 10**30}, "metadata.generation: Expected `int` <= 9223372036854775807"),
    ],
    ids=["the name", "the prefix", "labels", "a huge number"],
)
def test_metadata_with_a_value_of_another_type_is_rejected(meta: Object, message: str) -> None:
    text = f'Pod in version "v1" cannot be handled as a Pod: {message}'
    api = make_api()
    with pytest.raises(StatusError) as error:
        api.create(PODS, "default", {**make_pod(), "metadata": meta})
    assert (error.value.code, str(error.value)) == (400, text)
    api.create_from_manifest(make_pod())
    with pytest.raises(StatusError) as error:
        api.update(PODS, "default", "web", {**make_pod(), "metadata": meta})
    assert (error.value.code, str(error.value)) == (400, text)


def test_metadata_may_have_nulls() -> None:
    meta = {"name": "web", "generateName": None, "labels": None, "annotations": {"a": None}}
    assert make_api().create(PODS, "default", {**make_pod(), "metadata": meta})["metadata"]["name"] == "web"


def test_a_second_object_of_the_same_name_is_rejected() -> None:
    api = make_api()
    api.create_from_manifest(make_pod())
    with pytest.raises(StatusError, match='pods "web" already exists') as error:
        api.create_from_manifest(make_pod())
    assert error.value.status["reason"] == "AlreadyExists"


def test_a_dry_run_stores_nothing() -> None:
    api = make_api()
    before = api.store.resource_version
    assert api.create(PODS, "default", make_pod(), dry_run=True)["metadata"]["name"] == "web"
    assert api.store.resource_version == before


def test_an_update_of_an_old_version_is_a_conflict() -> None:
    api = make_api()
    node = api.create_from_manifest(make_node())
    api.update(NODES, "", "n1", {**node, "spec": {"unschedulable": True}})
    with pytest.raises(StatusError) as error:
        api.update(NODES, "", "n1", {**node, "spec": {}})
    assert str(error.value) == (
        'Operation cannot be fulfilled on nodes "n1": the object has been modified; please apply your changes to the'
        " latest version and try again"
    )
    assert (error.value.code, error.value.status["reason"]) == (409, "Conflict")


def test_an_update_with_another_uid_is_a_conflict() -> None:
    api = make_api()
    node = api.create_from_manifest(make_node())
    stale = {**node, "metadata": {"name": "n1", "uid": "other"}}
    with pytest.raises(StatusError, match="UID in precondition: other, UID in object meta:") as error:
        api.update(NODES, "", "n1", stale)
    assert error.value.code == 409


def test_an_update_without_changes_makes_no_new_version() -> None:
    api = make_api()
    node = api.create_from_manifest(make_node())
    before = api.store.resource_version
    assert api.update(NODES, "", "n1", node) == (node, False)
    assert api.store.resource_version == before


def test_a_lease_update_requires_its_version_and_may_create_it() -> None:
    api = make_api()
    body = {"metadata": {"name": "l"}, "spec": {"holderIdentity": "a"}}
    made, new = api.update(LEASES, "default", "l", body)
    assert new
    assert made["spec"] == {"holderIdentity": "a"}
    with pytest.raises(StatusError, match="must be specified for an update") as error:
        api.update(LEASES, "default", "l", body)
    assert error.value.code == 422


def test_status_and_spec_are_updated_separately() -> None:
    api = make_api()
    pod = api.create_from_manifest(make_pod())
    both = {**pod, "metadata": {**pod["metadata"], "labels": {"a": "b"}}, "status": {"phase": "Running"}}
    updated, _ = api.update(PODS, "default", "web", both)
    assert (updated["metadata"]["labels"], updated["status"]["phase"]) == ({"a": "b"}, "Pending")
    patch = {"status": {"phase": "Running"}, "spec": {"nodeName": "n1"}}
    status = api.patch_strategically(PODS, "default", "web", patch, subresource="status")
    assert (status["status"]["phase"], status["spec"].get("nodeName")) == ("Running", None)


def test_the_generation_counts_changes_of_the_spec() -> None:
    api = make_api()
    made = api.create(BUDGETS, "default", {"metadata": {"name": "b"}, "spec": {"minAvailable": 1}})
    api.patch(BUDGETS, "default", "b", {"status": {"disruptionsAllowed": 1}}, subresource="status")
    later = api.patch(BUDGETS, "default", "b", {"spec": {"minAvailable": 2}})
    assert (made["metadata"]["generation"], later["metadata"]["generation"]) == (1, 2)


def test_a_patch_may_contain_the_uid_of_the_object() -> None:
    api = make_api()
    pod = api.create_from_manifest(make_pod())
    matching = {"metadata": {"uid": pod["metadata"]["uid"]}, "status": {"phase": "Running"}}
    api.patch_strategically(PODS, "default", "web", matching, subresource="status")
    with pytest.raises(StatusError, match='Invalid value: "other": field is immutable') as error:
        api.patch_strategically(PODS, "default", "web", {"metadata": {"uid": "other"}}, subresource="status")
    assert error.value.code == 422


@pytest.mark.parametrize(
    ("patch", "message"),
    [
        ({"metadata": {"labels": 5}}, "metadata.labels: Expected `object`, got `int`"),
        ({"metadata": {"annotations": {"a": 5}}}, "metadata.annotations[...]: Expected `str`, got `int`"),
        ([{"op": "replace", "path": "/metadata", "value": 5}], "metadata: Expected `object`, got `int`"),
    ],
    ids=["labels", "an annotation", "all metadata"],
)
def test_a_patch_to_metadata_of_another_type_is_rejected(patch: Object | list[Object], message: str) -> None:
    api = make_api()
    pod = api.create_from_manifest(make_pod())
    with pytest.raises(StatusError) as error:
        api.patch(PODS, "default", "web", patch)
    assert error.value.code == 422
    assert str(error.value) == f' "" is invalid: patch: Invalid value: {message}'
    if isinstance(patch, dict):
        with pytest.raises(StatusError) as strategic_error:
            api.patch_strategically(PODS, "default", "web", patch)
        assert strategic_error.value.status == error.value.status
    assert api.get(PODS, "default", "web") == pod


def test_most_of_a_pod_s_spec_cannot_be_changed() -> None:
    api = make_api()
    pod = api.create_from_manifest(make_pod())
    with pytest.raises(StatusError, match="pod updates may not change fields other than"):
        update_spec(api, pod, nodeName="n1")
    with pytest.raises(StatusError, match="found new scheduling gate 'a'"):
        update_spec(api, pod, schedulingGates=[{"name": "a"}])
    with pytest.raises(StatusError, match="existing toleration can not be modified"):
        update_spec(api, pod, tolerations=[])
    more = update_spec(api, pod, tolerations=[*pod["spec"]["tolerations"], {"key": "a", "operator": "Exists"}])
    assert len(more["spec"]["tolerations"]) == 3


def test_gates_can_be_removed_and_a_gated_pod_s_node_selector_can_change() -> None:
    api = make_api()
    pod = api.create_from_manifest(make_pod(schedulingGates=[{"name": "a"}, {"name": "b"}]))
    ungated = update_spec(api, pod, schedulingGates=[], nodeSelector={"zone": "a"})
    assert "nodeSelector" in ungated["spec"]
    with pytest.raises(StatusError, match="pod updates may not change"):
        update_spec(api, ungated, nodeSelector={"zone": "b"})


def test_a_node_s_allocatable_defaults_to_its_capacity() -> None:
    assert make_api().create_from_manifest(make_node())["status"]["allocatable"] == {
        "cpu": "4",
        "memory": "8Gi",
        "pods": "110",
    }


def test_a_cluster_has_four_namespaces_and_two_priority_classes() -> None:
    api = make_api()
    names = [item["metadata"]["name"] for item in api.list_objects(NAMESPACES)]
    assert names == ["default", "kube-node-lease", "kube-public", "kube-system"]
    assert [item["value"] for item in api.list_objects(CLASSES)] == [2_000_000_000, 2_000_001_000]
