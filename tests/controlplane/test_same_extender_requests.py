"""An HTTP extender of kube-scheduler and of our scheduler gets equal requests, with equal results."""

import json
from collections.abc import Mapping
from time import monotonic
from typing import Any, Final

import pytest

from tests.controlplane.api_client import ApiClient, JsonObject, find_condition
from tests.controlplane.control_plane import ADMIN, ControlPlane
from tests.controlplane.decision_diff import is_decided
from tests.controlplane.process import free_ports
from tests.controlplane.recording_extender import RecordingExtender
from tests.controlplane.test_same_endpoints import SchedulerEndpoints, serving_flags

HOST: Final = "kubernetes.io/hostname"
VERBS: Final = ("filter", "prioritize", "preempt", "bind")
PRIORITIES: Final = {"low": 1, "high": 100}
_TIMEOUT: Final = 20.0
_CAPACITY: Final = {"cpu": "4", "memory": "8Gi", "pods": "30"}
_VARYING_FIELDS: Final = frozenset(("uid", "resourceVersion", "creationTimestamp", "lastTransitionTime", "time"))
"""Fields that differ between runs."""
_ATTEMPT_FIELDS: Final = ("conditions", "nominatedNodeName")
"""Fields of a pod's status for its last attempt. They are written while the victims are deleted, so a request for the
next attempt may have them or not."""


def make_node(name: str, wanted: str) -> JsonObject:
    """Make a node with many fields that a scheduler does not read."""
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
            "capacity": _CAPACITY,
            "allocatable": _CAPACITY,
            "addresses": [{"type": "InternalIP", "address": "10.0.0.1"}],
            "conditions": [{"type": "Ready", "status": "True", "reason": "KubeletReady", "message": "ready"}],
            "nodeInfo": {
                "machineID": "m", "systemUUID": "s", "bootID": "b", "kernelVersion": "6.1", "osImage": "x",
                "containerRuntimeVersion": "c", "kubeletVersion": "v1.36.3", "kubeProxyVersion": "",
                "operatingSystem": "linux", "architecture": "amd64",
            },
        },
    }  # fmt: skip


def make_pod(name: str, cpu: str, priority: str = "low", **fields: Any) -> JsonObject:
    """Make a pod with many fields that a scheduler does not read."""
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
    spec = {"containers": [container], "priorityClassName": priority, "terminationGracePeriodSeconds": 0, **fields}
    return {"kind": "Pod", "metadata": meta, "spec": spec}


def normalize(value: Any, names: Mapping[str, str]) -> Any:
    """Return *value* without varying fields, with *names* in place of uids, and with sorted lists."""
    if isinstance(value, dict):
        return {key: normalize(value, names) for key, value in value.items() if key not in _VARYING_FIELDS}
    if isinstance(value, list):
        return sorted((normalize(item, names) for item in value), key=lambda item: json.dumps(item, sort_keys=True))
    return names.get(value, value) if isinstance(value, str) else value


def run_scheduler(plane: ControlPlane, *, by_names: bool, ours: bool) -> tuple[list[tuple[str, Any]], dict[str, Any]]:
    """Return the requests to the extender, and the results of the pods."""
    with plane.client() as api, plane.client() as binder, RecordingExtender(binder) as extender:
        try:
            for name, value in PRIORITIES.items():
                api.create({"kind": "PriorityClass", "metadata": {"name": name}, "value": value})
            for name, wanted in (("a", "yes"), ("b", "yes"), ("c", "no")):
                api.create(make_node(name, wanted))
            start = plane.start_extender if ours else plane.start_kube_scheduler
            start({"extenders": [extender.configuration_entry(*VERBS, by_names=by_names)]})
            results = _schedule_pods(api)
            return comparable_requests(extender), results
        finally:
            plane.stop_other_programs()
            api.delete_created()


