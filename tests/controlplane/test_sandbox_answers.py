"""The sandbox answers a conversation as the real API server does: codes, reasons, messages, and the objects."""

import asyncio
import json
import re
import ssl
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import httpx2
import pytest

from extender.sandbox.server import Sandbox
from tests.controlplane.api import Api
from tests.controlplane.plane import ADMIN, ControlPlane

Object = dict[str, Any]

SPACE = "/api/v1/namespaces/talk"
PODS = f"{SPACE}/pods"
LEASES = "/apis/coordination.k8s.io/v1/namespaces/talk/leases"
BUDGETS = "/apis/policy/v1/namespaces/talk/poddisruptionbudgets"
EVENTS = "/apis/events.k8s.io/v1/namespaces/talk/events"
CLASSES = "/apis/scheduling.k8s.io/v1/priorityclasses"
TAINT = {"key": "a", "effect": "NoSchedule"}
HEALTH = ("observedGeneration", "currentHealthy", "desiredHealthy")
STORAGE = "/apis/storage.k8s.io/v1"
CLAIMS = "/apis/resource.k8s.io/v1/namespaces/talk/resourceclaims"
MERGE, STRATEGIC = "application/merge-patch+json", "application/strategic-merge-patch+json"

_IDENTITY = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")
_VARYING = {"uid", "resourceVersion", "creationTimestamp", "managedFields", "deletionTimestamp", "lastTransitionTime"}
_VARYING |= {"lastPhaseTransitionTime"}
# Controllers that the sandbox does not have would take them away again.
_PROTECTED = ("kubernetes.io/pv-protection", "kubernetes.io/pvc-protection")
_AGE = re.compile(r"^\d+s$|^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ$")
_NOT_SCHEDULING = {"serviceAccount", "serviceAccountName", "volumes", "volumeMounts", "securityContext"}


def a_pod(name: str, **spec: Any) -> Object:
    container = {"name": "c", "image": "app:1", "resources": {"limits": {"cpu": "1"}}, "ports": [{"containerPort": 80}]}
    return {"metadata": {"name": name}, "spec": {"containers": [container], **spec}}


def bind_to(node: str, **meta: str) -> Object:
    return {"metadata": meta, "target": {"kind": "Node", "name": node}}


