"""The explanation of a pod that is placed: why there, and where it would go now."""

from extender.analysis.explain import PodReport
from extender.analysis.recorded_cluster import parse_recording
from extender.app import wiring
from tests.explain import explain_pods

CLUSTER = """\
apiVersion: v1
kind: Node
metadata: {name: small}
status: {allocatable: {cpu: 2, memory: 4Gi, pods: 10}}
---
apiVersion: v1
kind: Node
metadata: {name: large}
status: {allocatable: {cpu: 8, memory: 16Gi, pods: 10}}
---
apiVersion: v1
kind: Node
metadata: {name: tainted}
spec: {taints: [{key: dedicated, value: db, effect: NoSchedule}]}
status: {allocatable: {cpu: 8, memory: 16Gi, pods: 10}}
---
"""
POD = """\
apiVersion: v1
kind: Pod
metadata: {name: web}
spec: {nodeName: NODE, containers: [{name: a, resources: {requests: {cpu: 1500m, memory: 1Gi}}}]}
"""


def explain(node: str, more: str = "") -> PodReport:
    setup = wiring.build_setup()
    recording = parse_recording((CLUSTER + POD.replace("NODE", node) + more).encode(), "c.yaml")
    (report,) = explain_pods(recording, ["web"], setup.profiles, setup.profiles, wiring.make_runtime())
    return report


def test_a_pod_on_the_best_node_stays() -> None:
    report = explain("large")
    assert report.assigned_node is not None
    assert report.assigned_node.is_best
    lines = report.to_text().splitlines()
    assert lines[0] == "Pod default/web is on node large"
    assert lines[1].startswith("  large has the highest score now too (total ")


def test_a_pod_on_another_node_has_its_rank_and_the_node_where_it_would_go() -> None:
    values = explain("small").to_values()
    assert values["assigned"]["node"] == "small"
    assert values["assigned"]["rank"] == 2
    assert values["assigned"]["stays"] is False
    assert values["best"] == ["large"]
    margin = values["assigned"]["bestTotal"] - values["assigned"]["total"]
    assert margin > 0
    assert explain("small").to_text().splitlines()[1] == (
        f"  small ranks 2 of 2 now (total {values['assigned']['total']}, {margin} behind large); it would go to large"
    )


def test_the_pod_does_not_count_on_its_own_node() -> None:
    # The node has 2 CPUs; with the pod's own 1.5 CPUs counted, it would be too small.
    values = explain("small").to_values()
    assert values["nodes"]["small"]["firstFailure"] is None


def test_a_node_that_would_reject_the_pod_now_is_named_with_the_reason() -> None:
    report = explain("tainted")
    assert report.fits
    assert report.to_values()["assigned"] == {
        "node": "tainted",
        "rank": None,
        "total": None,
        "bestTotal": report.to_values()["assigned"]["bestTotal"],
        "rejection": "TaintToleration: node(s) had untolerated taint(s)",
        "stays": False,
    }
    assert report.to_text().splitlines()[1] == (
        "  tainted would reject it now: TaintToleration: node(s) had untolerated taint(s)"
    )


def test_a_node_where_another_pod_uses_the_same_host_port_would_reject_the_pod() -> None:
    setup = wiring.build_setup()
    with_port = POD.replace("NODE", "small").replace("{name: a,", "{name: a, ports: [{hostPort: 80}],")
    other = f"---\n{with_port}".replace("name: web", "name: other")
    recording = parse_recording((CLUSTER + with_port + other).encode(), "c.yaml")
    (report,) = explain_pods(recording, ["web"], setup.profiles, setup.profiles, wiring.make_runtime())
    assert report.to_values()["nodes"]["small"]["firstFailure"]["plugin"] == "NodePorts"


def test_a_node_that_no_longer_exists_is_named() -> None:
    assert explain("gone").to_text().splitlines()[1] == "  gone would reject it now: there is no such node"


def test_the_pod_is_on_its_node_again_for_the_next_pod() -> None:
    setup = wiring.build_setup()
    more = "---\napiVersion: v1\nkind: Pod\nmetadata: {name: next}\n" + (
        "spec: {nodeName: small, containers: [{name: a, resources: {requests: {cpu: 400m}}}]}\n"
    )
    recording = parse_recording((CLUSTER + POD.replace("NODE", "small") + more).encode(), "c.yaml")
    first, second = explain_pods(recording, ["web", "next"], setup.profiles, setup.profiles, wiring.make_runtime())
    assert first.assigned_node is not None
    assert second.snapshot.pods_on("small").keys() == {"default/web"}


def test_a_pod_that_has_not_started_on_its_node_waits_for_the_kubelet() -> None:
    text = explain("large", "status: {phase: Pending}\n").to_text()
    advice = "kubectl describe pod web -n default shows why"
    assert text.splitlines()[:2] == [
        "Pod default/web is on node large",
        f"  is Pending although it has a node: the kubelet has not started it; {advice}",
    ]
    initialized = "{type: Initialized, status: 'True'}"
    ready = "{type: Ready, status: 'False', message: 'containers with unready status: [a]'}"
    text = explain("large", f"status: {{phase: Pending, conditions: [{ready}, {initialized}]}}\n").to_text()
    assert f"has not started it (containers with unready status: [a]); {advice}" in text
    assert "Pending" not in explain("large", "status: {phase: Running}\n").to_text()
