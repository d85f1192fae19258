"""Tests of the API's rules without HTTP: creating, changing and deleting objects."""

import pytest

from extender.sandbox.api import Api
from extender.sandbox.refusals import RefusedError
from extender.sandbox.served import BY_KIND, NAMESPACES, NODES, PODS
from tests.unit.sandbox.calls import Object, a_node, a_pod, an_api

LEASES = BY_KIND["coordination.k8s.io/v1", "Lease"]
CLASSES = BY_KIND["scheduling.k8s.io/v1", "PriorityClass"]
BUDGETS = BY_KIND["policy/v1", "PodDisruptionBudget"]


def change(api: Api, pod: Object, **spec: object) -> Object:
    return api.update(PODS, "default", pod["metadata"]["name"], {**pod, "spec": {**pod["spec"], **spec}})[0]


def test_a_created_object_has_identity_time_and_version() -> None:
    api = an_api()
    meta = api.add(a_pod())["metadata"]
    assert (meta["namespace"], meta["creationTimestamp"], meta["generation"]) == ("default", "2023-11-14T22:13:20Z", 1)
    assert len(meta["uid"]) == 36
    assert meta["resourceVersion"] == str(api.store.version)


def test_a_name_is_made_from_a_prefix_and_the_seed() -> None:
    pod = {**a_pod(), "metadata": {"generateName": "web-"}}
    first, second = Api(seed=1).add(pod)["metadata"]["name"], Api(seed=1).add(pod)["metadata"]["name"]
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
    pod = an_api().add(a_pod(containers=[container], hostNetwork=True))
    spec = pod["spec"]
    assert spec["schedulerName"] == "default-scheduler"
    assert (spec["restartPolicy"], spec["terminationGracePeriodSeconds"]) == ("Always", 30)
    assert (spec["priority"], spec["preemptionPolicy"]) == (0, "PreemptLowerPriority")
    assert spec["containers"][0]["resources"] == {"limits": {"cpu": "1"}, "requests": {"cpu": "1"}}
    assert spec["containers"][0]["ports"] == [{"containerPort": 80, "protocol": "TCP", "hostPort": 80}]
    assert spec["containers"][0]["imagePullPolicy"] == "Always"
    assert [each["key"] for each in spec["tolerations"]] == [
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
    ids=["nothing asked", "cpu asked", "all capped", "less asked than capped", "only cpu capped", "other resources"],
)
def test_the_quality_of_service_follows_from_requests_and_limits(resources: Object, expected: str) -> None:
    container = {"name": "c", "image": "app:1", "resources": resources}
    assert an_api().add(a_pod(containers=[container]))["status"]["qosClass"] == expected


def test_a_gated_pod_says_so_from_the_start() -> None:
    pod = an_api().add(a_pod(schedulingGates=[{"name": "example.com/quota"}]))
    assert pod["status"]["conditions"] == [
        {
            "type": "PodScheduled",
            "status": "False",
            "reason": "SchedulingGated",
            "message": "Scheduling is blocked due to non-empty scheduling gates",
        }
    ]


def test_the_priority_is_that_of_the_class() -> None:
    api = an_api()
    meta = {"name": "never"}
    api.create(CLASSES, "", {"metadata": meta, "value": 7, "preemptionPolicy": "Never"})
    spec = api.add(a_pod(priorityClassName="never"))["spec"]
    assert (spec["priority"], spec["preemptionPolicy"]) == (7, "Never")


def test_the_default_class_counts_for_pods_that_name_none() -> None:
    api = an_api()
    api.create(CLASSES, "", {"metadata": {"name": "normal"}, "value": 5, "globalDefault": True})
    spec = api.add(a_pod())["spec"]
    assert (spec["priorityClassName"], spec["priority"]) == ("normal", 5)


@pytest.mark.parametrize(
    ("manifest", "code", "message"),
    [
        (a_pod(priorityClassName="no"), 403, 'pods "web" is forbidden: no PriorityClass with name no was found'),
        (
            a_pod(priority=3),
            403,
            'pods "web" is forbidden: the integer value of priority (3) must not be provided in pod spec;'
            " priority admission controller computed 0 from the given PriorityClass name",
        ),
        (a_pod(containers=[]), 422, 'Pod "web" is invalid: spec.containers: Required value'),
        (a_pod(name=""), 422, 'Pod "" is invalid: metadata.name: Required value: name or generateName is required'),
        ({**a_pod(), "metadata": {"name": "a", "namespace": "no"}}, 404, 'namespaces "no" not found'),
        (
            {**a_pod(), "metadata": {"name": "a", "resourceVersion": "3"}},
            500,
            "resourceVersion should not be set on objects to be created",
        ),
    ],
    ids=["an unknown class", "a priority of its own", "no containers", "no name", "an unknown namespace", "a version"],
)
def test_a_pod_is_not_created_with(manifest: Object, code: int, message: str) -> None:
    with pytest.raises(RefusedError) as refused:
        an_api().add(manifest)
    assert (refused.value.code, str(refused.value)) == (code, message)


def test_a_name_is_taken_once() -> None:
    api = an_api()
    api.add(a_pod())
    with pytest.raises(RefusedError, match='pods "web" already exists') as refused:
        api.add(a_pod())
    assert refused.value.status["reason"] == "AlreadyExists"