TALK: list[tuple[str, str, Any, str]] = [
    ("POST", "/api/v1/namespaces", {"metadata": {"name": "talk"}}, ""),
    ("POST", "/api/v1/nodes", {"metadata": {"name": "n1"}, "status": {"capacity": {"cpu": "4", "memory": "8Gi"}}}, ""),
    ("POST", CLASSES, {"metadata": {"name": "high"}, "value": 10, "preemptionPolicy": "Never"}, ""),
    # creating
    ("POST", PODS, a_pod("a"), ""),
    ("POST", PODS, a_pod("a"), ""),
    ("POST", PODS, a_pod("b", priorityClassName="high", hostNetwork=True), ""),
    ("POST", PODS, a_pod("c", priorityClassName="unknown"), ""),
    ("POST", PODS, a_pod("c", priority=5), ""),
    ("POST", PODS, a_pod("Bad_Name"), ""),
    ("POST", PODS, {"metadata": {}, "spec": a_pod("x")["spec"]}, ""),
    ("POST", PODS, {**a_pod("c"), "metadata": {"name": "c", "namespace": "other"}}, ""),
    ("POST", PODS, {**a_pod("c"), "metadata": {"name": "c", "resourceVersion": "1"}}, ""),
    ("POST", "/api/v1/namespaces/nowhere/pods", a_pod("c"), ""),
    ("POST", PODS, a_pod("gated", schedulingGates=[{"name": "example.com/wait"}]), ""),
    # changing
    ("PATCH", f"{PODS}/a", {"metadata": {"labels": {"app": "a"}}}, MERGE),
    ("PATCH", f"{PODS}/a", {"spec": {"nodeSelector": {"a": "b"}}}, MERGE),
    ("PATCH", f"{PODS}/a", {"metadata": {"uid": "0a0a0a0a-0000-4000-8000-000000000000"}}, STRATEGIC),
    ("PATCH", f"{PODS}/a", {"metadata": {"resourceVersion": "1"}}, STRATEGIC),
    ("PATCH", f"{PODS}/a/status", {"status": {"conditions": [{"type": "Y", "status": "True"}]}}, STRATEGIC),
    ("PATCH", f"{PODS}/a", {"metadata": {"finalizers": ["b.example.com/b", "a.example.com/a"]}}, STRATEGIC),
    ("PATCH", f"{PODS}/a", {"metadata": {"finalizers": ["c.example.com/c"]}}, STRATEGIC),
    ("PATCH", f"{PODS}/a", {"metadata": {"finalizers": None}}, STRATEGIC),
    ("PATCH", f"{PODS}/gated", {"spec": {"schedulingGates": [{"name": "example.com/more"}]}}, STRATEGIC),
    (
        "PATCH",
        f"{PODS}/a/status",
        {"status": {"nominatedNodeName": "n1", "conditions": [{"type": "PodScheduled", "status": "False"}]}},
        STRATEGIC,
    ),
    (
        "PATCH",
        f"{PODS}/a/status",
        {
            "status": {
                "$setElementOrder/conditions": [{"type": "X"}, {"type": "PodScheduled"}],
                "conditions": [{"type": "X", "status": "True"}, {"type": "PodScheduled", "reason": "Unschedulable"}],
            }
        },
        STRATEGIC,
    ),
    ("PATCH", f"{PODS}/none", {}, MERGE),
    ("PATCH", f"{PODS}/a", {}, "application/x-unknown"),
    # binding
    ("POST", f"{PODS}/a/binding", bind_to("n1"), ""),
    ("POST", f"{PODS}/gated/binding", bind_to("n1", name="gated"), ""),
    ("POST", f"{PODS}/a/binding", bind_to("n1", name="a", uid="0a0a0a0a-0000-4000-8000-000000000000"), ""),
    ("POST", f"{PODS}/a/binding", bind_to("n1", name="b"), ""),
    ("POST", f"{PODS}/a/binding", bind_to("n1", name="a"), ""),
    ("POST", f"{PODS}/a/binding", bind_to("n2", name="a"), ""),
    ("POST", f"{PODS}/none/binding", bind_to("n2", name="none"), ""),
    ("GET", f"{PODS}/a", None, ""),
    # lists
    ("GET", f"{PODS}?fieldSelector=spec.nodeName%3Dn1", None, ""),
    ("GET", f"{PODS}?fieldSelector=status.phase!%3DPending", None, ""),
    ("GET", f"{PODS}?fieldSelector=spec.colour%3Dred", None, ""),
    ("GET", f"{PODS}?labelSelector=app+in+(a,b)", None, ""),
    ("GET", f"{PODS}?resourceVersionMatch=Exact", None, ""),
    ("GET", f"{PODS}?resourceVersion=0&resourceVersionMatch=Exact", None, ""),
    # budgets and eviction
    ("POST", BUDGETS, {"metadata": {"name": "p"}, "spec": {"selector": {"matchLabels": {"app": "a"}}}}, ""),
    ("PATCH", f"{PODS}/a/status", {"status": {"phase": "Running"}}, STRATEGIC),
    ("POST", f"{PODS}/a/eviction", {"metadata": {"name": "a"}}, ""),
    (
        "PATCH",
        f"{BUDGETS}/p/status",
        {"status": dict.fromkeys(HEALTH, 1)},
        MERGE,
    ),
    ("POST", f"{PODS}/a/eviction", {"metadata": {"name": "a"}}, ""),
    ("PATCH", f"{BUDGETS}/p/status", {"status": {"disruptionsAllowed": 1}}, MERGE),
    ("POST", f"{PODS}/a/eviction", {"metadata": {"name": "a"}}, ""),
    ("GET", f"{PODS}/a", None, ""),
    # deleting
    ("POST", f"{PODS}/a/binding", bind_to("n2", name="a"), ""),
    ("DELETE", f"{PODS}/b", {"preconditions": {"uid": "0a0a0a0a-0000-4000-8000-000000000000"}}, ""),
    ("DELETE", f"{PODS}/b", None, ""),
    ("DELETE", f"{PODS}/b", None, ""),
    ("DELETE", f"{PODS}/a?gracePeriodSeconds=5", None, ""),
    ("DELETE", f"{PODS}/a?gracePeriodSeconds=10", None, ""),
    ("DELETE", f"{PODS}/a", {"gracePeriodSeconds": 0}, ""),
    ("DELETE", f"{BUDGETS}/p", None, ""),
    # leases and events
    ("PUT", f"{LEASES}/l", {"metadata": {"name": "l"}, "spec": {"holderIdentity": "me"}}, ""),
    ("PUT", f"{LEASES}/l", {"metadata": {"name": "l"}, "spec": {"holderIdentity": "you"}}, ""),
    ("PUT", f"{LEASES}/l", {"metadata": {"name": "l", "resourceVersion": "1"}, "spec": {}}, ""),
    ("PUT", f"{LEASES}/l", {"metadata": {"name": "other"}, "spec": {}}, ""),
    ("DELETE", f"{LEASES}/l", None, ""),
    (
        "POST",
        EVENTS,
        {
            "metadata": {"name": "e", "namespace": "talk"},
            "eventTime": "2026-01-02T03:04:05.000006Z",
            "reportingController": "default-scheduler",
            "reportingInstance": "default-scheduler-1",
            "action": "Binding",
            "reason": "Scheduled",
            "type": "Normal",
            "note": "hello",
            "regarding": {"kind": "Pod", "namespace": "talk", "name": "a"},
        },
        "",
    ),
    ("GET", f"{SPACE}/events/e", None, ""),
    # volumes
    ("POST", f"{STORAGE}/storageclasses", {"metadata": {"name": "fast"}, "provisioner": "example.com/p"}, ""),
    ("POST", f"{STORAGE}/csidrivers", {"metadata": {"name": "p.example.com"}, "spec": {}}, ""),
    ("POST", f"{STORAGE}/csinodes", {"metadata": {"name": "n1"}, "spec": {"drivers": []}}, ""),
    (
        "POST",
        "/api/v1/persistentvolumes",
        {
            "metadata": {"name": "v"},
            "spec": {
                "capacity": {"storage": "1Gi"},
                "accessModes": ["ReadWriteOnce"],
                "storageClassName": "fast",
                "csi": {"driver": "p.example.com", "volumeHandle": "h"},
            },
        },
        "",
    ),
    ("PATCH", "/api/v1/persistentvolumes/v", {"spec": {"claimRef": {"name": "d", "namespace": "talk"}}}, MERGE),
    (
        "POST",
        f"{SPACE}/persistentvolumeclaims",
        {
            "metadata": {"name": "d"},
            "spec": {
                "accessModes": ["ReadWriteOnce"],
                "storageClassName": "fast",
                "resources": {"requests": {"storage": "1Gi"}},
            },
        },
        "",
    ),
    (
        "PATCH",
        f"{SPACE}/persistentvolumeclaims/d",
        {"metadata": {"annotations": {"volume.kubernetes.io/selected-node": "n1"}}},
        STRATEGIC,
    ),
    # devices
    ("POST", "/apis/resource.k8s.io/v1/deviceclasses", {"metadata": {"name": "gpu"}, "spec": {}}, ""),
    (
        "POST",
        CLAIMS,
        {
            "metadata": {"name": "one"},
            "spec": {"devices": {"requests": [{"name": "r", "exactly": {"deviceClassName": "gpu"}}]}},
        },
        "",
    ),
    (
        "PATCH",
        f"{CLAIMS}/one/status",
        {
            "status": {
                "allocation": {
                    "devices": {"results": [{"request": "r", "driver": "d.example.com", "pool": "p", "device": "0"}]}
                },
                "reservedFor": [{"resource": "pods", "name": "a", "uid": "u"}],
            }
        },
        STRATEGIC,
    ),
    (
        "PATCH",
        f"{CLAIMS}/one/status",
        {"status": {"reservedFor": [{"resource": "pods", "name": "b", "uid": "w"}]}},
        STRATEGIC,
    ),
    (
        "PATCH",
        f"{CLAIMS}/one/status",
        {"status": {"reservedFor": [{"$patch": "delete", "uid": "u"}]}},
        STRATEGIC,
    ),
    # workloads and nodes
    (
        "POST",
        "/apis/apps/v1/namespaces/talk/replicasets",
        {
            "metadata": {"name": "r"},
            "spec": {
                "replicas": 0,
                "selector": {"matchLabels": {"app": "r"}},
                "template": {"metadata": {"labels": {"app": "r"}}, "spec": a_pod("x")["spec"]},
            },
        },
        "",
    ),
    ("PATCH", "/api/v1/nodes/n1", {"spec": {"unschedulable": True, "taints": [TAINT]}}, MERGE),
    ("PATCH", "/api/v1/nodes/n1/status", {"status": {"conditions": [{"type": "Ready", "status": "True"}]}}, STRATEGIC),
    ("GET", "/api/v1/nodes?fieldSelector=spec.unschedulable%3Dtrue", None, ""),
    # what is not there
    ("GET", "/api/v1/unicorns", None, ""),
    ("GET", f"{PODS}/a", None, ""),
    ("PUT", PODS, {}, ""),
]


