"""API server defaults of objects from files."""

from typing import Any

import pytest

from extender.api.codec import from_builtins
from extender.api.defaulting import set_defaults, set_priority
from extender.api.kinds.devices import ExactDeviceRequest, ResourceClaim
from extender.api.kinds.disruption import PriorityClass
from extender.api.kinds.meta import ObjectMeta
from extender.api.kinds.node import Node
from extender.api.kinds.pod import Pod
from extender.api.kinds.storage import StorageClass
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
    namespace = Namespace(metadata=ObjectMeta(name="shop", labels={"team": "a", "kubernetes.io/metadata.name": "other"}))
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
