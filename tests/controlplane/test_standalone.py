"""Our own scheduler on a real API server, with no rights but those of kube-scheduler's own role."""

import json
import signal
import sys
from collections import Counter
from typing import Any

import pytest

from extender.objects.quantity import base_units
from tests.controlplane import mixed
from tests.controlplane.agreement import decided
from tests.controlplane.api import Api, Thing, condition, key
from tests.controlplane.plane import SCHEDULER, ControlPlane
from tests.controlplane.process import Process


def our_scheduler(plane: ControlPlane, **election: Any) -> Process:
    """`extender schedule`, as the user system:kube-scheduler."""
    file = plane.folder / "extender.json"
    content = {
        "apiVersion": "kubescheduler.config.k8s.io/v1",
        "kind": "KubeSchedulerConfiguration",
        "leaderElection": {"leaderElect": False, **election},
        "clientConnection": {"kubeconfig": str(plane.kubeconfig(SCHEDULER)), "qps": 1000, "burst": 1000},
    }
    file.write_text(json.dumps(content))
    return plane.run([sys.executable, "-m", "extender", "schedule", f"--config={file}", "--secure-port=0"])


def overcommitted(nodes: list[Thing], pods: list[Thing]) -> list[str]:
    """Where the requests of the pods on a node exceed what it offers, or there are more pods than it takes."""
    used: dict[str, Counter[str]] = {}
    for pod in pods:
        counter = used.setdefault(pod["spec"].get("nodeName", ""), Counter())
        counter["pods"] += 1
        for container in pod["spec"]["containers"]:
            for name, amount in container.get("resources", {}).get("requests", {}).items():
                counter[name] += base_units(name, amount)
    found = []
    for node in nodes:
        offered = {name: base_units(name, amount) for name, amount in node["status"]["allocatable"].items()}
        for name, amount in used.get(node["metadata"]["name"], Counter()).items():
            if amount > offered.get(name, 0):
                found.append(f"{node['metadata']['name']}: {amount} {name} of {offered.get(name, 0)}")
    return found


def listed(api: Api, kind: str) -> list[Thing]:
    """All objects of a kind."""
    return [{"kind": kind, **item} for item in json.loads(api.list(kind))["items"]]


@pytest.fixture
def cluster(api: Api) -> Api:
    """Fifty unlike nodes."""
    for thing in [*mixed.surroundings(), *mixed.nodes()]:
        api.create(thing)
    return api


def test_unlike_pods_are_placed_or_told_why_not(control_plane: ControlPlane, cluster: Api) -> None:
    scheduler = our_scheduler(control_plane)
    created = {key(cluster.create(manifest)) for manifest in mixed.pods(seed=3)}

    things = cluster.wait_until("Pod", lambda pods: all(decided(pods[name]) for name in created), "all decisions")

    placed = [pod for pod in things.values() if pod["spec"].get("nodeName")]
    refused = [pod for pod in things.values() if not pod["spec"].get("nodeName")]
    assert len(placed) >= 100
    assert refused
    assert overcommitted(listed(cluster, "Node"), placed) == []
    reasons = {condition(pod, "PodScheduled")["reason"] for pod in refused}
    assert reasons <= {"Unschedulable", "SchedulingGated"}
    control_plane.end(scheduler)


def test_a_killed_scheduler_goes_on_where_it_was(control_plane: ControlPlane, cluster: Api) -> None:
    """It knows nothing but what the API server tells (fault 22)."""
    first = our_scheduler(control_plane)
    small = {"containers": [{"name": "app", "image": "app", "resources": {"requests": {"cpu": "50m"}}}]}
    names = set()
    for number in range(150):
        pod = {"kind": "Pod", "metadata": {"name": f"small-{number}", "namespace": "shop"}, "spec": small}
        names.add(key(cluster.create(pod)))

    def bound(pods: Any, at_least: int) -> bool:
        return sum(bool(pods[name]["spec"].get("nodeName")) for name in names if name in pods) >= at_least

    cluster.wait_until("Pod", lambda pods: bound(pods, 30), "thirty bindings")
    first.signal(signal.SIGKILL)
    second = our_scheduler(control_plane)
    things = cluster.wait_until("Pod", lambda pods: bound(pods, len(names)), "all bindings")

    assert overcommitted(listed(cluster, "Node"), list(things.values())) == []
    control_plane.end(second)
