"""What an explanation says of preemption: the node with room, who is evicted, and where else there would be room."""

from pathlib import Path

from extender import wiring
from extender.offline.capture import read_capture
from extender.offline.explain import explain
from extender.offline.explanation import explanation

SCHEDULER = "default-scheduler"


def node(name: str) -> str:
    room = "status: {allocatable: {cpu: 4, pods: 9}}"
    return f"{{apiVersion: v1, kind: Node, metadata: {{name: {name}}}, {room}}}\n---\n"


def pod(name: str, cpu: int, priority: int, place: str = "") -> str:
    there = f"nodeName: {place}, " if place else ""
    asked = f"containers: [{{name: a, resources: {{requests: {{cpu: {cpu}}}}}}}]"
    spec = f"{{{there}priority: {priority}, {asked}}}"
    return f"{{apiVersion: v1, kind: Pod, metadata: {{name: {name}}}, spec: {spec}}}\n---\n"


def explained(path: Path, written: str) -> list[str]:
    (path / "cluster.yaml").write_text(written, encoding="utf-8")
    capture = read_capture([str(path / "cluster.yaml")])
    (found,) = explain(capture, ["urgent"], wiring.scheduling().profiles, [SCHEDULER], wiring.engine())
    return explanation(found.examination, found.cluster).splitlines()


def test_the_node_with_the_fewest_evictions_is_named_with_its_victims_and_the_other_nodes(tmp_path: Path) -> None:
    places = "".join(node(f"n{number}") for number in range(1, 8))
    running = "".join(pod(f"w{number}{part}", 1, 0, f"n{number}") for number in range(1, 8) for part in "abcd")
    single = node("n8") + pod("whole", 4, 0, "n8")
    lines = explained(tmp_path, places + running + single + pod("urgent", 4, 1000))
    at = lines.index("  Room is made on n8: 1 pod evicted, and this one nominated")
    assert lines[at + 1 : at + 8] == [
        "    NODE  EVICTED  AGAINST A BUDGET  WHO",
        "    n8          1                 0  default/whole",
        "    n1          4                 0  default/w1a, default/w1b, default/w1c and 1 more",
        "    n2          4                 0  default/w2a, default/w2b, default/w2c and 1 more",
        "    n3          4                 0  default/w3a, default/w3b, default/w3c and 1 more",
        "    n4          4                 0  default/w4a, default/w4b, default/w4c and 1 more",
        "    and on 3 other nodes it would be possible",
    ]


def test_of_equally_good_nodes_their_number_is_said(tmp_path: Path) -> None:
    written = node("n1") + node("n2") + pod("a", 4, 0, "n1") + pod("b", 4, 0, "n2") + pod("urgent", 4, 1000)
    lines = explained(tmp_path, written)
    assert any("one of 2 equally good nodes: 1 pod evicted, and this one nominated" in line for line in lines)


def test_a_disruption_budget_is_counted(tmp_path: Path) -> None:
    budget = (
        "{apiVersion: policy/v1, kind: PodDisruptionBudget, metadata: {name: b},"
        " spec: {selector: {matchLabels: {app: a}}}, status: {disruptionsAllowed: 0}}\n---\n"
    )
    labelled = pod("a", 4, 0, "n1").replace("metadata: {name: a}", "metadata: {name: a, labels: {app: a}}")
    lines = explained(tmp_path, node("n1") + labelled + budget + pod("urgent", 4, 1000))
    assert "    n1          1                 1  default/a" in lines


def test_nothing_is_said_where_nobody_can_be_evicted(tmp_path: Path) -> None:
    lines = explained(tmp_path, node("n1") + pod("a", 4, 2000, "n1") + pod("urgent", 4, 1000))
    assert not any("evicted" in line for line in lines)
