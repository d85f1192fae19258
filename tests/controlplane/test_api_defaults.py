"""What a real API server makes of objects: nothing of it is lost on reading, and files without it decide the same."""

import json
from collections.abc import Iterator
from typing import Any

import pytest

from extender.objects.codec import decode, encode
from extender.objects.kinds import KINDS
from extender.objects.pod import Pod
from extender.objects.quantity import base_units
from extender.offline.capture import parse_capture
from tests.controlplane import mixed
from tests.controlplane.api import Api, Thing

NOT_READ = {
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
        "status.nodeInfo.architecture",
        "status.nodeInfo.bootID",
        "status.nodeInfo.containerRuntimeVersion",
        "status.nodeInfo.kernelVersion",
        "status.nodeInfo.kubeProxyVersion",
        "status.nodeInfo.kubeletVersion",
        "status.nodeInfo.machineID",
        "status.nodeInfo.operatingSystem",
        "status.nodeInfo.osImage",
        "status.nodeInfo.systemUUID",
    },
}
"""Fields the API server fills in that no rule of the scheduler looks at."""

ADMITTED = [
    {"key": "node.kubernetes.io/not-ready", "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 300},
    {"key": "node.kubernetes.io/unreachable", "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 300},
]
"""Tolerations that admission gives to pods without their like; such taints never keep a pod off a node they are on."""

SERVER_S = {
    "priority": 0,
    "preemptionPolicy": "PreemptLowerPriority",
    "restartPolicy": "Always",
    "terminationGracePeriodSeconds": 30,
}
"""Defaults that files do without: each is also what an absent field means to the scheduler."""


@pytest.fixture
def made(api: Api) -> list[tuple[Thing, Thing]]:
    """Nodes and pods: as written, and as the API server answers."""
    for thing in mixed.surroundings():
        api.create(thing)
    return [(written, api.create(written)) for written in [*mixed.nodes(12), *mixed.pods(seed=2, count=150)]]


def leaves(value: Any, path: str = "") -> Iterator[tuple[str, Any]]:
    """All values without parts, each with its path, such as `spec.containers[].image`."""
    if isinstance(value, dict) and value:
        for key, part in value.items():
            yield from leaves(part, f"{path}.{key}".lstrip("."))
    elif isinstance(value, list) and value:
        for part in value:
            yield from leaves(part, f"{path}[]")
    else:
        yield path, value


def test_what_the_api_server_fills_in_is_read_without_loss(made: list[tuple[Thing, Thing]]) -> None:
    for _, thing in made:
        thing["metadata"].pop("managedFields")
        read = decode(json.dumps(thing).encode(), KINDS[thing["apiVersion"], thing["kind"]])
        skipped = NOT_READ[thing["kind"]]
        want = [leaf for leaf in leaves(thing) if leaf[0] not in skipped]
        got = list(leaves(json.loads(encode(read))))
        assert sorted(want, key=repr) == sorted(got, key=repr), thing["metadata"]["name"]


def test_pods_written_by_hand_are_completed_as_the_api_server_completes_them(made: list[tuple[Thing, Thing]]) -> None:
    pods = [pair for pair in made if pair[1]["kind"] == "Pod"]
    assert len(pods) == 150
    for written, thing in pods:
        ours = read_spec({"apiVersion": "v1", **written})
        theirs = read_spec(thing)
        theirs["tolerations"] = [each for each in theirs["tolerations"] if each not in ADMITTED]
        ours["tolerations"] = [each for each in ours.get("tolerations", []) if each not in ADMITTED]
        assert {**SERVER_S, **ours} == theirs, written["metadata"]["name"]


def read_spec(pod: Thing) -> Thing:
    """The pod's specification as files are read, with amounts in base units."""
    (thing,) = parse_capture(json.dumps(pod).encode(), "file").objects
    assert isinstance(thing, Pod)
    spec: Thing = json.loads(encode(thing.spec))
    for container in [*spec["containers"], *spec.get("initContainers", [])]:
        for amounts in container.setdefault("resources", {}).values():
            amounts.update({name: base_units(name, amount) for name, amount in amounts.items()})
        for port in container.get("ports", ()):
            port.setdefault("protocol", "TCP")
    return spec
