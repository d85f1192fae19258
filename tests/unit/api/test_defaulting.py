"""API server defaults of objects from files."""

from typing import Any

import pytest

from extender.api.codec import from_builtins
from extender.api.defaulting import set_defaults, set_priority, set_storage_class
from extender.api.kinds.devices import ExactDeviceRequest, ResourceClaim
from extender.api.kinds.disruption import PriorityClass
from extender.api.kinds.meta import LabelSelector, LabelSelectorRequirement, ObjectMeta
from extender.api.kinds.node import Node
from extender.api.kinds.pod import Pod
from extender.api.kinds.pod_group import CompositePodGroup, PodGroup
from extender.api.kinds.storage import PersistentVolumeClaim, StorageClass
from extender.api.kinds.workload import Namespace


def make_pod(**spec: Any) -> Pod:
    return from_builtins({"metadata": {"name": "p", "namespace": "n"}, "spec": spec}, Pod)


def test_a_namespaced_object_gets_the_default_namespace_and_a_node_gets_none() -> None:
    assert set_defaults(Pod()).metadata.namespace == "default"
    assert set_defaults(Node()).metadata.namespace == ""


def test_a_pod_with_all_defaults_is_not_copied() -> None:
    pod = make_pod(schedulerName="s", containers=[{"resources": {"limits": {"cpu": 1}, "requests": {"cpu": 1}}}])
    assert set_defaults(pod) is pod


def test_a_limit_without_a_request_becomes_the_request() -> None:
    resources = {"limits": {"cpu": 2, "memory": "1Gi"}, "requests": {"cpu": 1}}
    pod = set_defaults(make_pod(containers=[{"resources": resources}], initContainers=[{"resources": resources}]))
    for container in (*pod.spec.containers, *pod.spec.init_containers):
        assert container.resources.requests == {"cpu": 1, "memory": "1Gi"}
    assert pod.spec.scheduler_name == "default-scheduler"


@pytest.mark.parametrize(("host_network", "host_ports"), [(True, [80, 9090]), (False, [0, 9090])])
def test_host_ports_default_to_container_ports_with_host_networking(host_network: bool, host_ports: list[int]) -> None:
    ports = [{"containerPort": 80}, {"containerPort": 90, "hostPort": 9090}]
    pod = set_defaults(make_pod(hostNetwork=host_network, containers=[{"ports": ports}]))
    assert [port.host_port for port in pod.spec.containers[0].ports] == host_ports


def test_allocatable_defaults_to_capacity() -> None:
    node = from_builtins({"status": {"capacity": {"cpu": 4}}}, Node)
    assert set_defaults(node).status.allocatable == {"cpu": 4}


def test_a_namespace_is_labeled_with_its_name() -> None:
    labels = {"team": "a", "kubernetes.io/metadata.name": "other"}
    namespace = Namespace(metadata=ObjectMeta(name="shop", labels=labels))
    assert set_defaults(namespace).metadata.labels == {"team": "a", "kubernetes.io/metadata.name": "shop"}


def test_a_storage_class_binds_immediately_by_default() -> None:
    assert set_defaults(StorageClass()).volume_binding_mode == "Immediate"
    assert set_defaults(StorageClass(volume_binding_mode="WaitForFirstConsumer")).volume_binding_mode == (
        "WaitForFirstConsumer"
    )


def test_a_device_request_is_for_one_device_by_default() -> None:
    requests = [{"name": "a", "exactly": {}}, {"name": "b", "exactly": {"allocationMode": "All"}}]
    claim = set_defaults(from_builtins({"spec": {"devices": {"requests": requests}}}, ResourceClaim))
    first, second = claim.spec.devices.requests
    assert first.exactly == ExactDeviceRequest(allocation_mode="ExactCount", count=1)
    assert second.exactly == ExactDeviceRequest(allocation_mode="All")


HIGH = PriorityClass(metadata=ObjectMeta(name="high"), value=7, preemption_policy="Never")


@pytest.mark.parametrize(
    ("spec", "priority", "preemption_policy"),
    [
        ({"priorityClassName": "high"}, 7, "Never"),
        ({"priorityClassName": "high", "preemptionPolicy": "PreemptLowerPriority"}, 7, "PreemptLowerPriority"),
        ({"priorityClassName": "high", "priority": 3}, 3, None),
        ({"priorityClassName": "system-node-critical"}, 2_000_001_000, None),
        ({"priorityClassName": "unknown"}, None, None),
        ({}, None, None),
    ],
    ids=["class", "own preemption policy", "own priority", "system class", "unknown class", "no class"],
)
def test_the_priority_is_that_of_the_priority_class(
    spec: dict[str, Any], priority: int | None, preemption_policy: str | None
) -> None:
    pod = set_priority(make_pod(**spec), {"high": HIGH})
    assert (pod.spec.priority, pod.spec.preemption_policy) == (priority, preemption_policy)


