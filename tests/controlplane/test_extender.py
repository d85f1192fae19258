"""A real kube-scheduler with our extender, over TLS: what it places is as we would have it; forged calls do nothing."""

import json
from typing import Any

import pytest

from tests.controlplane.api import Api, Thing, condition, key
from tests.controlplane.beside import Beside, grant, is_placed, nodes_of, violations
from tests.controlplane.candidates import create, until_bound
from tests.controlplane.mixed import HOST, ZONE
from tests.controlplane.plane import ControlPlane
from tests.controlplane.recording import Recording
from tests.history import wrong

MODEL = "example.com/gpu-model"
GPU_PROFILE = {"plugins": {"multiPoint": {"enabled": [{"name": "GpuModel"}]}}}


def a_node(number: int, cpu: str = "8", **labels: str) -> Thing:
    name = f"node-{number}"
    room = {"cpu": cpu, "memory": "16Gi", "pods": "20"}
    named = {HOST: name, ZONE: f"zone-{number % 3}", "disk": ("ssd", "hdd")[number % 2], **labels}
    status = {"capacity": room, "allocatable": room}
    return {"kind": "Node", "metadata": {"name": name, "labels": named}, "status": status}


def a_pod(name: str, cpu: str = "250m", *, app: str = "plain", model: str = "", **spec: Any) -> Thing:
    container = {"name": "app", "image": "app", "resources": {"requests": {"cpu": cpu}}}
    meta: Thing = {"name": name, "namespace": "default", "labels": {"app": app}}
    if model:
        meta["annotations"] = {MODEL: model}
    return {"kind": "Pod", "metadata": meta, "spec": {"containers": [container], **spec}}


def wishful(number: int) -> Thing:
    """One of many pods; each fifth of them has a wish of its own, and all can be placed."""
    alike = {"labelSelector": {"matchLabels": {"app": "rival"}}, "topologyKey": HOST}
    even = {"maxSkew": 1, "topologyKey": ZONE, "whenUnsatisfiable": "DoNotSchedule"}
    name = f"pod-{number}"
    match number % 5:
        case 0:
            required = "requiredDuringSchedulingIgnoredDuringExecution"
            return a_pod(name, app="rival", affinity={"podAntiAffinity": {required: [alike]}})
        case 1:
            spread = [{**even, "labelSelector": {"matchLabels": {"app": "even"}}}]
            return a_pod(name, app="even", topologySpreadConstraints=spread)
        case 2:
            return a_pod(name, cpu="1", nodeSelector={"disk": "ssd"})
        case 3:
            pod = a_pod(name)
            pod["spec"]["containers"][0]["ports"] = [{"containerPort": 80, "hostPort": 8000 + number % 7}]
            return pod
    return a_pod(name, cpu="500m")


@pytest.fixture
def cluster(api: Api) -> Api:
    grant(api)
    return api


@pytest.mark.parametrize(
    ("cached", "binds", "count"),
    [(True, True, 500), (False, False, 500), (True, False, 150), (False, True, 150)],
    ids=["by names, we bind", "by whole nodes, it binds", "by names, it binds", "by whole nodes, we bind"],
)
def test_many_pods_are_placed_where_we_let_them_go(
    control_plane: ControlPlane, cluster: Api, cached: bool, binds: bool, count: int
) -> None:
    recording = Recording(control_plane)
    create(cluster, (a_node(number) for number in range(100)))
    ours = Beside(control_plane)
    verb = {"bindVerb": "bind"} if binds else {}
    control_plane.scheduler({"extenders": [ours.entry(nodeCacheCapable=cached, **verb)]})
    create(cluster, map(wishful, range(count)))
    until_bound(cluster, count, 120.0)

    history = recording.history()
    assert wrong(history) == []
    assert violations(cluster) == []
    assert {binding.actor.startswith("system:serviceaccount") for binding in history.bindings} == {binds}


