"""Preemption by a real kube-scheduler: the victims, the node and the message are those that we find."""

import json
from collections.abc import Mapping
from functools import partial
from typing import Any

import pytest

from tests.controlplane.api import Api, Thing, condition, key
from tests.controlplane.ours import Ours, lists
from tests.controlplane.plane import ControlPlane

HOST = "kubernetes.io/hostname"
REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
PRIORITIES = {"low": 10, "lower": 5, "middle": 100, "high": 1000}

# What runs before anybody is preempted: node, name, CPU, priority class, label `app`.
RUNNING = [
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

ALIKE = {"labelSelector": {"matchLabels": {"app": "rival"}}, "topologyKey": HOST}

PREEMPTORS: dict[str, dict[str, Any]] = {
    "the fewest and least important victims are taken": {"cpu": "2", "spec": {}},
    "a node that is asked for is emptied": {"cpu": "4", "spec": {"nodeSelector": {HOST: "node-2"}}},
    "a rival is evicted": {
        "cpu": "100m",
        "spec": {
            "nodeSelector": {HOST: "node-3"},
            "affinity": {"podAntiAffinity": {REQUIRED: [ALIKE]}},
        },
    },
    "a host port is taken over": {
        "cpu": "50m",
        "spec": {"nodeSelector": {HOST: "node-4"}},
        "ports": [{"containerPort": 80, "hostPort": 80}],
    },
    "a disruption budget is broken only where nothing else helps": {
        "cpu": "3",
        "spec": {"nodeSelector": {HOST: "node-1"}},
    },
    "what a budget does not guard goes first": {"cpu": "2500m", "spec": {"nodeSelector": {HOST: "node-5"}}},
}


@pytest.fixture
def cluster(control_plane: ControlPlane, api: Api) -> Api:
    """Six nodes with pods of several priorities, a disruption budget, and a running kube-scheduler."""
    for name, value in PRIORITIES.items():
        api.create({"kind": "PriorityClass", "metadata": {"name": name}, "value": value})
    room = {"cpu": "4", "memory": "16Gi", "pods": "10"}
    for number in range(6):
        name = f"node-{number}"
        status = {"capacity": room, "allocatable": room}
        api.create({"kind": "Node", "metadata": {"name": name, "labels": {HOST: name}}, "status": status})
    guarded = {"selector": {"matchLabels": {"app": "guarded"}}, "minAvailable": 3}
    budget = {"kind": "PodDisruptionBudget", "metadata": {"name": "guard"}, "spec": guarded}
    told = {"disruptionsAllowed": 0, "currentHealthy": 3, "desiredHealthy": 3, "expectedPods": 3}
    api.create({**budget, "status": {**told, "observedGeneration": 1}})
    for minute, (node, name, cpu, importance, app) in enumerate(RUNNING):
        ports = [{"containerPort": 80, "hostPort": 80}] if app == "port" else []
        pod = api.create(a_pod(name, cpu, importance, {"nodeName": node}, ports=ports, app=app))
        api.patch(pod, {"status": {"phase": "Running", "startTime": f"2026-01-01T00:{minute:02}:00Z"}}, "status")
    control_plane.scheduler()
    return api


def a_pod(
    name: str, cpu: str, importance: str, spec: Thing, *, ports: list[Thing] | None = None, app: str = "plain"
) -> Thing:
    """A pod that asks for *cpu* and no memory."""
    container = {"name": "app", "image": "app", "ports": ports or [], "resources": {"requests": {"cpu": cpu}}}
    meta = {"name": name, "namespace": "default", "labels": {"app": app}}
    return {
        "kind": "Pod",
        "metadata": meta,
        "spec": {"containers": [container], "priorityClassName": importance, **spec},
    }


def leaving(pods: Mapping[str, Thing]) -> list[str]:
    """The pods that were told to go."""
    return sorted(name for name, pod in pods.items() if pod["metadata"].get("deletionTimestamp"))


def at_least_leaving(count: int, pods: Mapping[str, Thing]) -> bool:
    """Whether so many pods, or more, were told to go."""
    return len(leaving(pods)) >= count


def test_kube_scheduler_evicts_whom_we_would_and_takes_their_place(cluster: Api) -> None:
    """One preemptor after another; whoever is evicted is gone before the next comes."""
    core = Ours()
    for number, (sentence, wanted) in enumerate(PREEMPTORS.items()):
        before = lists(cluster)
        pod = cluster.create(
            a_pod(f"preemptor-{number}", wanted["cpu"], "high", wanted["spec"], ports=wanted.get("ports"))
        )
        ours = core.about(pod, before)
        plan = ours["preemption"]
        theirs = cluster.wait_for(pod, lambda each: bool(each.get("status", {}).get("nominatedNodeName")), "nomination")
        node = theirs["status"]["nominatedNodeName"]
        assert condition(theirs, "PodScheduled")["message"] == ours["message"], sentence
        assert node in plan["ties"], sentence
        victims = plan["candidates"][node]["victims"]
        told = cluster.wait_until("Pod", partial(at_least_leaving, len(victims)), "eviction")
        assert leaving(told) == victims, sentence
        for victim in victims:
            assert condition(told[victim], "DisruptionTarget")["reason"] == "PreemptionByScheduler"
            cluster.delete(told[victim])
        placed = cluster.wait_for(pod, lambda each: bool(each["spec"].get("nodeName")), f"placing {key(pod)}")
        assert placed["spec"]["nodeName"] == node, sentence


def test_a_pod_that_must_not_preempt_is_refused_with_our_words(cluster: Api) -> None:
    spec = {"preemptionPolicy": "Never"}
    before = lists(cluster)
    cluster.create({"kind": "PriorityClass", "metadata": {"name": "polite"}, "value": 500, **spec})
    pod = cluster.create(a_pod("polite", "3", "polite", {}))
    theirs = cluster.wait_for(pod, lambda each: bool(condition(each, "PodScheduled")), "a refusal")
    want = (
        "0/6 nodes are available: 6 Insufficient cpu. "
        "no new claims to deallocate, preemption: not eligible due to preemptionPolicy=Never."
    )
    assert condition(theirs, "PodScheduled")["message"] == want
    assert Ours().about(pod, before)["message"] == want
    assert leaving({key(each): each for each in json.loads(cluster.list("Pod"))["items"]}) == []
