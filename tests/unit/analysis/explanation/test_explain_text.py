"""Preemption in the explanation text: the selected candidate, its victims, and the other candidates."""

from pathlib import Path

from extender.analysis.explanation.explain_text import format_explanation
from extender.analysis.recorded_cluster import read_recording
from extender.app import wiring
from tests.explain import explain_pods

SCHEDULER = "default-scheduler"


def node(name: str) -> str:
    status = "status: {allocatable: {cpu: 4, pods: 9}}"
    return f"{{apiVersion: v1, kind: Node, metadata: {{name: {name}}}, {status}}}\n---\n"


def pod(name: str, cpu: int, priority: int, node_name: str = "") -> str:
    node_field = f"nodeName: {node_name}, " if node_name else ""
    containers = f"containers: [{{name: a, resources: {{requests: {{cpu: {cpu}}}}}}}]"
    spec = f"{{{node_field}priority: {priority}, {containers}}}"
    return f"{{apiVersion: v1, kind: Pod, metadata: {{name: {name}}}, spec: {spec}}}\n---\n"


def explain(path: Path, manifest: str) -> list[str]:
    (path / "cluster.yaml").write_text(manifest, encoding="utf-8")
    recording = read_recording([str(path / "cluster.yaml")])
    (report,) = explain_pods(recording, ["urgent"], wiring.build_setup().profiles, [SCHEDULER], wiring.make_runtime())
    return format_explanation(report.explanation, report.snapshot).splitlines()


def test_the_candidate_with_the_fewest_victims_comes_before_the_others(tmp_path: Path) -> None:
    nodes = "".join(node(f"n{number}") for number in range(1, 8))
    running = "".join(pod(f"w{number}{suffix}", 1, 0, f"n{number}") for number in range(1, 8) for suffix in "abcd")
    single = node("n8") + pod("whole", 4, 0, "n8")
    lines = explain(tmp_path, nodes + running + single + pod("urgent", 4, 1000))
    start = lines.index("  Preemption on n8: 1 pod evicted, and this pod is nominated")
    assert lines[start + 1 : start + 8] == [
        "    NODE  EVICTED  PDB VIOLATIONS  VICTIMS",
        "    n8          1               0  default/whole",
        "    n1          4               0  default/w1a, default/w1b, default/w1c and 1 more",
        "    n2          4               0  default/w2a, default/w2b, default/w2c and 1 more",
        "    n3          4               0  default/w3a, default/w3b, default/w3c and 1 more",
        "    n4          4               0  default/w4a, default/w4b, default/w4c and 1 more",
        "    also possible on 3 other nodes",
    ]


def test_equally_good_candidates_are_counted(tmp_path: Path) -> None:
    manifest = node("n1") + node("n2") + pod("a", 4, 0, "n1") + pod("b", 4, 0, "n2") + pod("urgent", 4, 1000)
    lines = explain(tmp_path, manifest)
    assert any("one of 2 equally good nodes: 1 pod evicted, and this pod is nominated" in line for line in lines)


def test_disruption_budget_violations_are_counted(tmp_path: Path) -> None:
    budget = (
        "{apiVersion: policy/v1, kind: PodDisruptionBudget, metadata: {name: b},"
        " spec: {selector: {matchLabels: {app: a}}}, status: {disruptionsAllowed: 0}}\n---\n"
    )
    labelled = pod("a", 4, 0, "n1").replace("metadata: {name: a}", "metadata: {name: a, labels: {app: a}}")
    lines = explain(tmp_path, node("n1") + labelled + budget + pod("urgent", 4, 1000))
    assert "    n1          1               1  default/a" in lines


def test_without_victims_the_text_has_no_preemption(tmp_path: Path) -> None:
    lines = explain(tmp_path, node("n1") + pod("a", 4, 2000, "n1") + pod("urgent", 4, 1000))
    assert not any("evicted" in line for line in lines)
