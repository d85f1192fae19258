"""The pods that workloads from files need besides those that exist."""

from collections.abc import Mapping
from typing import Any

import pytest

from extender.analysis.input.input_errors import InputError
from extender.analysis.input.workload_pods import is_controlled_by, list_workload_pods
from extender.analysis.input.workloads import Workload
from extender.analysis.recorded_cluster import Recording, parse_recording
from extender.api.codec import encode, from_builtins
from extender.api.kinds.meta import ObjectMeta
from extender.api.kinds.pod import Pod
from extender.api.kinds.storage import PersistentVolumeClaim
from extender.api.kinds.workload import ReplicaSet

TEMPLATE = {
    "metadata": {"labels": {"app": "web"}},
    "spec": {"containers": [{"name": "a", "resources": {"limits": {"cpu": "1"}}}]},
}


def make_workload(kind: str, name: str = "web", version: str = "apps/v1", **spec: Any) -> dict[str, Any]:
    return {
        "apiVersion": version,
        "kind": kind,
        "metadata": {"name": name, "namespace": "shop"},
        "spec": {"selector": {"matchLabels": {"app": "web"}}, "template": TEMPLATE, **spec},
    }


def make_node(name: str, labels: Mapping[str, str] | None = None, **spec: Any) -> dict[str, Any]:
    return {"apiVersion": "v1", "kind": "Node", "metadata": {"name": name, "labels": labels or {}}, "spec": spec}


def make_owned_pod(name: str, kind: str, owner: str, **status: Any) -> dict[str, Any]:
    reference = {"apiVersion": "apps/v1", "kind": kind, "name": owner, "uid": "u", "controller": True}
    meta = {"name": name, "namespace": "shop", "uid": name, "ownerReferences": [reference]}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": meta, "spec": {"nodeName": "n1"}, "status": status}


def read(*objects: Any) -> Recording:
    return parse_recording(b"\n".join(encode(obj) for obj in objects), "c.json")


def new_pods(recording: Recording) -> list[Pod]:
    return [obj for obj in recording.objects if isinstance(obj, Pod) and not obj.metadata.uid]


def pod_names(recording: Recording) -> list[str]:
    return [pod.metadata.name for pod in new_pods(recording)]


def test_a_deployment_becomes_its_pods_and_their_replica_set() -> None:
    recording = read(make_workload("Deployment", replicas=3))
    (replica_set,) = (obj for obj in recording.objects if isinstance(obj, ReplicaSet))
    template_hash = replica_set.metadata.labels["pod-template-hash"]
    assert replica_set.metadata.name == f"web-{template_hash}"
    assert replica_set.spec.selector is not None
    assert replica_set.spec.selector.match_labels == {"app": "web"}
    pods = new_pods(recording)
    assert [pod.key for pod in pods] == [f"shop/web-{template_hash}-{number}" for number in (1, 2, 3)]
    assert pods[0].metadata.labels == {"app": "web", "pod-template-hash": template_hash}
    assert pods[0].spec.containers[0].resources.requests == {"cpu": "1"}  # defaulted as by an API server
    assert pods[0].spec.scheduler_name == "default-scheduler"
    assert recording.workload_pods == {"deployment/shop/web": tuple(pod.key for pod in pods)}


@pytest.mark.parametrize(
    ("workload", "names"),
    [
        (make_workload("ReplicaSet"), ["web-1"]),
        (make_workload("ReplicaSet", replicas=2), ["web-1", "web-2"]),
        (make_workload("ReplicaSet", replicas=0), []),
        (make_workload("ReplicationController", version="v1", replicas=2, selector={"app": "web"}), ["web-1", "web-2"]),
        (make_workload("Job", version="batch/v1"), ["web-1"]),
        (make_workload("Job", version="batch/v1", parallelism=5, completions=2), ["web-1", "web-2"]),
        (make_workload("Job", version="batch/v1", parallelism=2), ["web-1", "web-2"]),
        (make_workload("Job", version="batch/v1", parallelism=2, suspend=True), []),
        (make_workload("StatefulSet", replicas=2), ["web-0", "web-1"]),
        (make_workload("StatefulSet", replicas=2, ordinals={"start": 5}), ["web-5", "web-6"]),
    ],
)
def test_each_kind_has_as_many_pods_as_its_controller_would_run(workload: dict[str, Any], names: list[str]) -> None:
    assert pod_names(read(workload)) == names


