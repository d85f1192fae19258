"""Scenarios and questions that do not match the cluster: one clear line each, and status 2."""

from collections.abc import Callable
from pathlib import Path

import pytest

from tests.unit.planning.clusters import NO_REPLICA_SETS, ZONE, as_list, budget, node, pod

Run = Callable[..., tuple[int, str, str]]
CASES: dict[str, tuple[list[str], str]] = {
    "an unknown node to drain": (
        ["what-if", "--drain", "nod-1"],
        '--drain nod-1: there is no such node; did you mean "node-1"?',
    ),
    "an unknown node to lose": (["what-if", "--remove", "x"], "--remove x: there is no such node"),
    "an unknown node to add": (["what-if", "--add", "1", "--like", "x"], "--like x: there is no such node"),
    "an unknown zone": (
        ["what-if", "--lose", f"{ZONE}=c"],
        f"--lose {ZONE}=c: no node has this value; {ZONE} has a, b",
    ),
    "an unknown label": (["what-if", "--lose", "zone=c"], "--lose zone=c: no node has the label zone"),
    "an unknown workload": (
        ["what-if", "--scale", "replicaset/wep=3"],
        '--scale replicaset/wep: namespace default has no pod of this workload; did you mean "replicaset/web"?',
    ),
    "a workload of another namespace": (
        ["what-if", "--scale", "replicaset/web=3", "-n", "other"],
        "--scale replicaset/web: namespace other has no pod of this workload; "
        "it is in namespace default, which -n selects",
    ),
    "a taint to remove that the node does not have": (
        ["what-if", "--taint", "node-1=dedicatd:NoSchedule-"],
        "--taint node-1: there is no taint dedicatd:NoSchedule to remove; it has no taints",
    ),
    "a label to remove that the node does not have": (
        ["what-if", "--label", "node-1=kubernetes.io/hostnam-"],
        '--label node-1: there is no label kubernetes.io/hostnam to remove; did you mean "kubernetes.io/hostname"?',
    ),
    "a node that is drained and lost": (
        ["what-if", "--drain", "node-1", "--remove", "node-1"],
        "--drain node-1: the scenario removes this node too; keep only one of the flags",
    ),
    "a node that is drained and in a lost zone": (
        ["what-if", "--drain", "node-1", "--lose", f"{ZONE}=a"],
        "--drain node-1: the scenario removes this node too; keep only one of the flags",
    ),
    "a node that is drained and cordoned": (
        ["what-if", "--drain", "node-1", "--cordon", "node-1"],
        "--cordon node-1: --drain cordons this node too; keep only one of the flags",
    ),
    "a node that is drained twice": (
        ["what-if", "--drain", "node-1", "--drain", "node-1"],
        "--drain node-1: is named twice",
    ),
    "a taint that is set and removed": (
        ["what-if", "--taint", "node-1=k:NoSchedule", "--taint", "node-1=k:NoSchedule-"],
        "--taint node-1: k:NoSchedule is changed twice",
    ),
    "an unknown pod to explain": (
        ["explain", "wep"],
        "{file}: Pod wep: there is no such pod; did you mean default/web?",
    ),
    "an unknown pod to make room for": (
        ["rebalance", "--for", "wep"],
        "{file}: Pod wep: there is no such pod; did you mean default/web?",
    ),
    "an unknown node to empty": (
        ["rebalance", "--empty", "--node", "nod-1"],
        '--node nod-1: there is no such node; did you mean "node-1"?',
    ),
}


@pytest.mark.parametrize("case", CASES)
def test_one_line_says_what_is_wrong_with(extender: Run, tmp_path: Path, case: str) -> None:
    file = tmp_path / "c.json"
    file.write_text(as_list([node("node-1", zone="a"), node("node-2", zone="b"), pod("web", on="node-1")]))
    (command, *flags), message = CASES[case]
    assert extender(command, "-f", str(file), *flags) == (2, "", f"extender: {message.format(file=file)}\n")


@pytest.mark.parametrize("command", ["explain", "simulate", "what-if", "fits", "compare", "rebalance"])
def test_a_cluster_without_objects_is_an_error_in(extender: Run, tmp_path: Path, command: str) -> None:
    file = tmp_path / "c.json"
    file.write_text(as_list([]))
    (tmp_path / "p.json").write_text(as_list([pod("p")]))
    flags = {
        "what-if": ["--pods", str(tmp_path / "p.json")],
        "fits": ["-p", str(tmp_path / "p.json")],
        "compare": ["--with-emulated-version", "1.37"],
        "rebalance": ["--empty"],
    }
    expected = f"extender: {file}: adds nothing to the cluster: it has no object\n"
    assert extender(command, "-f", str(file), *flags.get(command, [])) == (2, "", expected)


def test_a_cluster_without_nodes_leaves_all_pods_waiting(extender: Run, tmp_path: Path) -> None:
    file = tmp_path / "c.json"
    file.write_text(as_list([pod("web"), budget("other", {"app": "other"}, 0), NO_REPLICA_SETS]))
    _, out, err = extender("what-if", "-f", str(file), "--scale", "replicaset/web=2")
    assert (err, "no nodes available to schedule pods" in out) == ("", True)
    _, out, err = extender("fits", "-f", str(file), "-p", str(file))
    assert (err, out.partition("\n")[0]) == ("", "No copy of default/web fits.")
