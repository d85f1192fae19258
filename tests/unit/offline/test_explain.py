"""Explanations as plain values and as text, of a small cluster where everything can be worked out by hand."""

from pathlib import Path
from typing import Any

import pytest

from extender import wiring
from extender.offline.answers import answer
from extender.offline.capture import Capture, read_capture
from extender.offline.explain import Explained, explain
from extender.offline.explanation import explanation

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
spec: {schedulingGates: [{name: example.com/quota}]}
---
apiVersion: v1
kind: Pod
metadata: {name: pinned}
spec:
  affinity:
    nodeAffinity:
      requiredDuringSchedulingIgnoredDuringExecution:
        nodeSelectorTerms: [{matchFields: [{key: metadata.name, operator: In, values: [gone]}]}]
"""


@pytest.fixture
def capture(tmp_path: Path) -> Capture:
    path = tmp_path / "c.yaml"
    path.write_text(CLUSTER)
    return read_capture([str(path)])


def explained(capture: Capture, *names: str, config: dict[str, Any] | None = None) -> list[Explained]:
    scheduling = wiring.scheduling() if config is None else wiring.from_builtins(config, "config")
    return explain(capture, names, scheduling.profiles, scheduling.profiles, wiring.engine())


def only(*plugins: str, score: str = "") -> dict[str, Any]:
    """A configuration with these plugins, and at most one that scores, beside those that every profile needs."""
    needed = ["PrioritySort", "DefaultBinder", "SchedulingGates", *plugins]
    return {
        "apiVersion": "kubescheduler.config.k8s.io/v1",
        "kind": "KubeSchedulerConfiguration",
        "profiles": [
            {
                "schedulerName": "default-scheduler",
                "plugins": {
                    "multiPoint": {"disabled": [{"name": "*"}], "enabled": [{"name": name} for name in needed]},
                    "score": {"disabled": [{"name": "*"}], "enabled": [{"name": score, "weight": 2}] if score else []},
                },
            }
        ],
    }


FIT = only("NodeResourcesFit", "TaintToleration", "NodeAffinity", score="NodeResourcesFit")


def test_without_names_every_waiting_pod_is_explained_in_file_order(capture: Capture) -> None:
    keys = [each.examination.pod.key for each in explained(capture)]
    assert keys == ["default/fits", "default/one", "default/nowhere", "default/gated", "default/pinned"]


def test_the_values_of_a_pod_that_fits(capture: Capture) -> None:
    (found,) = explained(capture, "fits", config=FIT)
    taint = "node(s) had untolerated taint(s)"
    # small: cpu (1000-700-100)/1000 = 20, memory (2048-1024-512)/2048 = 25; large: cpu 97, memory 93
    assert answer(found.examination) == {
        "preEnqueue": None,
        "preFilter": {"status": None, "nodes": None},
        "nodes": {
            "large": {"filters": {}, "firstFailure": None},
            "small": {"filters": {}, "firstFailure": None},
            "tainted": {
                "filters": {"TaintToleration": {"code": "UnschedulableAndUnresolvable", "reasons": [taint]}},
                "firstFailure": {
                    "code": "UnschedulableAndUnresolvable",
                    "plugin": "TaintToleration",
                    "reasons": [taint],
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


def test_the_values_of_a_pod_that_is_held_back(capture: Capture) -> None:
    (found,) = explained(capture, "gated", config=FIT)
    assert answer(found.examination) == {
        "preEnqueue": {
            "plugin": "SchedulingGates",
            "reasons": ["waiting for scheduling gates: [example.com/quota]"],
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


def test_the_values_of_a_pod_that_wants_a_node_which_is_gone(capture: Capture) -> None:
    (found,) = explained(capture, "pinned", config=FIT)
    values = answer(found.examination)
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
    PLUGIN            large                    small
                        raw  of 100  weighted    raw  of 100  weighted
    NodeResourcesFit     95      95  x2 = 190     22      22   x2 = 44
    total                                 190                       44

  Who refuses it, every plugin asked about every node
    NODES  ONLY THIS  PLUGIN           WHY
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
    PLUGIN            large
                        raw  of 100  weighted
    NodeResourcesFit     92      92  x2 = 184
    total                                 184

  Who refuses it, every plugin asked about every node
    NODES  ONLY THIS  PLUGIN            WHY
        1          1  NodeResourcesFit  Insufficient cpu
        1          1  TaintToleration   node(s) had untolerated taint(s)
""",
    ),
    "a pod that fits nowhere": (
        "nowhere",
        """\
Pod default/nowhere
  fits on none of 3 nodes
  0/3 nodes are available: 1 Insufficient cpu, 1 node(s) didn't match Pod's node affinity/selector, \
1 node(s) had untolerated taint(s).

  Who refuses it, every plugin asked about every node
    NODES  ONLY THIS  PLUGIN            WHY
        2          1  NodeAffinity      node(s) didn't match Pod's node affinity/selector
        1          1  NodeResourcesFit  Insufficient cpu
        1          0  TaintToleration   node(s) had untolerated taint(s)

  Nearest misses, and what is in the way
    small: Insufficient cpu: wants 500m, 300m free; 200m short
    large: node(s) didn't match Pod's node affinity/selector: wants zone=a, the node has "b"
    tainted: node(s) had untolerated taint(s): tolerate dedicated=db:NoSchedule, or remove it from the node
      node(s) didn't match Pod's node affinity/selector: wants zone=a, the node has "b"
""",
    ),
    "a pod that is held back": (
        "gated",
        """\
Pod default/gated
  is held back before the queue by SchedulingGates: waiting for scheduling gates: [example.com/quota]
""",
    ),
    "a pod whose only node is gone": (
        "pinned",
        """\
Pod default/pinned
  fits on none of 3 nodes
  0/3 nodes are available: 3 node(s) didn't satisfy plugin(s) [NodeAffinity].

  Only these nodes were asked (NodeAffinity): gone
""",
    ),
}


@pytest.mark.parametrize(("name", "text"), TEXTS.values(), ids=TEXTS.keys())
def test_the_text_says_who_refuses_or_who_wins_and_why(capture: Capture, name: str, text: str) -> None:
    (found,) = explained(capture, name, config=FIT)
    assert explanation(found.examination, found.cluster) == text


def test_nodes_that_are_equally_good_are_named(capture: Capture) -> None:
    (found,) = explained(capture, "fits", config=only())
    assert explanation(found.examination, found.cluster) == (
        "Pod default/fits\n  fits on 3 of 3 nodes\n  all are equally good (total 1); one of them is taken at random\n"
    )
