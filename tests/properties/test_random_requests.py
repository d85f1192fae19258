"""Random requests are served or rejected; no verb and no plugin fails."""

import copy
import json
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from starlette.testclient import TestClient

from extender.extender_api.payloads import decode_args, decode_binding_args, decode_preemption_args
from extender.extender_api.request_limits import RequestError
from extender.extender_api.routes import new_app
from tests.coroutines import run_now
from tests.unit.extender_api.http_harness import make_service

SELECTOR = {
    "matchLabels": {"app": "web"},
    "matchExpressions": [{"key": "tier", "operator": "In", "values": ["front", "back"]}],
}
TERM = {"labelSelector": SELECTOR, "topologyKey": "kubernetes.io/hostname", "namespaces": ["default"]}
POD: dict[str, Any] = {
    "metadata": {
        "name": "web",
        "namespace": "default",
        "uid": "u-1",
        "labels": {"app": "web"},
        "annotations": {"a": "b"},
        "creationTimestamp": "2026-03-01T00:00:00Z",
        "ownerReferences": [{"kind": "ReplicaSet", "name": "web", "uid": "r-1", "controller": True}],
    },
    "spec": {
        "schedulerName": "default-scheduler",
        "priority": 7,
        "nodeSelector": {"disk": "ssd"},
        "tolerations": [
            {"key": "k", "operator": "Equal", "value": "v", "effect": "NoSchedule", "tolerationSeconds": 3}
        ],
        "overhead": {"cpu": "10m"},
        "initContainers": [{"name": "i", "restartPolicy": "Always", "resources": {"requests": {"memory": "1Gi"}}}],
        "containers": [
            {
                "name": "c",
                "image": "registry.example/web:1.2",
                "ports": [{"hostPort": 8080, "containerPort": 80, "protocol": "TCP", "hostIP": "127.0.0.1"}],
                "resources": {"requests": {"cpu": "100m", "memory": "200Mi"}, "limits": {"example.com/gpu": "1"}},
            }
        ],
        "volumes": [
            {"name": "v", "persistentVolumeClaim": {"claimName": "data"}},
            {"name": "d", "gcePersistentDisk": {"pdName": "disk"}},
            {
                "name": "e",
                "ephemeral": {"volumeClaimTemplate": {"spec": {"resources": {"requests": {"storage": "1Gi"}}}}},
            },
        ],
        "topologySpreadConstraints": [
            {"maxSkew": 1, "topologyKey": "zone", "whenUnsatisfiable": "DoNotSchedule", "labelSelector": SELECTOR},
            {
                "maxSkew": 2,
                "topologyKey": "kubernetes.io/hostname",
                "whenUnsatisfiable": "ScheduleAnyway",
                "minDomains": 1,
            },
        ],
        "resourceClaims": [{"name": "dev", "resourceClaimName": "claim"}],
        "schedulingGates": [],
        "affinity": {
            "nodeAffinity": {
                "requiredDuringSchedulingIgnoredDuringExecution": {
                    "nodeSelectorTerms": [
                        {"matchExpressions": [{"key": "cores", "operator": "Gt", "values": ["3"]}]},
                        {"matchFields": [{"key": "metadata.name", "operator": "In", "values": ["n1"]}]},
                    ]
                },
                "preferredDuringSchedulingIgnoredDuringExecution": [
                    {"weight": 5, "preference": {"matchExpressions": [{"key": "zone", "operator": "Exists"}]}}
                ],
            },
            "podAffinity": {
                "preferredDuringSchedulingIgnoredDuringExecution": [{"weight": 3, "podAffinityTerm": TERM}]
            },
            "podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [TERM]},
        },
    },
    "status": {"nominatedNodeName": "n1"},
}
NODE: dict[str, Any] = {
    "metadata": {"name": "n1", "labels": {"zone": "z1", "kubernetes.io/hostname": "n1", "cores": "4", "disk": "ssd"}},
    "spec": {"taints": [{"key": "k", "value": "v", "effect": "NoSchedule"}], "unschedulable": False},
    "status": {
        "allocatable": {"cpu": "4", "memory": "16Gi", "pods": "110", "example.com/gpu": "2"},
        "images": [{"names": ["registry.example/web:1.2"], "sizeBytes": 1000}],
        "conditions": [{"type": "Ready", "status": "True"}],
        "declaredFeatures": ["a"],
    },
}
BY_NAMES: dict[str, Any] = {"Pod": POD, "Nodes": None, "NodeNames": ["n1", "n2"]}
BY_NODES: dict[str, Any] = {"Pod": POD, "Nodes": {"metadata": {}, "items": [NODE]}, "NodeNames": None}
PREEMPT_ARGS: dict[str, Any] = {
    "Pod": POD,
    "NodeNameToMetaVictims": {"n1": {"Pods": [{"UID": "u"}], "NumPDBViolations": 1}},
}

