"""Explanations as plain values and as text, for a small cluster with results computed by hand."""

from pathlib import Path
from typing import Any

import pytest

from extender.analysis.explain import PodReport
from extender.analysis.explanation.explain_json import make_explanation_values
from extender.analysis.explanation.explain_text import format_explanation
from extender.analysis.recorded_cluster import Recording, read_recording
from extender.app import wiring
from tests.explain import explain_pods

CLUSTER = """\
apiVersion: v1
kind: Node
metadata: {name: small, labels: {zone: a}}
status: {allocatable: {cpu: 1, memory: 2Gi, pods: 10}}
---
apiVersion: v1
kind: Node
metadata: {name: large, labels: {zone: b}}
status: {allocatable: {cpu: 4, memory: 8Gi, pods: 10}}
---
apiVersion: v1
kind: Node
metadata: {name: tainted, labels: {zone: b}}
spec: {taints: [{key: dedicated, value: db, effect: NoSchedule}]}
status: {allocatable: {cpu: 4, memory: 8Gi, pods: 10}}
---
apiVersion: v1
kind: Pod
metadata: {name: busy}
spec:
  nodeName: small
  containers: [{name: a, resources: {requests: {cpu: 700m, memory: 1Gi}}, ports: [{hostPort: 80}]}]
---
apiVersion: v1
kind: Pod
metadata: {name: fits}
spec: {containers: [{name: a, resources: {requests: {cpu: 100m, memory: 512Mi}}}]}
---
apiVersion: v1
kind: Pod
metadata: {name: one}
spec: {containers: [{name: a, resources: {requests: {cpu: 500m}}}]}
---
apiVersion: v1
kind: Pod
metadata: {name: nowhere}
spec:
  nodeSelector: {zone: a}
  containers: [{name: a, resources: {requests: {cpu: 500m}}}]
---
apiVersion: v1
kind: Pod
metadata: {name: gated}
spec: {containers: [{name: a}], schedulingGates: [{name: example.com/quota}]}
---
apiVersion: v1
kind: Pod
metadata: {name: pinned}
spec:
  containers: [{name: a}]
  affinity:
    nodeAffinity:
      requiredDuringSchedulingIgnoredDuringExecution:
        nodeSelectorTerms: [{matchFields: [{key: metadata.name, operator: In, values: [gone]}]}]
"""


@pytest.fixture
def recording(tmp_path: Path) -> Recording:
    path = tmp_path / "c.yaml"
    path.write_text(CLUSTER)
    return read_recording([str(path)])


def explain(recording: Recording, *names: str, config: dict[str, Any] | None = None) -> list[PodReport]:
    setup = wiring.build_setup() if config is None else wiring.build_setup_from_document(config, "config")
    return explain_pods(recording, names, setup.profiles, setup.profiles, wiring.make_runtime())


def make_config(*plugins: str, score: str = "") -> dict[str, Any]:
    """Return a configuration with the required plugins, *plugins*, and at most one Score plugin."""
    names = ["PrioritySort", "DefaultBinder", "SchedulingGates", *plugins]
    return {
        "apiVersion": "kubescheduler.config.k8s.io/v1",
        "kind": "KubeSchedulerConfiguration",
        "profiles": [
            {
                "schedulerName": "default-scheduler",
                "plugins": {
                    "multiPoint": {"disabled": [{"name": "*"}], "enabled": [{"name": name} for name in names]},
                    "score": {"disabled": [{"name": "*"}], "enabled": [{"name": score, "weight": 2}] if score else []},
                },
            }
        ],
    }


FIT_CONFIG = make_config("NodeResourcesFit", "TaintToleration", "NodeAffinity", score="NodeResourcesFit")


def test_without_names_all_pending_pods_are_explained_in_file_order(recording: Recording) -> None:
    keys = [report.explanation.pod.key for report in explain(recording)]
    assert keys == ["default/fits", "default/one", "default/nowhere", "default/gated", "default/pinned"]


