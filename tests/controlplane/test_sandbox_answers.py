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
from tests.controlplane.talk import BUDGETS, CLAIMS, CLASSES, LEASES, PODS, SPACE, STORAGE, TALK

Object = dict[str, Any]

_IDENTITY = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")
_VARYING = {"uid", "resourceVersion", "creationTimestamp", "managedFields", "deletionTimestamp", "lastTransitionTime"}
_VARYING |= {"lastPhaseTransitionTime"}
# Controllers that the sandbox does not have would take them away again.
_PROTECTED = ("kubernetes.io/pv-protection", "kubernetes.io/pvc-protection")
_AGE = re.compile(r"^\d+s$|^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ$")
_NOT_SCHEDULING = {"serviceAccount", "serviceAccountName", "volumes", "volumeMounts", "securityContext"}


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
_THEIRS = {
    "kube-node-lease",
    "kube-public",
    "kube-system",
    "default",
    "system-node-critical",
    "system-cluster-critical",
}  # come a little later there


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


def shown(client: httpx2.Client, path: str, but: set[str] = _THEIRS) -> Object:
    """A table's columns and rows, without ages and without the rows of the names *but*."""
    body = client.get(path, headers={"Accept": "application/json;as=Table;v=v1;g=meta.k8s.io"}).json()
    heads = [(head["name"], head["type"], head["format"], head["priority"]) for head in body["columnDefinitions"]]
    rows = [
        [_AGE.sub("<age>", cell) if isinstance(cell, str) else cell for cell in row["cells"]]
        for row in body["rows"] or ()
    ]
    return {"heads": heads, "rows": [row for row in rows if row[0] not in but]}


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
        # Others that use the same control plane may have left theirs.
        listed = (item for path in TABLES for item in real.get(path).json().get("items") or ())
        others = _THEIRS | {item["metadata"]["name"] for item in listed} - {"talk"}
        for method, path, body, media in TALK[1:]:
            if method == "POST" and path == "/api/v1/nodes":
                said(played, *TALK[0])
            theirs, ours = said(real, method, path, body, media), said(played, method, path, body, media)
            if theirs != ours:
                different.append((f"{method} {path} {json.dumps(body)}", theirs, ours))
        for path in TABLES:
            theirs, ours = shown(real, path, others), shown(played, path)
            if theirs != ours:
                different.append((f"table of {path}", theirs, ours))
    assert different == []
