"""An HTTP extender beside kube-scheduler and beside ours: it is asked the same, and the same follows."""

import json
from collections.abc import Mapping
from time import monotonic
from typing import Any, Final

import pytest

from tests.controlplane.agreement import decided
from tests.controlplane.api import Api, Thing, condition
from tests.controlplane.colleague import Colleague
from tests.controlplane.plane import ADMIN, ControlPlane
from tests.controlplane.process import free_ports
from tests.controlplane.test_same_pages import Pages, flags

HOST: Final = "kubernetes.io/hostname"
VERBS: Final = ("filter", "prioritize", "preempt", "bind")
PRIORITIES: Final = {"low": 1, "high": 100}
_PATIENCE: Final = 20.0
_ROOM: Final = {"cpu": "4", "memory": "8Gi", "pods": "30"}
_DIFFERS: Final = frozenset(("uid", "resourceVersion", "creationTimestamp", "lastTransitionTime", "time"))
"""Fields that differ from run to run."""


def a_node(name: str, wanted: str) -> Thing:
    """A node with much that a scheduler does not read."""
    return {
        "kind": "Node",
        "metadata": {
            "name": name,
            "labels": {HOST: name, "wanted": wanted},
            "annotations": {"example.com/rack": "7"},
            "finalizers": ["example.com/keep"],
        },
        "spec": {"podCIDR": "10.1.0.0/24", "providerID": f"cloud://{name}"},
        "status": {
            "capacity": _ROOM,
            "allocatable": _ROOM,
            "addresses": [{"type": "InternalIP", "address": "10.0.0.1"}],
            "conditions": [{"type": "Ready", "status": "True", "reason": "KubeletReady", "message": "ready"}],
            "nodeInfo": {
                "machineID": "m", "systemUUID": "s", "bootID": "b", "kernelVersion": "6.1", "osImage": "x",
                "containerRuntimeVersion": "c", "kubeletVersion": "v1.36.3", "kubeProxyVersion": "",
                "operatingSystem": "linux", "architecture": "amd64",
            },
        },
    }  # fmt: skip


def a_pod(name: str, cpu: str, priority: str = "low", **more: Any) -> Thing:
    """A pod with much that a scheduler does not read."""
    probe = {"httpGet": {"path": "/", "port": 80}, "periodSeconds": 3}
    container = {
        "name": "app",
        "image": "app",
        "command": ["serve"],
        "env": [{"name": "A", "value": "b"}],
        "readinessProbe": probe,
        "resources": {"requests": {"cpu": cpu}},
    }
    meta = {"name": name, "namespace": "default", "annotations": {"example.com/owner": "ann"}}
    spec = {"containers": [container], "priorityClassName": priority, "terminationGracePeriodSeconds": 0, **more}
    return {"kind": "Pod", "metadata": meta, "spec": spec}


def bare(thing: Any, names: Mapping[str, str]) -> Any:
    """*thing* without what differs from run to run, with *names* for uids; lists in an order of their own."""
    if isinstance(thing, dict):
        return {key: bare(value, names) for key, value in thing.items() if key not in _DIFFERS}
    if isinstance(thing, list):
        return sorted((bare(each, names) for each in thing), key=lambda each: json.dumps(each, sort_keys=True))
    return names.get(thing, thing) if isinstance(thing, str) else thing


def story(plane: ControlPlane, *, cached: bool, ours: bool) -> tuple[list[tuple[str, Any]], dict[str, Any]]:
    """What the extender was asked, and what became of the pods."""
    with plane.api() as api, plane.api() as hands, Colleague(hands) as colleague:
        try:
            for name, value in PRIORITIES.items():
                api.create({"kind": "PriorityClass", "metadata": {"name": name}, "value": value})
            for name, wanted in (("a", "yes"), ("b", "yes"), ("c", "no")):
                api.create(a_node(name, wanted))
            start = plane.ours if ours else plane.scheduler
            start({"extenders": [colleague.configured(*VERBS, cached=cached)]})
            outcome = _shown(api)
            return asked(colleague), outcome
        finally:
            plane.end_guests()
            api.clean()