def test_a_plugin_of_a_user_decides_where_kube_scheduler_would_not_and_says_why(
    control_plane: ControlPlane, cluster: Api
) -> None:
    models = ("a100", "h100", "t4")
    create(cluster, (a_node(number, **{MODEL: models[number % 3]}) for number in range(9)))
    ours = Beside(control_plane, {"profiles": [GPU_PROFILE]}, plugins=True)
    control_plane.scheduler({"extenders": [ours.entry()]})
    wants = [cluster.create(a_pod(f"wants-{number}", model="h100")) for number in range(12)]
    where = {cluster.wait_for(pod, is_placed, "a node")["spec"]["nodeName"] for pod in wants}
    assert where <= {"node-1", "node-4", "node-7"}

    picky = cluster.create(a_pod("picky", model="b200", nodeSelector={"disk": "ssd"}))
    told = cluster.wait_for(picky, lambda pod: bool(condition(pod, "PodScheduled")), "a refusal")
    said = condition(told, "PodScheduled")["message"]
    assert said.startswith(
        "0/9 nodes are available: 4 node(s) didn't match Pod's node affinity/selector, 5 node(s) lack the GPU model. "
    )


def test_victims_are_chosen_by_our_answer(control_plane: ControlPlane, cluster: Api) -> None:
    """kube-scheduler alone would take the least important victim; our plugin knows that this makes no room."""
    for name, value in {"trifling": 1, "modest": 5, "urgent": 1000}.items():
        cluster.create({"kind": "PriorityClass", "metadata": {"name": name}, "value": value})
    create(cluster, (a_node(0, cpu="2", **{MODEL: "t4"}), a_node(1, cpu="2", **{MODEL: "h100"})))
    running = [
        cluster.create(a_pod("on-t4", cpu="2", nodeName="node-0", priorityClassName="trifling")),
        cluster.create(a_pod("on-h100", cpu="2", nodeName="node-1", priorityClassName="modest")),
    ]
    ours = Beside(control_plane, {"profiles": [GPU_PROFILE]}, plugins=True)
    control_plane.scheduler({"extenders": [ours.entry(bindVerb="bind")]})
    urgent = cluster.create(a_pod("urgent", cpu="2", model="h100", priorityClassName="urgent"))

    def is_leaving(pod: Thing) -> bool:
        return bool(pod["metadata"].get("deletionTimestamp"))

    victim = cluster.wait_for(running[1], is_leaving, "the eviction")
    assert condition(victim, "DisruptionTarget")["reason"] == "PreemptionByScheduler"
    assert not is_leaving(cluster.get("Pod", "on-t4", "default"))
    cluster.delete(victim)
    assert cluster.wait_for(urgent, is_placed, "a node")["spec"]["nodeName"] == "node-1"


def test_forged_calls_change_nothing(control_plane: ControlPlane, cluster: Api) -> None:
    create(cluster, (a_node(number) for number in range(2)))
    ours = Beside(control_plane)
    waits = cluster.create(a_pod("waits"))
    bound = cluster.create(a_pod("bound", nodeName="node-0"))
    other = cluster.create(a_pod("other", schedulerName="somebody-else"))
    big = cluster.create(a_pod("big", cpu="9"))
    before = cluster.list("Pod")

    def asked(pod: Thing, node: str, **more: str) -> str:
        meta = pod["metadata"]
        names = {"PodName": meta["name"], "PodNamespace": meta["namespace"], "PodUID": meta["uid"], "Node": node}
        return ours.bind(**{**names, **more})

    uid = waits["metadata"]["uid"]
    assert [
        asked(waits, "node-0", PodName="ghost"),
        asked(waits, "node-0", PodUID=bound["metadata"]["uid"]),
        asked(waits, "node-9"),
        asked(bound, "node-1"),
        asked(other, "node-0"),
        asked(big, "node-0"),
    ] == [
        "pod default/ghost not found",
        f"pod default/waits has the uid {uid}, not {bound['metadata']['uid']}: it was deleted and made again",
        "node node-9 is not known to the extender (yet)",
        "pod default/bound is on node node-0 already",
        'pod default/other is for the scheduler "somebody-else", which is not served here',
        "node node-0 does not take pod default/big: Insufficient cpu",
    ]
    statuses = [ours.ask("bind", {}, who).status_code for who in ("nobody", "another name")]
    assert statuses == [401, 403]
    assert json.loads(cluster.list("Pod"))["items"] == json.loads(before)["items"]

    assert asked(waits, "node-1") == ""
    assert asked(waits, "node-1") == ""  # asking again is safe
    assert asked(waits, "node-0") == "pod default/waits is on node node-1 already"
    assert nodes_of(cluster)[key(waits)] == "node-1"