def test_a_pod_without_class_gets_the_priority_of_the_lowest_global_default() -> None:
    classes = {
        "high": HIGH,
        "upper": PriorityClass(metadata=ObjectMeta(name="upper"), value=5, global_default=True),
        "lower": PriorityClass(
            metadata=ObjectMeta(name="lower"), value=3, global_default=True, preemption_policy="Never"
        ),
    }
    spec = set_priority(make_pod(), classes).spec
    assert (spec.priority, spec.preemption_policy) == (3, "Never")
    assert set_priority(make_pod(priority=0), classes).spec.priority == 0


@pytest.mark.parametrize("kind", [PodGroup, CompositePodGroup])
def test_a_pod_group_gets_the_priority_of_its_class_unless_an_api_server_created_it(
    kind: type[PodGroup | CompositePodGroup],
) -> None:
    default = PriorityClass(metadata=ObjectMeta(name="default"), value=5, global_default=True)
    group = set_priority(kind(metadata=ObjectMeta(name="g")), {"high": HIGH, "default": default})
    assert (group.spec.priority, group.spec.preemption_policy) == (5, None)
    group = set_priority(from_builtins({"spec": {"priorityClassName": "high"}}, kind), {"high": HIGH})
    assert (group.spec.priority, group.spec.preemption_policy) == (7, "Never")
    created = kind(metadata=ObjectMeta(name="g", uid="1"))
    assert set_priority(created, {"default": default}) is created


def test_label_keys_of_pod_affinity_are_merged_into_the_selectors() -> None:
    term = {
        "labelSelector": {"matchExpressions": [{"key": "app", "operator": "Exists"}]},
        "matchLabelKeys": ["version", "absent"],
        "mismatchLabelKeys": ["tenant"],
        "topologyKey": "zone",
    }
    source = {
        "metadata": {"name": "p", "labels": {"version": "2", "tenant": "a"}},
        "spec": {
            "affinity": {
                "podAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": [{"podAffinityTerm": term}]},
                "podAntiAffinity": {
                    "requiredDuringSchedulingIgnoredDuringExecution": [term, {**term, "labelSelector": None}]
                },
            }
        },
    }
    merged = LabelSelector(
        match_expressions=(
            LabelSelectorRequirement(key="app", operator="Exists"),
            LabelSelectorRequirement(key="version", operator="In", values=("2",)),
            LabelSelectorRequirement(key="tenant", operator="NotIn", values=("a",)),
        )
    )
    affinity = set_defaults(from_builtins(source, Pod)).spec.affinity
    assert affinity is not None
    assert [term.label_selector for term in affinity.iterate_pod_terms()] == [merged, merged, None]


def test_label_keys_of_pods_of_an_api_server_are_merged_already() -> None:
    term = {"labelSelector": {}, "matchLabelKeys": ["version"]}
    affinity = {"podAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}
    metadata = {"name": "p", "namespace": "n", "uid": "1", "labels": {"version": "2"}}
    pod = from_builtins({"metadata": metadata, "spec": {"schedulerName": "s", "affinity": affinity}}, Pod)
    assert set_defaults(pod) is pod


@pytest.mark.parametrize(
    ("metadata", "spec", "class_name"),
    [
        ({}, {}, "a-new"),
        ({}, {"storageClassName": "other"}, "other"),
        ({}, {"storageClassName": ""}, ""),
        ({"uid": "1"}, {}, None),
    ],
    ids=["no class", "a class", "the empty class", "a claim of an API server"],
)
def test_a_claim_without_class_gets_the_newest_default_class(
    metadata: dict[str, str], spec: dict[str, str], class_name: str | None
) -> None:
    annotations = {"storageclass.kubernetes.io/is-default-class": "true"}
    beta_annotations = {"storageclass.beta.kubernetes.io/is-default-class": "true"}
    classes = [
        from_builtins({"metadata": meta}, StorageClass)
        for meta in (
            {"name": "newest", "creationTimestamp": "2026-03-01T00:00:00Z", "annotations": {}},
            {"name": "undated", "annotations": annotations},
            {"name": "b-new", "creationTimestamp": "2026-02-01T00:00:00Z", "annotations": annotations},
            {"name": "a-new", "creationTimestamp": "2026-02-01T00:00:00Z", "annotations": beta_annotations},
            {"name": "a-old", "creationTimestamp": "2026-01-01T00:00:00Z", "annotations": annotations},
        )
    ]
    claim = from_builtins({"metadata": {"name": "c", **metadata}, "spec": spec}, PersistentVolumeClaim)
    assert set_storage_class(claim, classes).spec.storage_class_name == class_name


def test_a_claim_without_class_stays_so_if_no_class_is_the_default() -> None:
    claim = PersistentVolumeClaim(metadata=ObjectMeta(name="c"))
    assert set_storage_class(claim, [StorageClass(metadata=ObjectMeta(name="a"))]) is claim
