"""Objects as a real API server stores them are decoded without loss, and equal their manifests with our defaults."""

import json
from collections.abc import Iterator
from typing import Any

import pytest

from extender.analysis.recorded_cluster import parse_recording
from extender.api.codec import decode, encode
from extender.api.kinds.pod import Pod
from extender.api.quantity import to_base_units
from extender.api.scheme import KINDS
from tests.controlplane import mixed_cluster
from tests.controlplane.api_client import ApiClient, JsonObject

UNREAD_FIELDS = {
    "Pod": {
        "apiVersion",
        "kind",
        "spec.containers[].imagePullPolicy",
        "spec.containers[].terminationMessagePath",
        "spec.containers[].terminationMessagePolicy",
        "spec.dnsPolicy",
        "spec.enableServiceLinks",
        "spec.initContainers[].imagePullPolicy",
        "spec.initContainers[].terminationMessagePath",
        "spec.initContainers[].terminationMessagePolicy",
        "spec.securityContext",
        "status.conditions[].lastProbeTime",
        "status.qosClass",
    },
    "Node": {
        "apiVersion",
        "kind",
        "status.conditions[].lastHeartbeatTime",
        "status.conditions[].lastTransitionTime",
        "status.daemonEndpoints.kubeletEndpoint.Port",
        "status.nodeInfo.bootID",
        "status.nodeInfo.kubeProxyVersion",
        "status.nodeInfo.machineID",
        "status.nodeInfo.systemUUID",
    },
}
"""Fields that the API server fills in and the scheduler does not read."""

ADDED_TOLERATIONS = [
    {"key": "node.kubernetes.io/not-ready", "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 300},
    {"key": "node.kubernetes.io/unreachable", "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 300},
]
"""Tolerations that admission adds to pods; they do not affect scheduling."""

API_DEFAULTS = {
    "priority": 0,
    "preemptionPolicy": "PreemptLowerPriority",
    "restartPolicy": "Always",
    "terminationGracePeriodSeconds": 30,
}
"""Defaults that manifests lack; the scheduler treats an absent field in the same way."""


@pytest.fixture
def created_pairs(api: ApiClient) -> list[tuple[JsonObject, JsonObject]]:
    """Create nodes and pods; return pairs of the manifest and the created object."""
    for obj in mixed_cluster.make_namespaces_and_workloads():
        api.create(obj)
    return [
        (manifest, api.create(manifest))
        for manifest in [*mixed_cluster.make_nodes(12), *mixed_cluster.make_pods(seed=2, count=150)]
    ]


def iterate_leaves(value: Any, path: str = "") -> Iterator[tuple[str, Any]]:
    """Yield path and value of all scalars and empty containers; a path is like `spec.containers[].image`."""
    if isinstance(value, dict) and value:
        for key, part in value.items():
            yield from iterate_leaves(part, f"{path}.{key}".lstrip("."))
    elif isinstance(value, list) and value:
        for part in value:
            yield from iterate_leaves(part, f"{path}[]")
    else:
        yield path, value


def test_fields_filled_in_by_the_api_server_are_decoded_without_loss(
    created_pairs: list[tuple[JsonObject, JsonObject]],
) -> None:
    for _, obj in created_pairs:
        obj["metadata"].pop("managedFields")
        decoded = decode(json.dumps(obj).encode(), KINDS[obj["apiVersion"], obj["kind"]])
        skipped = UNREAD_FIELDS[obj["kind"]]
        expected = [leaf for leaf in iterate_leaves(obj) if leaf[0] not in skipped]
        actual = list(iterate_leaves(json.loads(encode(decoded))))
        assert sorted(expected, key=repr) == sorted(actual, key=repr), obj["metadata"]["name"]


def test_manifests_are_defaulted_like_by_the_api_server(created_pairs: list[tuple[JsonObject, JsonObject]]) -> None:
    pods = [pair for pair in created_pairs if pair[1]["kind"] == "Pod"]
    assert len(pods) == 150
    for manifest, obj in pods:
        ours = read_spec({"apiVersion": "v1", **manifest})
        upstream = read_spec(obj)
        upstream["tolerations"] = [
            toleration for toleration in upstream["tolerations"] if toleration not in ADDED_TOLERATIONS
        ]
        ours["tolerations"] = [
            toleration for toleration in ours.get("tolerations", []) if toleration not in ADDED_TOLERATIONS
        ]
        assert {**API_DEFAULTS, **ours} == upstream, manifest["metadata"]["name"]


def read_spec(pod: JsonObject) -> JsonObject:
    """Decode the spec of a pod as from a file, with amounts in base units."""
    (obj,) = parse_recording(json.dumps(pod).encode(), "file").objects
    assert isinstance(obj, Pod)
    spec: JsonObject = json.loads(encode(obj.spec))
    for container in [*spec["containers"], *spec.get("initContainers", [])]:
        for amounts in container.setdefault("resources", {}).values():
            amounts.update({name: to_base_units(name, amount) for name, amount in amounts.items()})
        for port in container.get("ports", ()):
            port.setdefault("protocol", "TCP")
    return spec