def test_the_pods_of_a_stateful_set_have_claims_of_their_own() -> None:
    claim = {"metadata": {"name": "data"}, "spec": {"resources": {"requests": {"storage": "1Gi"}}}}
    storage_class = {
        "apiVersion": "storage.k8s.io/v1",
        "kind": "StorageClass",
        "metadata": {"name": "fast", "annotations": {"storageclass.kubernetes.io/is-default-class": "true"}},
    }
    existing = {"apiVersion": "v1", "kind": "PersistentVolumeClaim"}
    existing["metadata"] = {"name": "data-db-1", "namespace": "shop", "uid": "1"}  # type: ignore[assignment]
    recording = read(
        make_workload("StatefulSet", "db", replicas=2, volumeClaimTemplates=[claim]), storage_class, existing
    )
    volumes = [pod.spec.volumes for pod in new_pods(recording)]
    claim_names = [volume.persistent_volume_claim for (volume,) in volumes]
    assert [source.claim_name for source in claim_names if source is not None] == ["data-db-0", "data-db-1"]
    claims = {obj.metadata.name: obj for obj in recording.objects if isinstance(obj, PersistentVolumeClaim)}
    assert {name: claim.spec.storage_class_name for name, claim in claims.items()} == {
        "data-db-0": "fast",
        "data-db-1": None,
    }


def test_a_daemon_set_has_a_pod_for_each_node_that_it_selects_and_tolerates() -> None:
    taint = {"key": "dedicated", "value": "db", "effect": "NoSchedule"}
    cordoned = {"key": "node.kubernetes.io/unschedulable", "effect": "NoSchedule"}
    template = {**TEMPLATE, "spec": {"nodeSelector": {"os": "linux"}}}
    recording = read(
        make_node("n1", {"os": "linux"}),
        make_node("n2", {"os": "windows"}),
        make_node("n3", {"os": "linux"}, taints=[taint]),
        make_node("n4", {"os": "linux"}, taints=[cordoned]),
        make_workload("DaemonSet", "agent", template=template),
    )
    assert pod_names(recording) == ["agent-n1", "agent-n4"]
    affinity = new_pods(recording)[0].spec.affinity
    assert affinity is not None
    assert affinity.node_affinity is not None
    selector = affinity.node_affinity.required_during_scheduling_ignored_during_execution
    assert selector is not None
    assert selector.node_selector_terms[0].match_fields[0].values == ("n1",)


def test_a_manifest_of_a_recorded_workload_adds_only_the_missing_pods() -> None:
    owner = {"apiVersion": "apps/v1", "kind": "Deployment", "name": "web", "uid": "d", "controller": True}
    replica_set = {"apiVersion": "apps/v1", "kind": "ReplicaSet"}
    replica_set["metadata"] = {"name": "web-7f", "namespace": "shop", "uid": "r", "ownerReferences": [owner]}  # type: ignore[assignment]
    recording = read(
        replica_set,
        make_owned_pod("web-7f-a", "ReplicaSet", "web-7f"),
        make_owned_pod("web-7f-b", "ReplicaSet", "web-7f", phase="Failed"),
        make_owned_pod("other", "ReplicaSet", "other-7f"),
        make_workload("Deployment", replicas=3),
    )
    assert len(new_pods(recording)) == 2
    assert recording.workload_pods["deployment/shop/web"][0] == "shop/web-7f-a"
    assert len(recording.workload_pods["deployment/shop/web"]) == 3


def test_existing_pods_of_stateful_sets_and_daemon_sets_are_not_made_again() -> None:
    recording = read(
        make_node("n1"),
        make_node("n2"),
        make_owned_pod("db-0", "StatefulSet", "db"),
        make_owned_pod("agent-x", "DaemonSet", "agent"),
        make_workload("StatefulSet", "db", replicas=2),
        make_workload("DaemonSet", "agent"),
    )
    assert pod_names(recording) == ["db-1", "agent-n2"]


def test_a_workload_of_an_api_server_has_its_pods_already() -> None:
    workload = make_workload("Deployment", replicas=3)
    workload["metadata"]["uid"] = "d"
    recording = read(make_node("n1"), workload)
    assert pod_names(recording) == []
    assert recording.skipped_kinds.total() == 0


def test_a_workload_that_kubectl_printed_without_nodes_and_pods_is_a_manifest() -> None:
    workload = make_workload("Deployment", replicas=3)
    workload["metadata"]["uid"] = "d"
    owner = {"apiVersion": "apps/v1", "kind": "Deployment", "name": "web", "uid": "d", "controller": True}
    replica_set = make_workload("ReplicaSet", "web-7f", replicas=3)
    replica_set["metadata"] |= {"uid": "r", "ownerReferences": [owner]}
    assert len(pod_names(read(workload))) == 3
    assert len(pod_names(read(workload, replica_set))) == 3
    assert len(pod_names(read(replica_set, workload))) == 3
    assert pod_names(read(replica_set)) == ["web-7f-1", "web-7f-2", "web-7f-3"]
    invalid = {**workload, "spec": {**workload["spec"], "replicas": "many"}}
    with pytest.raises(InputError, match="Expected `int"):
        read(invalid)


