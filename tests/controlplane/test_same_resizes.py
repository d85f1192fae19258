"""In-place resizes that the kubelet deferred: kube-scheduler and our scheduler preempt the same pods for them.

There is no kubelet: the tests write the status that it would write. Releases before 1.37 have no gate for this.
"""

import re
from collections.abc import Iterator, Mapping
from typing import Any

import pytest

from tests.controlplane.api_client import ApiClient, JsonObject, find_condition
from tests.controlplane.conftest import running_control_plane
from tests.controlplane.control_plane import ADMIN, ControlPlane
from tests.controlplane.process import free_ports
from tests.controlplane.programs import RELEASE
from tests.controlplane.test_same_endpoints import SchedulerEndpoints, serving_flags

GATES = "--feature-gates=InPlacePodVerticalScalingSchedulerPreemption=true"
POLICY = {"podPreemptionPolicy": {"disableResizePreemption": ["autoscaler.example.com/owner"]}}

pytestmark = pytest.mark.skipif(RELEASE == "1.36", reason="1.36 schedules no pods whose resize is deferred")


@pytest.fixture(scope="module")
def control_plane(tmp_path_factory: pytest.TempPathFactory, request: pytest.FixtureRequest) -> Iterator[ControlPlane]:
    """Run an API server with the gate."""
    with running_control_plane(tmp_path_factory.mktemp("resizes"), request.session, GATES) as plane:
        yield plane


@pytest.fixture(params=["kube-scheduler", "extender"])
def scheduler(control_plane: ControlPlane, request: pytest.FixtureRequest) -> SchedulerEndpoints:
    """Start one of the schedulers."""
    port = free_ports(1)[0]
    start = control_plane.start_extender if request.param == "extender" else control_plane.start_kube_scheduler
    endpoints = SchedulerEndpoints(start({}, GATES, *serving_flags(control_plane, port)), port)
    endpoints.wait_until_ready()
    return endpoints


def create_node(api: ApiClient, name: str, spec: JsonObject | None = None) -> JsonObject:
    """Create a node with four CPUs and the features that resizes need."""
    capacity = {"cpu": "4", "memory": "8Gi", "pods": "10"}
    status = {"capacity": capacity, "allocatable": capacity}
    return api.create({"kind": "Node", "metadata": {"name": name}, "spec": spec or {}, "status": status})


def create_pod(api: ApiClient, name: str, node: str, cpu: str, priority_class: str) -> JsonObject:
    """Create a pod on *node* that the kubelet runs with its requests."""
    resources = {"requests": {"cpu": cpu, "memory": "1Gi"}}
    spec = {
        "nodeName": node,
        "priorityClassName": priority_class,
        "containers": [{"name": "app", "image": "app", "resources": resources}],
    }
    pod = api.create({"kind": "Pod", "metadata": {"name": name, "namespace": "default"}, "spec": spec})
    container_status = {
        "name": "app", "image": "app", "imageID": "app", "ready": True, "restartCount": 0,
        "state": {"running": {}}, "allocatedResources": resources["requests"], "resources": resources,
    }  # fmt: skip
    return api.patch(pod, {"status": {"phase": "Running", "containerStatuses": [container_status]}}, "status")


def defer_resize(api: ApiClient, pod: JsonObject, cpu: str) -> JsonObject:
    """Request *cpu*, and write the condition of a kubelet that has no room for it."""
    containers = [dict(container) for container in pod["spec"]["containers"]]
    containers[0]["resources"] = {"requests": {"cpu": cpu, "memory": "1Gi"}}
    api.patch(pod, {"spec": {"containers": containers}}, "resize")
    condition = {"type": "PodResizePending", "status": "True", "reason": "Deferred", "message": "too few resources"}
    return api.patch(pod, {"status": {"conditions": [condition]}}, "status")


@pytest.fixture
def cluster(api: ApiClient) -> ApiClient:
    """Create two nodes with a victim each."""
    for name, value in {"low": 10, "high": 1000}.items():
        api.create({"kind": "PriorityClass", "metadata": {"name": name}, "value": value})
    for name in ("node-0", "node-1"):
        create_node(api, name)
        create_pod(api, f"victim-{name}", name, "2", "low")
    return api


def is_evicted(pod: Mapping[str, Any]) -> bool:
    """Return whether *pod* is terminating."""
    return bool(pod["metadata"].get("deletionTimestamp"))


def count_attempts(scheduler: SchedulerEndpoints, plane: ControlPlane) -> dict[str, float]:
    """Return the number of attempts by result."""
    text = scheduler.get("/metrics", plane.token(ADMIN))[1]
    rows = re.findall(r'(?m)^scheduler_schedule_attempts_total\{.*result="(\w+)".*\} (\S+)$', text)
    return {result: float(number) for result, number in rows}


def test_a_deferred_resize_evicts_pods_of_its_node_only(
    cluster: ApiClient, control_plane: ControlPlane, scheduler: SchedulerEndpoints
) -> None:
    pod = create_pod(cluster, "grows", "node-0", "1", "high")

    defer_resize(cluster, pod, "3")

    victim = cluster.wait_for(
        {"kind": "Pod", "metadata": {"name": "victim-node-0", "namespace": "default"}}, is_evicted, "eviction"
    )
    message = "default-scheduler: preempting to accommodate a higher priority pod"
    assert find_condition(victim, "DisruptionTarget")["message"] == message
    assert not is_evicted(cluster.get("Pod", "victim-node-1", "default"))
    resized = cluster.get("Pod", "grows", "default")
    assert [condition["type"] for condition in resized["status"]["conditions"]] == ["PodResizePending"]
    assert "nominatedNodeName" not in resized["status"]
    assert count_attempts(scheduler, control_plane)["unschedulable"] >= 1


def test_a_node_may_disable_preemption_for_resizes(
    cluster: ApiClient, control_plane: ControlPlane, scheduler: SchedulerEndpoints
) -> None:
    node = create_node(cluster, "node-2", POLICY)
    victim = create_pod(cluster, "victim-node-2", "node-2", "2", "low")
    defer_resize(cluster, create_pod(cluster, "grows", "node-2", "1", "high"), "3")
    while not count_attempts(scheduler, control_plane).get("unschedulable"):
        scheduler.pause()
    assert not is_evicted(cluster.get("Pod", "victim-node-2", "default"))

    cluster.patch(node, {"spec": {"podPreemptionPolicy": None}})

    cluster.wait_for(victim, is_evicted, "eviction after the node allows it")


def test_a_resize_that_fits_is_an_error_for_the_cache(
    cluster: ApiClient, control_plane: ControlPlane, scheduler: SchedulerEndpoints
) -> None:
    """kube-scheduler 1.37.2 cannot assume a pod that is on a node already, and retries with backoff."""
    defer_resize(cluster, create_pod(cluster, "grows", "node-0", "1", "high"), "2")
    while not count_attempts(scheduler, control_plane).get("error"):
        scheduler.pause()
    assert "unschedulable" not in count_attempts(scheduler, control_plane)
    assert not is_evicted(cluster.get("Pod", "victim-node-0", "default"))