def test_the_values_of_a_pod_that_fits(recording: Recording) -> None:
    (report,) = explain(recording, "fits", config=FIT_CONFIG)
    taint = "node(s) had untolerated taint(s)"
    # small: cpu (1000-700-100)/1000 = 20, memory (2048-1024-512)/2048 = 25; large: cpu 97, memory 93
    assert make_explanation_values(report.explanation) == {
        "preEnqueue": None,
        "preFilter": {"status": None, "nodes": None},
        "nodes": {
            "large": {"filters": {}, "firstFailure": None},
            "small": {"filters": {}, "firstFailure": None},
            "tainted": {
                "filters": {
                    "TaintToleration": {
                        "code": "UnschedulableAndUnresolvable",
                        "reasons": [taint],
                        "reasonCodes": ["UntoleratedTaint"],
                    }
                },
                "firstFailure": {
                    "code": "UnschedulableAndUnresolvable",
                    "plugin": "TaintToleration",
                    "reasons": [taint],
                    "reasonCodes": ["UntoleratedTaint"],
                },
            },
        },
        "feasible": ["large", "small"],
        "scores": {
            "large": {"total": 190, "plugins": {"NodeResourcesFit": {"raw": 95, "normalized": 95, "weighted": 190}}},
            "small": {"total": 44, "plugins": {"NodeResourcesFit": {"raw": 22, "normalized": 22, "weighted": 44}}},
        },
        "best": ["large"],
        "filterMessage": None,
        "message": None,
        "preemption": None,
    }


def test_the_values_of_a_gated_pod(recording: Recording) -> None:
    (report,) = explain(recording, "gated", config=FIT_CONFIG)
    assert make_explanation_values(report.explanation) == {
        "preEnqueue": {
            "plugin": "SchedulingGates",
            "reasons": ["waiting for scheduling gates: [example.com/quota]"],
            "reasonCodes": ["SchedulingGated"],
        },
        "preFilter": None,
        "nodes": {},
        "feasible": [],
        "scores": {},
        "best": [],
        "filterMessage": None,
        "message": None,
        "preemption": None,
    }


def test_the_values_of_a_pod_pinned_to_a_missing_node(recording: Recording) -> None:
    (report,) = explain(recording, "pinned", config=FIT_CONFIG)
    values = make_explanation_values(report.explanation)
    assert values["preFilter"] == {"status": None, "nodes": ["gone"]}
    assert (values["nodes"], values["feasible"], values["best"]) == ({}, [], [])
    assert values["message"] == "0/3 nodes are available: 3 node(s) didn't satisfy plugin(s) [NodeAffinity]."