def test_a_dry_run_does_nothing() -> None:
    api = an_api()
    before = api.store.version
    assert api.create(PODS, "default", a_pod(), dry_run=True)["metadata"]["name"] == "web"
    assert api.store.version == before


def test_an_update_of_an_old_version_is_a_conflict() -> None:
    api = an_api()
    node = api.add(a_node())
    api.update(NODES, "", "n1", {**node, "spec": {"unschedulable": True}})
    with pytest.raises(RefusedError) as refused:
        api.update(NODES, "", "n1", {**node, "spec": {}})
    assert str(refused.value) == (
        'Operation cannot be fulfilled on nodes "n1": the object has been modified; please apply your changes to the'
        " latest version and try again"
    )
    assert (refused.value.code, refused.value.status["reason"]) == (409, "Conflict")


def test_an_update_of_an_object_that_was_replaced_is_a_conflict() -> None:
    api = an_api()
    node = api.add(a_node())
    stale = {**node, "metadata": {"name": "n1", "uid": "other"}}
    with pytest.raises(RefusedError, match="UID in precondition: other, UID in object meta:") as refused:
        api.update(NODES, "", "n1", stale)
    assert refused.value.code == 409


def test_an_update_that_changes_nothing_makes_no_version() -> None:
    api = an_api()
    node = api.add(a_node())
    before = api.store.version
    assert api.update(NODES, "", "n1", node) == (node, False)
    assert api.store.version == before


def test_a_lease_must_be_updated_with_its_version_and_may_be_created_by_an_update() -> None:
    api = an_api()
    body = {"metadata": {"name": "l"}, "spec": {"holderIdentity": "a"}}
    made, new = api.update(LEASES, "default", "l", body)
    assert new
    assert made["spec"] == {"holderIdentity": "a"}
    with pytest.raises(RefusedError, match="must be specified for an update") as refused:
        api.update(LEASES, "default", "l", body)
    assert refused.value.code == 422


def test_status_and_spec_are_written_apart() -> None:
    api = an_api()
    pod = api.add(a_pod())
    both = {**pod, "metadata": {**pod["metadata"], "labels": {"a": "b"}}, "status": {"phase": "Running"}}
    whole, _ = api.update(PODS, "default", "web", both)
    assert (whole["metadata"]["labels"], whole["status"]["phase"]) == ({"a": "b"}, "Pending")
    patch = {"status": {"phase": "Running"}, "spec": {"nodeName": "n1"}}
    status = api.patch(PODS, "default", "web", patch, strategic=True, part="status")
    assert (status["status"]["phase"], status["spec"].get("nodeName")) == ("Running", None)


def test_the_generation_counts_changes_of_the_spec() -> None:
    api = an_api()
    made = api.create(BUDGETS, "default", {"metadata": {"name": "b"}, "spec": {"minAvailable": 1}})
    api.patch(BUDGETS, "default", "b", {"status": {"disruptionsAllowed": 1}}, strategic=False, part="status")
    later = api.patch(BUDGETS, "default", "b", {"spec": {"minAvailable": 2}}, strategic=False)
    assert (made["metadata"]["generation"], later["metadata"]["generation"]) == (1, 2)


def test_a_patch_may_name_the_object_it_means() -> None:
    api = an_api()
    pod = api.add(a_pod())
    right = {"metadata": {"uid": pod["metadata"]["uid"]}, "status": {"phase": "Running"}}
    api.patch(PODS, "default", "web", right, strategic=True, part="status")
    with pytest.raises(RefusedError, match='Invalid value: "other": field is immutable') as refused:
        api.patch(PODS, "default", "web", {"metadata": {"uid": "other"}}, strategic=True, part="status")
    assert refused.value.code == 422


def test_most_of_a_pod_s_spec_cannot_be_changed() -> None:
    api = an_api()
    pod = api.add(a_pod())
    with pytest.raises(RefusedError, match="pod updates may not change fields other than"):
        change(api, pod, nodeName="n1")
    with pytest.raises(RefusedError, match="found new scheduling gate 'a'"):
        change(api, pod, schedulingGates=[{"name": "a"}])
    with pytest.raises(RefusedError, match="existing toleration can not be modified"):
        change(api, pod, tolerations=[])
    more = change(api, pod, tolerations=[*pod["spec"]["tolerations"], {"key": "a", "operator": "Exists"}])
    assert len(more["spec"]["tolerations"]) == 3


def test_gates_can_be_taken_away_and_a_gated_pod_may_choose_its_nodes() -> None:
    api = an_api()
    pod = api.add(a_pod(schedulingGates=[{"name": "a"}, {"name": "b"}]))
    free = change(api, pod, schedulingGates=[], nodeSelector={"zone": "a"})
    assert "nodeSelector" in free["spec"]
    with pytest.raises(RefusedError, match="pod updates may not change"):
        change(api, free, nodeSelector={"zone": "b"})


def test_a_node_s_allocatable_defaults_to_its_capacity() -> None:
    assert an_api().add(a_node())["status"]["allocatable"] == {"cpu": "4", "memory": "8Gi", "pods": "110"}


def test_a_cluster_has_four_namespaces_and_two_priority_classes() -> None:
    api = an_api()
    names = [each["metadata"]["name"] for each in api.each(NAMESPACES)]
    assert names == ["default", "kube-node-lease", "kube-public", "kube-system"]
    assert [each["value"] for each in api.each(CLASSES)] == [2_000_000_000, 2_000_001_000]