_LEFT = (
    PODS,
    f"{SPACE}/events",
    f"{SPACE}/persistentvolumeclaims",
    "/apis/apps/v1/namespaces/talk/replicasets",
    BUDGETS,
    LEASES,
    CLAIMS,
    "/api/v1/nodes",
    "/api/v1/persistentvolumes",
    "/apis/resource.k8s.io/v1/deviceclasses/gpu",
    f"{STORAGE}/storageclasses/fast",
    f"{STORAGE}/csidrivers/p.example.com",
    f"{STORAGE}/csinodes/n1",
    f"{CLASSES}/high",
)


TABLES = (
    PODS,
    f"{PODS}/gated",
    f"{SPACE}/events",
    f"{SPACE}/persistentvolumeclaims",
    "/apis/apps/v1/namespaces/talk/replicasets",
    LEASES,
    CLAIMS,
    BUDGETS,
    "/api/v1/nodes",
    "/api/v1/namespaces",
    "/api/v1/persistentvolumes",
    "/api/v1/services?fieldSelector=metadata.name%3Dnone",
    "/apis/apps/v1/statefulsets",
    "/apis/resource.k8s.io/v1/deviceclasses",
    "/apis/resource.k8s.io/v1/resourceslices",
    f"{STORAGE}/storageclasses",
    f"{STORAGE}/csidrivers",
    f"{STORAGE}/csinodes",
    f"{STORAGE}/csistoragecapacities",
    f"{STORAGE}/volumeattachments",
    CLASSES,
)
_THEIRS = ("kube-node-lease", "kube-public", "kube-system", "default")  # come a little later there


