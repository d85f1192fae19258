"""Whatever is sent, a request is answered or refused: no verb breaks, and no plugin gets to see what it cannot read."""

import copy
import json
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from starlette.testclient import TestClient

from extender.web.app import new_app
from extender.web.wire import RequestError, decode_args, decode_binding_args, decode_preemption_args
from tests.unit.web.served import a_site

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
OFFER: dict[str, Any] = {"Pod": POD, "NodeNameToMetaVictims": {"n1": {"Pods": [{"UID": "u"}], "NumPDBViolations": 1}}}

ODD = st.sampled_from(
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
ANYTHING = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.sampled_from([2**31, 2**63, -(2**63), 10**30, -1, 0])
    | ODD
    | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(ODD | st.text(), inner, max_size=3),
    max_leaves=5,
)


def places(thing: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    """The paths to everything in *thing* but itself."""
    keys = list(thing) if isinstance(thing, dict) else range(len(thing)) if isinstance(thing, list) else []
    return [found for key in keys for found in ((*path, key), *places(thing[key], (*path, key)))]


@st.composite
def changed(draw: st.DrawFn, request: dict[str, Any]) -> bytes:
    """*request* with a few things in it gone, or others in their place."""
    copied = copy.deepcopy(request)
    for _ in range(draw(st.integers(1, 3))):
        path = draw(st.sampled_from(places(copied)))
        holder = copied
        for step in path[:-1]:
            holder = holder[step]
        if draw(st.booleans()):
            holder[path[-1]] = draw(ANYTHING | ODD)
        else:
            del holder[path[-1]]
        if not copied:
            break
    return json.dumps(copied).encode()


CALLER = TestClient(new_app(a_site()), raise_server_exceptions=False)


@pytest.mark.parametrize("decode", [decode_args, decode_preemption_args, decode_binding_args])
@given(body=st.binary(max_size=200) | st.builds(json.dumps, ANYTHING).map(str.encode))
@settings(max_examples=300, derandomize=True)
def test_bytes_of_any_kind_are_decoded_or_refused(decode: Any, body: bytes) -> None:
    refused = RequestError(400, "")
    try:
        decode(body)
    except RequestError as fault:
        refused = fault
    assert refused.status == 400
    assert len(refused.message) < 400


@pytest.mark.parametrize("path", ["/filter", "/prioritize"])
@given(body=changed(BY_NAMES) | changed(BY_NODES))
@example(body=json.dumps(BY_NAMES).encode())
@example(body=json.dumps(BY_NODES).encode())
@settings(max_examples=200, derandomize=True)
def test_a_request_with_odd_things_in_it_is_decided_or_refused(path: str, body: bytes) -> None:
    answer = CALLER.post(path, content=body)
    assert answer.status_code in {200, 400}, answer.text
    if path == "/filter" and answer.status_code == 200:
        assert not answer.json()["Error"]


@given(body=changed(OFFER))
@settings(max_examples=100, derandomize=True)
def test_an_offer_with_odd_things_in_it_is_judged_or_refused(body: bytes) -> None:
    answer = CALLER.post("/preempt", content=body)
    assert answer.status_code in {200, 400}, answer.text