@pytest.mark.parametrize(("condition", "count"), [("Complete", 0), ("Failed", 0), ("Suspended", 1)])
def test_a_finished_job_has_no_more_pods(condition: str, count: int) -> None:
    job = make_workload("Job", version="batch/v1")
    job["metadata"]["uid"] = "j"
    job["status"] = {"conditions": [{"type": condition, "status": "True"}]}
    assert len(pod_names(read(job))) == count


def make_cron_job(job: Mapping[str, Any], **spec: Any) -> dict[str, Any]:
    meta = {"name": "web", "namespace": "shop"}
    return {
        "apiVersion": "batch/v1",
        "kind": "CronJob",
        "metadata": meta,
        "spec": {"schedule": "0 3 * * *", "jobTemplate": {"spec": job}, **spec},
    }


@pytest.mark.parametrize(
    ("workload", "names"),
    [
        (make_cron_job({"template": TEMPLATE}), ["web-1"]),
        (make_cron_job({"template": TEMPLATE, "parallelism": 3, "completions": 2}), ["web-1", "web-2"]),
        (make_cron_job({"template": TEMPLATE}, suspend=True), []),
        (make_cron_job({"template": TEMPLATE, "suspend": True}), []),
    ],
)
def test_a_cron_job_becomes_the_pods_of_its_next_job(workload: dict[str, Any], names: list[str]) -> None:
    recording = read(workload)
    assert pod_names(recording) == names
    assert recording.workload_pods == {"cronjob/shop/web": tuple(f"shop/{name}" for name in names)}


def test_the_errors_of_a_cron_job_have_the_paths_of_its_own_fields() -> None:
    path = r"CronJob shop/web: spec\.jobTemplate\.spec\."
    template = {"spec": {"containers": [{"name": "a", "resources": {"requests": {"cpu": "lots"}}}]}}
    with pytest.raises(InputError, match=rf"{path}template\.spec\.containers\[0\]\.resources\.requests\.cpu: "):
        read(make_cron_job({"template": template}))
    with pytest.raises(InputError, match=rf"{path}parallelism: -1: want 0 or more"):
        read(make_cron_job({"template": TEMPLATE, "parallelism": -1}))


def test_a_pod_belongs_to_a_cron_job_by_the_name_of_its_job() -> None:
    objects = read(*(make_owned_pod(job, "Job", job) for job in ("web-29401620", "web-2", "web"))).objects
    pods = [obj for obj in objects if isinstance(obj, Pod)]
    owned = [is_controlled_by(pod, "CronJob", "shop", "web", {}) for pod in pods]
    assert owned == [True, False, False]
    assert is_controlled_by(pods[0], "Job", "shop", "web-29401620", {})


def test_an_invalid_template_is_an_error_with_its_path() -> None:
    template = {"spec": {"containers": [{"name": "a", "resources": {"requests": {"cpu": "lots"}}}]}}
    with pytest.raises(Exception, match=r"Deployment shop/web: spec\.template\.spec\.containers") as caught:
        read(make_workload("Deployment", template=template))
    assert type(caught.value).__name__ == "InputError"


def test_a_pod_belongs_to_a_deployment_by_its_replica_set_or_by_the_name_of_one_that_is_not_recorded() -> None:
    (pod,) = [obj for obj in read(make_owned_pod("p", "ReplicaSet", "web-7f")).objects if isinstance(obj, Pod)]
    assert is_controlled_by(pod, "Deployment", "shop", "web", {})
    assert not is_controlled_by(pod, "Deployment", "shop", "we", {})
    assert not is_controlled_by(pod, "Deployment", "other", "web", {})
    replica_set = ReplicaSet(metadata=ObjectMeta(name="web-7f", namespace="shop"))
    assert not is_controlled_by(pod, "Deployment", "shop", "web", {"shop/web-7f": replica_set})
    workload = Workload(kind="ReplicaSet", metadata=ObjectMeta(name="web-7f", namespace="shop"))
    assert list_workload_pods(workload, [pod]) == [pod]


def test_a_replica_set_without_an_owner_belongs_to_the_deployment_of_its_name_if_its_pods_have_the_hash() -> None:
    owner = {"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "web-7f", "uid": "u", "controller": True}
    meta = {"name": "p", "namespace": "shop", "ownerReferences": [owner]}
    replica_sets = {"shop/web-7f": from_builtins({"metadata": {"name": "web-7f", "namespace": "shop"}}, ReplicaSet)}
    by_hand = from_builtins({"metadata": meta}, Pod)
    of_deployment = from_builtins({"metadata": {**meta, "labels": {"pod-template-hash": "7f"}}}, Pod)
    assert is_controlled_by(of_deployment, "Deployment", "shop", "web", replica_sets)
    assert not is_controlled_by(by_hand, "Deployment", "shop", "web", replica_sets)