def comparable_requests(extender: RecordingExtender) -> list[tuple[str, Any]]:
    """Return the normalized requests; repeated ones for a pod, which a cluster event causes, are left out."""
    pods = [body["Pod"]["metadata"] for _, body in extender.requests if "Pod" in body]
    names = {meta["uid"]: meta["name"] for meta in pods}
    requests: list[tuple[str, Any]] = []
    subjects: list[tuple[str, str]] = []
    for verb, body in extender.requests:
        subject = verb, body["Pod"]["metadata"]["uid"] if "Pod" in body else body["PodUID"]
        if subject not in subjects[-1:]:
            for field in _ATTEMPT_FIELDS:
                body.get("Pod", {}).get("status", {}).pop(field, None)
            requests.append((verb, normalize(body, names)))
        subjects.append(subject)
    return requests


def _schedule_pods(api: ApiClient) -> dict[str, Any]:
    results: dict[str, Any] = {}
    for name, cpu in (("first", "1"), ("second", "3"), ("third", "3")):
        pod = api.create(make_pod(name, cpu))
        results[name] = api.wait_for(pod, is_decided, name)["spec"].get("nodeName")
    nowhere = api.create(make_pod("nowhere", "1", nodeSelector={"wanted": "no"}))
    results["nowhere"] = find_condition(api.wait_for(nowhere, is_decided, "rejection"), "PodScheduled")["message"]
    api.delete(nowhere)
    preemptor = api.create(make_pod("preemptor", "4", "high", nodeSelector={HOST: "a"}))
    placed = api.wait_for(preemptor, lambda pod: bool(pod["spec"].get("nodeName")), "preemption")
    results["preemptor"] = placed["spec"]["nodeName"]
    return results


@pytest.mark.parametrize("by_names", [False, True], ids=["whole nodes", "node names"])
def test_an_extender_gets_the_same_requests_with_the_same_results(
    control_plane: ControlPlane, *, by_names: bool
) -> None:
    """Verbs, bodies and the nodes of the pods are equal.

    Source: kube-scheduler/extender/v1/types.go, ExtenderArgs, ExtenderFilterResult, HostPriorityList;
    pkg/scheduler/scheduler.go, newPodInformer (1.36).
    """
    upstream, own = (run_scheduler(control_plane, by_names=by_names, ours=ours) for ours in (False, True))
    assert {verb for verb, _ in upstream[0]} == set(VERBS)
    assert own[1] == upstream[1]
    assert [verb for verb, _ in own[0]] == [verb for verb, _ in upstream[0]]
    assert own[0] == upstream[0]


def test_a_slow_extender_delays_only_the_next_pod(control_plane: ControlPlane, api: ApiClient) -> None:
    """Meanwhile the lease is renewed, probes succeed and events are handled."""
    lease = {"leaderElect": True, "leaseDuration": "6s", "renewDeadline": "4s", "retryPeriod": "1s"}
    with control_plane.client() as binder, RecordingExtender(binder) as extender:
        api.create(make_node("a", "yes"))
        entry = extender.configuration_entry("filter", by_names=True)
        configuration: dict[str, object] = {"extenders": [entry], "leaderElection": lease}
        port = free_ports(1)[0]
        endpoints = SchedulerEndpoints(
            control_plane.start_extender(configuration, *serving_flags(control_plane, port)), port
        )
        endpoints.wait_until_ready()
        extender.may_respond.clear()
        first = api.create(make_pod("first", "1", ""))
        extender.wait_for_requests(1)
        renew_time = get_renew_time(api)
        second = api.create(make_pod("second", "1", ""))
        api.create(make_node("b", "yes"))
        nodes, waiting = 'scheduler_cache_size{type="nodes"} 2.0', 'scheduler_pending_pods{queue="active"} 1.0'
        endpoints.wait_for_metrics(control_plane.token(ADMIN), nodes, waiting)
        deadline = monotonic() + _TIMEOUT
        while get_renew_time(api) == renew_time:
            assert monotonic() < deadline, "the lease is not renewed"
        assert not api.get("Pod", "first", "default")["spec"].get("nodeName")
        extender.may_respond.set()
        for pod in (first, second):
            api.wait_for(pod, lambda pod: bool(pod["spec"].get("nodeName")), "binding")


def get_renew_time(api: ApiClient) -> str:
    """Return the time of the last renewal of the lease."""
    lease = api.call("GET", "/apis/coordination.k8s.io/v1/namespaces/kube-system/leases/kube-scheduler")
    return str(json.loads(lease)["spec"]["renewTime"])
