"""Preemption by a real kube-scheduler has the victims, the node and the message of our dry run."""

import json
from collections.abc import Mapping
from functools import partial
from typing import Any

import pytest

from tests.controlplane.api_client import ApiClient, JsonObject, find_condition, object_key
from tests.controlplane.control_plane import ControlPlane
from tests.controlplane.offline_scheduler import OfflineScheduler, list_objects
from tests.controlplane.programs import RELEASE

HOST = "kubernetes.io/hostname"
REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
PRIORITIES = {"low": 10, "lower": 5, "middle": 100, "high": 1000}

# Node, name, CPU, priority class and label `app` of the running pods.
RUNNING_PODS = [
    ("node-0", "a0", "2", "low", "plain"),
    ("node-0", "b0", "1", "lower", "plain"),
    ("node-1", "a1", "1", "low", "guarded"),
    ("node-1", "b1", "2", "low", "guarded"),
    ("node-2", "a2", "3", "middle", "plain"),
    ("node-2", "b2", "1", "lower", "plain"),
    ("node-3", "a3", "4", "middle", "rival"),
    ("node-4", "a4", "1", "lower", "port"),
    ("node-4", "b4", "3", "high", "plain"),
    ("node-5", "a5", "1", "low", "plain"),
    ("node-5", "b5", "1", "lower", "guarded"),
    ("node-5", "c5", "1", "middle", "plain"),
]

RIVAL_TERM = {"labelSelector": {"matchLabels": {"app": "rival"}}, "topologyKey": HOST}

PREEMPTORS: dict[str, dict[str, Any]] = {
    "the fewest victims of the lowest priority are selected": {"cpu": "2", "spec": {}},
    "all pods of the selected node are evicted": {"cpu": "4", "spec": {"nodeSelector": {HOST: "node-2"}}},
    "a pod that violates anti-affinity is evicted": {
        "cpu": "100m",
        "spec": {
            "nodeSelector": {HOST: "node-3"},
            "affinity": {"podAntiAffinity": {REQUIRED: [RIVAL_TERM]}},
        },
    },
    "a pod with the host port is evicted": {
        "cpu": "50m",
        "spec": {"nodeSelector": {HOST: "node-4"}},
        "ports": [{"containerPort": 80, "hostPort": 80}],
    },
    "a disruption budget is violated only if necessary": {
        "cpu": "3",
        "spec": {"nodeSelector": {HOST: "node-1"}},
    },
    "pods without a budget are evicted first": {"cpu": "2500m", "spec": {"nodeSelector": {HOST: "node-5"}}},
}


@pytest.fixture
def cluster(control_plane: ControlPlane, api: ApiClient) -> ApiClient:
    """Create six nodes with pods of several priorities and a disruption budget, and start kube-scheduler."""
    for name, value in PRIORITIES.items():
        api.create({"kind": "PriorityClass", "metadata": {"name": name}, "value": value})
    capacity = {"cpu": "4", "memory": "16Gi", "pods": "10"}
    for number in range(6):
        name = f"node-{number}"
        status = {"capacity": capacity, "allocatable": capacity}
        api.create({"kind": "Node", "metadata": {"name": name, "labels": {HOST: name}}, "status": status})
    budget_spec = {"selector": {"matchLabels": {"app": "guarded"}}, "minAvailable": 3}
    budget = {"kind": "PodDisruptionBudget", "metadata": {"name": "guard"}, "spec": budget_spec}
    budget_status = {"disruptionsAllowed": 0, "currentHealthy": 3, "desiredHealthy": 3, "expectedPods": 3}
    api.create({**budget, "status": {**budget_status, "observedGeneration": 1}})
    for minute, (node, name, cpu, priority_class, app) in enumerate(RUNNING_PODS):
        ports = [{"containerPort": 80, "hostPort": 80}] if app == "port" else []
        pod = api.create(make_pod(name, cpu, priority_class, {"nodeName": node}, ports=ports, app=app))
        api.patch(pod, {"status": {"phase": "Running", "startTime": f"2026-01-01T00:{minute:02}:00Z"}}, "status")
    control_plane.start_kube_scheduler()
    return api


def make_pod(
    name: str,
    cpu: str,
    priority_class: str,
    spec: JsonObject,
    *,
    ports: list[JsonObject] | None = None,
    app: str = "plain",
) -> JsonObject:
    """Make a pod that requests *cpu* and no memory."""
    container = {"name": "app", "image": "app", "ports": ports or [], "resources": {"requests": {"cpu": cpu}}}
    meta = {"name": name, "namespace": "default", "labels": {"app": app}}
    return {
        "kind": "Pod",
        "metadata": meta,
        "spec": {"containers": [container], "priorityClassName": priority_class, **spec},
    }


def terminating_pods(pods: Mapping[str, JsonObject]) -> list[str]:
    """Return the keys of the terminating pods."""
    return sorted(name for name, pod in pods.items() if pod["metadata"].get("deletionTimestamp"))


def at_least_terminating(count: int, pods: Mapping[str, JsonObject]) -> bool:
    """Return whether at least *count* pods are terminating."""
    return len(terminating_pods(pods)) >= count


def test_kube_scheduler_evicts_the_same_victims(cluster: ApiClient) -> None:
    """Preemptors are created one after another, each after the victims of the previous one are deleted."""
    scheduler = OfflineScheduler()
    for number, (case, preemptor) in enumerate(PREEMPTORS.items()):
        lists = list_objects(cluster)
        pod = cluster.create(
            make_pod(f"preemptor-{number}", preemptor["cpu"], "high", preemptor["spec"], ports=preemptor.get("ports"))
        )
        explanation = scheduler.explain(pod, lists)
        preemption = explanation["preemption"]
        upstream = cluster.wait_for(pod, lambda pod: bool(pod.get("status", {}).get("nominatedNodeName")), "nomination")
        node = upstream["status"]["nominatedNodeName"]
        assert find_condition(upstream, "PodScheduled")["message"] == explanation["message"], case
        assert node in preemption["ties"], case
        victims = preemption["candidates"][node]["victims"]
        pods = cluster.wait_until("Pod", partial(at_least_terminating, len(victims)), "eviction")
        assert terminating_pods(pods) == victims, case
        for victim in victims:
            assert find_condition(pods[victim], "DisruptionTarget")["reason"] == "PreemptionByScheduler"
            cluster.delete(pods[victim])
        bound = cluster.wait_for(pod, lambda pod: bool(pod["spec"].get("nodeName")), f"placing {object_key(pod)}")
        assert bound["spec"]["nodeName"] == node, case


def test_a_pod_that_must_not_preempt_is_rejected_with_the_same_message(cluster: ApiClient) -> None:
    spec = {"preemptionPolicy": "Never"}
    lists = list_objects(cluster)
    cluster.create({"kind": "PriorityClass", "metadata": {"name": "polite"}, "value": 500, **spec})
    pod = cluster.create(make_pod("polite", "3", "polite", {}))
    upstream = cluster.wait_for(pod, lambda pod: bool(find_condition(pod, "PodScheduled")), "a rejection")
    deallocation = "no new claims to deallocate, " if RELEASE == "1.36" else ""
    message = (
        "0/6 nodes are available: 6 Insufficient cpu. "
        f"{deallocation}preemption: not eligible due to preemptionPolicy=Never."
    )
    assert find_condition(upstream, "PodScheduled")["message"] == message
    assert OfflineScheduler().explain(pod, lists)["message"] == message
    assert terminating_pods({object_key(pod): pod for pod in json.loads(cluster.list("Pod"))["items"]}) == []