TEXTS = {
    "a pod that fits": (
        "fits",
        """\
Pod default/fits
  fits on 2 of 3 nodes
  large is best (total 190), 146 ahead of small: NodeResourcesFit +146

  Scores
    WEIGHTED SCORE (RAW)  WEIGHT     large    small
    NodeResourcesFit           2  190 (95)  44 (22)
    total                              190       44

  Rejections, with every plugin run on every node
    NODES  ONLY THIS  PLUGIN           REASON
        1          1  TaintToleration  node(s) had untolerated taint(s)
""",
    ),
    "a pod that fits on one node": (
        "one",
        """\
Pod default/one
  fits on 1 of 3 nodes
  large is the only one, so it is taken whatever its score

  Scores
    WEIGHTED SCORE (RAW)  WEIGHT     large
    NodeResourcesFit           2  184 (92)
    total                              184

  Rejections, with every plugin run on every node
    NODES  ONLY THIS  PLUGIN            REASON
        1          1  NodeResourcesFit  Insufficient cpu
        1          1  TaintToleration   node(s) had untolerated taint(s)
""",
    ),
    "a pod that fits nowhere": (
        "nowhere",
        """\
Pod default/nowhere
  fits on none of 3 nodes: 1 node does not match its node selector or affinity, 1 node has too little cpu, \
1 node has a taint that it does not tolerate
  0/3 nodes are available: 1 Insufficient cpu, 1 node(s) didn't match Pod's node affinity/selector, \
1 node(s) had untolerated taint(s).

  Rejections, with every plugin run on every node
    NODES  ONLY THIS  PLUGIN            REASON
        2          1  NodeAffinity      node(s) didn't match Pod's node affinity/selector
        1          1  NodeResourcesFit  Insufficient cpu
        1          0  TaintToleration   node(s) had untolerated taint(s)

  Near misses, and what they lack
    small: Insufficient cpu: wants 500m, but only 300m are free (200m short)
    large: node(s) didn't match Pod's node affinity/selector: wants zone=a, but the node has "b"
    tainted: node(s) had untolerated taint(s): tolerate dedicated=db:NoSchedule, or remove it from the node
      node(s) didn't match Pod's node affinity/selector: wants zone=a, but the node has "b"
""",
    ),
    "a gated pod": (
        "gated",
        """\
Pod default/gated
  is not enqueued, because of SchedulingGates: waiting for scheduling gates: [example.com/quota]
""",
    ),
    "a pod pinned to a missing node": (
        "pinned",
        """\
Pod default/pinned
  fits on none of 3 nodes: NodeAffinity allows only other nodes
  0/3 nodes are available: 3 node(s) didn't satisfy plugin(s) [NodeAffinity].

  PreFilter allows only these nodes (NodeAffinity): gone
""",
    ),
}


@pytest.mark.parametrize(("name", "text"), TEXTS.values(), ids=TEXTS.keys())
def test_the_text_has_rejections_and_scores(recording: Recording, name: str, text: str) -> None:
    (report,) = explain(recording, name, config=FIT_CONFIG)
    assert format_explanation(report.explanation, report.snapshot) == text


def test_a_tie_between_all_nodes_is_reported(recording: Recording) -> None:
    (report,) = explain(recording, "fits", config=make_config())
    assert format_explanation(report.explanation, report.snapshot) == (
        "Pod default/fits\n  fits on 3 of 3 nodes\n  all are equally good (total 1); one of them is taken at random\n"
    )


@pytest.mark.parametrize(
    ("condition", "lines"),
    [
        (
            'status: "False", reason: SchedulerError, message: "running PreBind\\nfailed"',
            ["  its scheduler's last message (SchedulerError): running PreBind failed"],
        ),
        (
            f'status: "False", message: {"x" * 1_500_000}',
            [f"  its scheduler's last message: {'x' * 1000}... (1500000 characters)"],
        ),
        (
            'status: "False", reason: "Broken\\n  no node fits", message: failed',
            ["  its scheduler's last message (Broken no node fits): failed"],
        ),
        ('status: "True", message: bound', []),
    ],
    ids=["a failed binding", "a long message without a reason", "a reason of two lines", "no failure"],
)
def test_a_pod_that_fits_has_the_last_message_of_its_scheduler(
    tmp_path: Path, condition: str, lines: list[str]
) -> None:
    status = f"status: {{conditions: [{{type: PodScheduled, {condition}}}]}}"
    pod = f"apiVersion: v1\nkind: Pod\nmetadata: {{name: failed}}\nspec: {{containers: [{{name: a}}]}}\n{status}\n"
    file = tmp_path / "cluster.yaml"
    file.write_text(f"{CLUSTER}---\n{pod}")
    (report,) = explain(read_recording([str(file)]), "failed", config=make_config())
    assert report.to_text().splitlines()[3:] == lines


def test_nodes_with_equal_results_share_one_object(recording: Recording) -> None:
    """The results of 5,000 nodes are made once for each of the few kinds of results."""
    (report,) = explain(recording, "fits")
    nodes = report.explanation.nodes
    assert list(nodes) == ["small", "large", "tainted"]
    assert nodes["small"] is nodes["large"]
    assert (nodes["small"].rejections, nodes["small"].first_failure) == ({}, None)
    assert nodes["tainted"].rejections == {"TaintToleration": nodes["tainted"].first_failure}
