"""Pod groups on the commands that work on a recorded cluster."""

import json
from collections.abc import Callable

import pytest

Command = Callable[..., tuple[int, str, str]]

GANG = """\
apiVersion: v1
kind: Node
metadata: {name: n1}
status: {allocatable: {cpu: 1, memory: 4Gi, pods: 10}}
---
apiVersion: scheduling.k8s.io/v1alpha2
kind: PodGroup
metadata: {name: ring, namespace: default}
spec: {schedulingPolicy: {gang: {minCount: 2}}}
---
apiVersion: v1
kind: Pod
metadata: {name: a}
spec: {schedulingGroup: {podGroupName: ring}, containers: [{name: a, resources: {requests: {cpu: 1}}}]}
---
apiVersion: v1
kind: Pod
metadata: {name: b}
spec: {schedulingGroup: {podGroupName: ring}, containers: [{name: a, resources: {requests: {cpu: 1}}}]}
"""
GATES = "GenericWorkload=true,GangScheduling=true"


@pytest.mark.parametrize(("flags", "placed"), [((), 1), (("--feature-gates", GATES), 0)], ids=["off", "on"])
def test_a_simulation_places_a_gang_as_a_whole_if_the_feature_gates_are_enabled(
    extender: Command, flags: tuple[str, ...], placed: int
) -> None:
    status, out, _ = extender("simulate", "-f", "-", "-o", "json", *flags, stdin=GANG)
    assert (status, json.loads(out)["pods"]["placed"]) == (0, placed)


def test_an_explanation_includes_the_pod_group(extender: Command) -> None:
    flags = ("--feature-gates", "GenericWorkload=true", "--feature-gates", "GangScheduling=true")
    _, out, _ = extender("explain", "-f", "-", "-o", "json", *flags, stdin=GANG)
    assert json.loads(out)["pods"]["default/a"]["podGroup"]["message"] == "pod group is unschedulable"
    _, out, _ = extender("explain", "-f", "-", *flags, stdin=GANG)
    assert "  As a member of pod group default/ring, scheduled together with 1 other pod\n    it is not placed\n" in out
    _, out, _ = extender("explain", "-f", "-", "-o", "json", stdin=GANG)
    assert json.loads(out)["pods"]["default/a"]["podGroup"] is None