def asked(colleague: Colleague) -> list[tuple[str, Any]]:
    """What was asked; once where a pod was tried again at once, as it is when something happens meanwhile."""
    pods = [body["Pod"]["metadata"] for _, body in colleague.asked if "Pod" in body]
    names = {meta["uid"]: meta["name"] for meta in pods}
    found: list[tuple[str, Any]] = []
    subjects: list[tuple[str, str]] = []
    for verb, body in colleague.asked:
        subject = verb, body["Pod"]["metadata"]["uid"] if "Pod" in body else body["PodUID"]
        if subject not in subjects[-1:]:
            found.append((verb, bare(body, names)))
        subjects.append(subject)
    return found


def _shown(api: Api) -> dict[str, Any]:
    outcome: dict[str, Any] = {}
    for name, cpu in (("first", "1"), ("second", "3"), ("third", "3")):
        pod = api.create(a_pod(name, cpu))
        outcome[name] = api.wait_for(pod, decided, name)["spec"].get("nodeName")
    nowhere = api.create(a_pod("nowhere", "1", nodeSelector={"wanted": "no"}))
    outcome["nowhere"] = condition(api.wait_for(nowhere, decided, "refusal"), "PodScheduled")["message"]
    api.delete(nowhere)
    preemptor = api.create(a_pod("preemptor", "4", "high", nodeSelector={HOST: "a"}))
    placed = api.wait_for(preemptor, lambda each: bool(each["spec"].get("nodeName")), "preemption")
    outcome["preemptor"] = placed["spec"]["nodeName"]
    return outcome


@pytest.mark.parametrize("cached", [False, True], ids=["sent whole nodes", "sent names of nodes"])
def test_an_extender_is_asked_the_same_and_the_same_follows(control_plane: ControlPlane, *, cached: bool) -> None:
    """Source: F017 to F025."""
    theirs, ours = (story(control_plane, cached=cached, ours=each) for each in (False, True))
    assert {verb for verb, _ in theirs[0]} == set(VERBS)
    assert ours[1] == theirs[1]
    assert [verb for verb, _ in ours[0]] == [verb for verb, _ in theirs[0]]
    assert ours[0] == theirs[0]


def test_while_an_extender_thinks_everything_else_goes_on(control_plane: ControlPlane, api: Api) -> None:
    """The lease is renewed, probes are answered, changes are taken in; only the next pod waits."""
    lease = {"leaderElect": True, "leaseDuration": "6s", "renewDeadline": "4s", "retryPeriod": "1s"}
    with control_plane.api() as hands, Colleague(hands) as colleague:
        api.create(a_node("a", "yes"))
        configuration = {"extenders": [colleague.configured("filter", cached=True)], "leaderElection": lease}
        port = free_ports(1)[0]
        pages = Pages(control_plane.ours(configuration, *flags(control_plane, port)), port)
        pages.wait()
        colleague.open.clear()
        first = api.create(a_pod("first", "1", ""))
        colleague.wait_for(1)
        renewed = renewed_at(api)
        second = api.create(a_pod("second", "1", ""))
        api.create(a_node("b", "yes"))
        nodes, waiting = 'scheduler_cache_size{type="nodes"} 2.0', 'scheduler_pending_pods{queue="active"} 1.0'
        pages.until_metrics_say(control_plane.token(ADMIN), nodes, waiting)
        end = monotonic() + _PATIENCE
        while renewed_at(api) == renewed:
            assert monotonic() < end, "the lease is not renewed"
        assert not api.get("Pod", "first", "default")["spec"].get("nodeName")
        colleague.open.set()
        for pod in (first, second):
            api.wait_for(pod, lambda each: bool(each["spec"].get("nodeName")), "binding")


def renewed_at(api: Api) -> str:
    """When the lease was renewed last."""
    lease = api.call("GET", "/apis/coordination.k8s.io/v1/namespaces/kube-system/leases/kube-scheduler")
    return str(json.loads(lease)["spec"]["renewTime"])
