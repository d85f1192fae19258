"""The fake API server responds like the real one: status codes, reasons, messages, objects and tables."""

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

from extender.fake_apiserver.server import FakeApiServer
from tests.controlplane.api_client import ApiClient
from tests.controlplane.api_requests import (
    BUDGETS,
    CLAIMS,
    LEASES,
    NAMESPACE_PATH,
    PODS,
    PRIORITY_CLASSES,
    REQUESTS,
    STORAGE,
)
from tests.controlplane.control_plane import ADMIN, ControlPlane
from tests.controlplane.programs import RELEASE

Object = dict[str, Any]

_UUID = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")
_VARYING = {"uid", "resourceVersion", "creationTimestamp", "managedFields", "deletionTimestamp", "lastTransitionTime"}
_VARYING |= {"lastPhaseTransitionTime"}
if RELEASE != "1.36":
    _VARYING.add("preventPodSchedulingIfMissing")  # the fake API server sets the defaults of 1.36
# Finalizers of controllers that do not exist for the fake API server.
_PROTECTED = ("kubernetes.io/pv-protection", "kubernetes.io/pvc-protection")
_AGE = re.compile(r"^\d+s$|^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ$")
_NOT_SCHEDULING = {"serviceAccount", "serviceAccountName", "volumes", "volumeMounts", "securityContext"}


_PATHS_TO_DELETE = (
    PODS,
    f"{NAMESPACE_PATH}/events",
    f"{NAMESPACE_PATH}/persistentvolumeclaims",
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
    f"{PRIORITY_CLASSES}/high",
)


TABLES = (
    PODS,
    f"{PODS}/gated",
    f"{NAMESPACE_PATH}/events",
    f"{NAMESPACE_PATH}/persistentvolumeclaims",
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
    PRIORITY_CLASSES,
)
_BUILT_IN_NAMES = {
    "kube-node-lease",
    "kube-public",
    "kube-system",
    "default",
    "system-node-critical",
    "system-cluster-critical",
}  # created some time after the start


@contextmanager
def run_fake_apiserver() -> Iterator[str]:
    """Run a fake API server in a loop of its own; yield its address."""
    loop = asyncio.new_event_loop()
    thread = threading.Thread(target=loop.run_forever, daemon=True)
    thread.start()

    def run(method: Callable[[], Any]) -> None:
        asyncio.run_coroutine_threadsafe(method(), loop).result(30)

    server = FakeApiServer()
    run(server.start)
    try:
        yield server.url
    finally:
        run(server.stop)
        loop.call_soon_threadsafe(loop.stop)
        thread.join()
        loop.close()


def send_request(client: httpx2.Client, method: str, path: str, body: Any, media_type: str) -> Object:
    """Send a request; return the response without varying fields and fields irrelevant for scheduling."""
    content = None if body is None else json.dumps(body)
    response = client.request(method, path, content=content, headers={"Content-Type": media_type or "application/json"})
    text = _UUID.sub("<uid>", response.text)
    retry = response.headers.get("Retry-After")
    return {
        "code": response.status_code,
        "retry": retry,
        "body": _normalize(json.loads(text) if text[:1] == "{" else text),
    }


def get_table(client: httpx2.Client, path: str, excluded_names: set[str] = _BUILT_IN_NAMES) -> Object:
    """Return columns and rows of a table, without ages and without the rows of *excluded_names*."""
    body = client.get(path, headers={"Accept": "application/json;as=Table;v=v1;g=meta.k8s.io"}).json()
    columns = [
        (column["name"], column["type"], column["format"], column["priority"]) for column in body["columnDefinitions"]
    ]
    rows = [
        [_AGE.sub("<age>", cell) if isinstance(cell, str) else cell for cell in row["cells"]]
        for row in body["rows"] or ()
    ]
    return {"columns": columns, "rows": [row for row in rows if row[0] not in excluded_names]}


def _normalize(value: Any) -> Any:
    if isinstance(value, dict):
        fields = {key: _normalize(part) for key, part in value.items() if key not in _VARYING | _NOT_SCHEDULING}
        return {key: part for key, part in fields.items() if part not in (None, {}, [], "")}
    if isinstance(value, list):
        parts = [_normalize(part) for part in value if part not in _PROTECTED]
        return [part for index, part in enumerate(parts) if part not in parts[:index]]  # a cause may be repeated
    return value.split("\n")[0] if isinstance(value, str) else value  # the other lines print a Go struct


@pytest.fixture
def real(control_plane: ControlPlane, api: ApiClient) -> Iterator[httpx2.Client]:
    trust = ssl.create_default_context(cafile=control_plane.ca_file)
    headers = {"Authorization": f"Bearer {control_plane.token(ADMIN)}"}
    account = {"metadata": {"name": "default"}}
    with httpx2.Client(base_url=control_plane.url, headers=headers, verify=trust, trust_env=False) as client:
        client.post("/api/v1/namespaces", json={"metadata": {"name": "talk"}})
        client.post(f"{NAMESPACE_PATH}/serviceaccounts", json=account)
        yield client
        for path in _PATHS_TO_DELETE:
            client.request("DELETE", path, params={"gracePeriodSeconds": "0"})


def test_the_fake_api_server_responds_like_the_real_one(real: httpx2.Client) -> None:
    differences = []
    with run_fake_apiserver() as url, httpx2.Client(base_url=url, trust_env=False) as fake:
        # Other tests may have left objects in the control plane.
        listed_objects = (item for path in TABLES for item in real.get(path).json().get("items") or ())
        other_names = _BUILT_IN_NAMES | {item["metadata"]["name"] for item in listed_objects} - {"talk"}
        for method, path, body, media_type in REQUESTS[1:]:
            if method == "POST" and path == "/api/v1/nodes":
                send_request(fake, *REQUESTS[0])
            expected, actual = (
                send_request(real, method, path, body, media_type),
                send_request(fake, method, path, body, media_type),
            )
            if expected != actual:
                differences.append((f"{method} {path} {json.dumps(body)}", expected, actual))
        for path in TABLES:
            expected, actual = get_table(real, path, other_names), get_table(fake, path)
            if expected != actual:
                differences.append((f"table of {path}", expected, actual))
    assert differences == []