@contextmanager
def sandbox() -> Iterator[str]:
    """A sandbox in a loop of its own: its address."""
    loop = asyncio.new_event_loop()
    thread = threading.Thread(target=loop.run_forever, daemon=True)
    thread.start()

    def do(what: Callable[[], Any]) -> None:
        asyncio.run_coroutine_threadsafe(what(), loop).result(30)

    server = Sandbox()
    do(server.start)
    try:
        yield server.url
    finally:
        do(server.stop)
        loop.call_soon_threadsafe(loop.stop)
        thread.join()
        loop.close()


def said(client: httpx2.Client, method: str, path: str, body: Any, media: str) -> Object:
    """An answer without what differs from run to run and what has nothing to do with scheduling."""
    content = None if body is None else json.dumps(body)
    reply = client.request(method, path, content=content, headers={"Content-Type": media or "application/json"})
    text = _IDENTITY.sub("<uid>", reply.text)
    retry = reply.headers.get("Retry-After")
    return {"code": reply.status_code, "retry": retry, "body": _plain(json.loads(text) if text[:1] == "{" else text)}


def shown(client: httpx2.Client, path: str) -> Object:
    """A table's columns and rows, without ages."""
    body = client.get(path, headers={"Accept": "application/json;as=Table;v=v1;g=meta.k8s.io"}).json()
    heads = [(head["name"], head["type"], head["format"], head["priority"]) for head in body["columnDefinitions"]]
    rows = [
        [_AGE.sub("<age>", cell) if isinstance(cell, str) else cell for cell in row["cells"]]
        for row in body["rows"] or ()
    ]
    return {"heads": heads, "rows": [row for row in rows if row[0] not in _THEIRS]}


def _plain(value: Any) -> Any:
    if isinstance(value, dict):
        kept = {key: _plain(part) for key, part in value.items() if key not in _VARYING | _NOT_SCHEDULING}
        return {key: part for key, part in kept.items() if part not in (None, {}, [], "")}
    if isinstance(value, list):
        parts = [_plain(part) for part in value if part not in _PROTECTED]
        return [part for at, part in enumerate(parts) if part not in parts[:at]]  # a cause may be told twice
    return value.split("\n")[0] if isinstance(value, str) else value  # the rest shows the insides of a Go structure


@pytest.fixture
def real(control_plane: ControlPlane, api: Api) -> Iterator[httpx2.Client]:
    trust = ssl.create_default_context(cafile=control_plane.authority)
    headers = {"Authorization": f"Bearer {control_plane.token(ADMIN)}"}
    account = {"metadata": {"name": "default"}}
    with httpx2.Client(base_url=control_plane.url, headers=headers, verify=trust, trust_env=False) as client:
        client.post("/api/v1/namespaces", json={"metadata": {"name": "talk"}})
        client.post(f"{SPACE}/serviceaccounts", json=account)
        yield client
        for path in _LEFT:
            client.request("DELETE", path, params={"gracePeriodSeconds": "0"})


def test_the_sandbox_answers_as_the_api_server_does(real: httpx2.Client) -> None:
    different = []
    with sandbox() as url, httpx2.Client(base_url=url, trust_env=False) as played:
        for method, path, body, media in TALK[1:]:
            if method == "POST" and path == "/api/v1/nodes":
                said(played, *TALK[0])
            theirs, ours = said(real, method, path, body, media), said(played, method, path, body, media)
            if theirs != ours:
                different.append((f"{method} {path} {json.dumps(body)}", theirs, ours))
        for path in TABLES:
            theirs, ours = shown(real, path), shown(played, path)
            if theirs != ours:
                different.append((f"table of {path}", theirs, ours))
    assert different == []
