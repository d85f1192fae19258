"""All results of one node, for a small cluster with results computed by hand."""

import pytest

from extender.analysis.explain import PodReport
from extender.analysis.recorded_cluster import parse_recording
from extender.app import wiring
from tests.explain import explain_pods

CLUSTER = """
{kind: Node, apiVersion: v1, metadata: {name: small}, status: {allocatable: {cpu: 1, pods: 10}}}
---
{kind: Node, apiVersion: v1, metadata: {name: large}, status: {allocatable: {cpu: 4, pods: 10}}}
---
kind: Node
apiVersion: v1
metadata: {name: cordoned}
spec: {unschedulable: true, taints: [{key: dedicated, value: db, effect: NoSchedule}]}
status: {allocatable: {cpu: 1, pods: 10}}
---
kind: Pod
apiVersion: v1
metadata: {name: busy}
spec: {nodeName: large, containers: [{name: a, resources: {requests: {cpu: 3}}}]}
---
{kind: Pod, apiVersion: v1, metadata: {name: web}, spec: {containers: [{name: a, resources: {requests: {cpu: 500m}}}]}}
---
{kind: Pod, apiVersion: v1, metadata: {name: one}, spec: {containers: [{name: a, resources: {requests: {cpu: 1001m}}}]}}
---
kind: Pod
apiVersion: v1
metadata: {name: urgent}
spec: {priority: 9, containers: [{name: a, resources: {requests: {cpu: 2}}}]}
---
kind: Pod
apiVersion: v1
metadata: {name: pinned}
spec:
  affinity:
    nodeAffinity:
      requiredDuringSchedulingIgnoredDuringExecution:
        nodeSelectorTerms: [{matchFields: [{key: metadata.name, operator: In, values: [small]}]}]
---
{kind: Pod, apiVersion: v1, metadata: {name: gated}, spec: {schedulingGates: [{name: example.com/quota}]}}
"""


def explain(name: str) -> PodReport:
    setup = wiring.build_setup()
    recording = parse_recording(CLUSTER.encode(), "cluster.yaml")
    (report,) = explain_pods(recording, [name], setup.profiles, setup.profiles, wiring.make_runtime())
    return report


@pytest.mark.parametrize(
    ("pod", "node", "lines"),
    [
        (
            "web",
            "cordoned",
            [
                "  Node cordoned is rejected by NodeUnschedulable",
                "    NodeUnschedulable: node(s) were unschedulable: uncordon the node",
                "    TaintToleration: node(s) had untolerated taint(s): tolerate dedicated=db:NoSchedule, or remove it "
                "from the node",
            ],
        ),
        (
            "one",
            "large",
            [
                "  Node large is rejected by NodeResourcesFit",
                "    NodeResourcesFit: Insufficient cpu: wants 1001m, but only 1000m are free (1m short)",
            ],
        ),
        (
            "urgent",
            "large",
            [
                "  Node large is rejected by NodeResourcesFit",
                "    NodeResourcesFit: Insufficient cpu: wants 2, but only 1 are free (1 short)",
                "    preemption would help here; it would evict default/busy",
            ],
        ),
        ("pinned", "small", ["  Node small fits, and is the only one"]),
        (
            "pinned",
            "large",
            ["  Node large is not evaluated: NodeAffinity allowed only other nodes at PreFilter"],
        ),
        ("gated", "small", ["  Node small is not evaluated"]),
    ],
)
def test_a_node_has_its_results(pod: str, node: str, lines: list[str]) -> None:
    assert explain(pod).to_text([node]).splitlines()[-len(lines) :] == lines


def test_a_node_that_fits_has_its_scores_beside_those_of_the_best_node() -> None:
    text = explain("web").to_text(["small", "large"])
    # cpu: small is used to 50 %, large to 87 %. There is no memory, and a resource without capacity does not count.
    assert "  Node small fits, and has the highest score of 2 nodes (total " in text
    assert "  Node large fits, and ranks 2 of 2 (total " in text
    assert "behind small)\n    WEIGHTED SCORE (RAW) " in text
    assert "Rejections" not in text
    assert "Scores" not in text
