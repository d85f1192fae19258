"""Feature gates of kube-scheduler on the commands that work on a recorded cluster.

Source: component-base/compatibility/registry.go, componentGlobalsRegistry.AddFlags; pkg/features/kube_features.go,
SchedulerQueueingHints (1.36).
"""

import json
from collections.abc import Callable
from pathlib import Path

import pytest

Command = Callable[..., tuple[int, str, str]]

CLUSTER = """\
apiVersion: v1
kind: Node
metadata: {name: n1}
status: {allocatable: {cpu: 5, memory: 4Gi, pods: 10}}
---
apiVersion: resource.k8s.io/v1
kind: DeviceClass
metadata: {name: cpus}
spec: {}
---
apiVersion: resource.k8s.io/v1
kind: ResourceSlice
metadata: {name: n1}
spec:
  driver: cpu.example.com
  nodeName: n1
  pool: {name: n1, generation: 1, resourceSliceCount: 1}
  devices:
  - {name: d0, nodeAllocatableResources: {cpu: {mapping: {deviceMultiplier: 2}}}}
  - {name: d1, nodeAllocatableResources: {cpu: {mapping: {deviceMultiplier: 2}}}}
---
apiVersion: resource.k8s.io/v1
kind: ResourceClaim
metadata: {name: first, uid: c1}
spec: {devices: {requests: [{name: r, exactly: {deviceClassName: cpus, allocationMode: ExactCount, count: 1}}]}}
---
apiVersion: resource.k8s.io/v1
kind: ResourceClaim
metadata: {name: second, uid: c2}
spec: {devices: {requests: [{name: r, exactly: {deviceClassName: cpus, allocationMode: ExactCount, count: 1}}]}}
---
apiVersion: v1
kind: Pod
metadata: {name: a, uid: a}
spec:
  resourceClaims: [{name: dev, resourceClaimName: first}]
  containers: [{name: app, resources: {requests: {cpu: 1}, claims: [{name: dev}]}}]
---
apiVersion: v1
kind: Pod
metadata: {name: b, uid: b}
spec:
  resourceClaims: [{name: dev, resourceClaimName: second}]
  containers: [{name: app, resources: {requests: {cpu: 1}, claims: [{name: dev}]}}]
"""
ON = "--feature-gates=DRANodeAllocatableResources=true"


@pytest.fixture
def cluster(tmp_path: Path) -> str:
    path = tmp_path / "c.yaml"
    path.write_text(CLUSTER)
    return str(path)


@pytest.mark.parametrize(
    ("gates", "nodes"),
    [
        pytest.param([], {"default/a": "n1", "default/b": "n1"}, id="off by default"),
        pytest.param([ON], {"default/a": "n1", "default/b": None}, id="enabled"),
        pytest.param(
            ["--feature-gates=AllAlpha=true,GenericWorkload=true"],
            {"default/a": "n1", "default/b": None},
            id="with all alphas",
        ),
    ],
)
def test_a_simulated_placement_counts_the_node_resources_of_its_devices(
    extender: Command, cluster: str, gates: list[str], nodes: dict[str, str | None]
) -> None:
    status, out, _ = extender("simulate", "-f", cluster, "-o", "json", *gates)
    placed = {placement["pod"]: placement["node"] for placement in json.loads(out)["placements"]}
    assert (status, placed) == (0, nodes)


def test_a_pod_is_explained_with_the_feature_gates(extender: Command, cluster: str) -> None:
    with Path(cluster).open("a", encoding="utf-8") as file:
        file.write("---\napiVersion: v1\nkind: Pod\nmetadata: {name: other}\n")
        file.write("spec: {nodeName: n1, containers: [{name: a, resources: {requests: {cpu: 3}}}]}\n")
    without_gate = extender("explain", "-f", cluster, "a")[1]
    assert without_gate.startswith("Pod default/a\n  fits on 1 of 1 node\n")

    with_gate = extender("explain", "-f", cluster, "a", ON)[1]
    assert "\n  fits on none of 1 node: 1 node has no free device for it\n" in with_gate
    assert "\n  0/1 nodes are available: 1 Insufficient cpu." in with_gate
    assert "    n1: Insufficient cpu\n" in with_gate


def test_an_unknown_feature_gate_is_one_line(extender: Command, cluster: str) -> None:
    status, out, err = extender("explain", "-f", cluster, "--feature-gates=DRANodeAllocatable=true")
    assert (status, out) == (2, "")
    assert err.splitlines()[0].startswith("extender: --feature-gates: unrecognized feature gate: DRANodeAllocatable")