ODD_TEXT = st.sampled_from(
    [
        "",
        " ",
        "0",
        "-1",
        "1e400",
        "1Ei",
        "99999999999999999999",
        "1e-30",
        "n1",
        "a/b/c",
        "\x00",
        "é" * 70,
        "x" * 300,
        "=",
    ]
)
ANY_VALUE = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.sampled_from([2**31, 2**63, -(2**63), 10**30, -1, 0])
    | ODD_TEXT
    | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(ODD_TEXT | st.text(), inner, max_size=3),
    max_leaves=5,
)


def find_paths(value: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    """Return the paths to all values inside *value*."""
    keys = list(value) if isinstance(value, dict) else range(len(value)) if isinstance(value, list) else []
    return [paths for key in keys for paths in ((*path, key), *find_paths(value[key], (*path, key)))]


@st.composite
def mutate(draw: st.DrawFn, request: dict[str, Any]) -> bytes:
    """Return *request* with a few values removed or replaced."""
    copied = copy.deepcopy(request)
    for _ in range(draw(st.integers(1, 3))):
        path = draw(st.sampled_from(find_paths(copied)))
        parent = copied
        for step in path[:-1]:
            parent = parent[step]
        if draw(st.booleans()):
            parent[path[-1]] = draw(ANY_VALUE | ODD_TEXT)
        else:
            del parent[path[-1]]
        if not copied:
            break
    return json.dumps(copied).encode()


CLIENT = TestClient(new_app(make_service()), raise_server_exceptions=False)


@pytest.mark.parametrize("decode", [decode_args, decode_preemption_args, decode_binding_args])
@given(body=st.binary(max_size=200) | st.builds(json.dumps, ANY_VALUE).map(str.encode))
@settings(max_examples=300, derandomize=True)
def test_random_bytes_are_decoded_or_rejected(decode: Any, body: bytes) -> None:
    rejection = RequestError(400, "")
    try:
        run_now(decode(body))
    except RequestError as error:
        rejection = error
    assert rejection.status == 400
    assert len(rejection.message) < 400


@pytest.mark.parametrize("path", ["/filter", "/prioritize"])
@given(body=mutate(BY_NAMES) | mutate(BY_NODES))
@example(body=json.dumps(BY_NAMES).encode())
@example(body=json.dumps(BY_NODES).encode())
@settings(max_examples=200, derandomize=True)
def test_a_request_with_random_values_is_decided_or_rejected(path: str, body: bytes) -> None:
    response = CLIENT.post(path, content=body)
    assert response.status_code in {200, 400}, response.text
    if path == "/filter" and response.status_code == 200:
        assert not response.json()["Error"]


@given(body=mutate(PREEMPT_ARGS))
@settings(max_examples=100, derandomize=True)
def test_victims_with_random_values_are_reviewed_or_rejected(body: bytes) -> None:
    response = CLIENT.post("/preempt", content=body)
    assert response.status_code in {200, 400}, response.text
