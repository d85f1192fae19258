"""`extender what-if`: the flags of a scenario, the output formats, and invalid input."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.unit.planning.clusters import NO_REPLICA_SETS, ZONE, as_list, budget, node, pod

Run = Callable[..., tuple[int, str, str]]


@pytest.fixture
def cluster(tmp_path: Path) -> str:
    path = tmp_path / "c.json"
    path.write_text(
        as_list(
            [
                node("n1", "4", zone="a"),
                node("n2", "4", zone="b"),
                pod("web", "2", on="n1"),
                pod("one", "1", owner=""),
                budget("other", {"app": "other"}, 0),
                NO_REPLICA_SETS,
            ]
        )
    )
    return str(path)


def ask(extender: Run, cluster: str, *flags: str) -> dict[str, Any]:
    status, out, err = extender("what-if", "-f", cluster, "-o", "json", *flags)
    assert (status, err) == (0, "")
    answer: dict[str, Any] = json.loads(out)
    return answer


def test_a_drain_moves_a_pod_and_a_waiting_pod_is_placed(extender: Run, cluster: str) -> None:
    answer = ask(extender, cluster, "--drain", "n1")
    assert answer["moved"] == [
        {"pod": "default/one", "from": None, "to": "n2"},
        {"pod": "default/web", "from": "n1", "to": "n2"},
    ]
    assert (answer["before"]["waiting"], answer["after"]["waiting"]) == (1, 0)


@pytest.mark.parametrize(
    "words",
    [["what-if", "--cordon", "n2"], ["rebalance", "--empty"], ["compare", "--with-emulated-version", "1.36"], ["fits"]],
    ids=lambda words: words[0],
)
def test_a_later_object_replaces_an_earlier_one_only_with_override(
    extender: Run, cluster: str, tmp_path: Path, words: list[str]
) -> None:
    changed = tmp_path / "changed.json"
    changed.write_text(as_list([node("n1", "4", zone="c")]))
    manifest = tmp_path / "copy.json"
    manifest.write_text(as_list([pod("copy", "1")]))
    flags = ["-f", cluster, "-f", str(changed), *(["-p", str(manifest)] if words == ["fits"] else [])]
    status, _, err = extender(*words, *flags)
    assert (status, err.endswith("or pass --override to use the last one\n")) == (2, True)
    assert extender(*words, *flags, "--override")[0] == 0


def test_the_exit_code_says_whether_a_pod_waits(extender: Run, cluster: str) -> None:
    assert extender("what-if", "-f", cluster, "--drain", "n1", "--exit-code")[0] == 0
    assert extender("what-if", "-f", cluster, "--drain", "n1", "--cordon", "n2", "--exit-code")[0] == 3
    assert extender("what-if", "-f", cluster, "--drain", "n1", "--cordon", "n2")[0] == 0


def test_all_changes_of_nodes_may_be_combined(extender: Run, cluster: str) -> None:
    flags = ["--lose", f"{ZONE}=a", "--add", "2", "--like", "n2", "--taint", "n2=k:NoSchedule", "--label", "n2=x=y"]
    answer = ask(extender, cluster, *flags, "--prices", write_prices(cluster), "--cost-label", "x")
    assert {entry["pod"]: entry["from"] for entry in answer["moved"]} == {"default/one": None, "default/web": "n1"}
    assert {entry["to"] for entry in answer["moved"]} <= {"n2-new-1", "n2-new-2"}
    assert [
        (totals["nodes"], totals["cost"], totals["unpricedNodes"]) for totals in (answer["before"], answer["after"])
    ] == [
        (2, 2.5, 1),
        (3, 0, 3),
    ]


def write_prices(cluster: str) -> str:
    path = Path(cluster).with_name("prices.yaml")
    path.write_text("n1: 2.5\n")
    return str(path)


def test_nodes_and_pods_come_from_files(extender: Run, cluster: str, tmp_path: Path) -> None:
    (tmp_path / "n.json").write_text(as_list([node("n3", "9")]))
    (tmp_path / "p.json").write_text(as_list([pod("big", "4", owner="")]))
    flags = ["--nodes", str(tmp_path / "n.json"), "--pods", str(tmp_path / "p.json")]
    two = ask(extender, cluster, *flags, "--replicas", "2", "--cordon", "n2")
    assert sorted((entry["pod"], entry["to"]) for entry in two["moved"] if "big" in entry["pod"]) == [
        ("default/big-0", "n3"),
        ("default/big-1", "n3"),
    ]
    one = ask(extender, cluster, *flags)
    assert "default/big" in [entry["pod"] for entry in one["moved"]]


def test_scale_and_preempt(extender: Run, cluster: str) -> None:
    answer = ask(extender, cluster, "--scale", "replicaset/web=4", "--preempt")
    assert (len(answer["moved"]), len(answer["waiting"]), answer["evicted"]) == (3, 1, [])


def test_the_table_is_the_default_and_yaml_has_the_same_values(extender: Run, cluster: str) -> None:
    assert extender("what-if", "-f", cluster, "--drain", "n1")[1].startswith("1 pod moves, 1 is placed.\n\nMoves\n")
    assert (
        "moved:\n- from: null\n  pod: default/one\n  to: n2\n"
        in extender("what-if", "-f", cluster, "--drain", "n1", "-o", "yaml")[1]
    )


LINES = {
    "unknown nodes": (
        ["--drain", "n7", "--remove", "m"],
        ["--drain n7: there is no such node", "--remove m: there is no such node"],
    ),
    "unknown zone": (["--lose", f"{ZONE}=x"], [f"--lose {ZONE}=x: no node has this value; {ZONE} has a, b"]),
    "unknown workload": (
        ["--scale", "deployment/api=3"],
        ["--scale deployment/api: namespace default has no pod of this workload"],
    ),
    "a contradiction": (
        ["--drain", "n1", "--remove", "n1"],
        ["--drain n1: the scenario removes this node too; keep only one of the flags"],
    ),
}  # fmt: skip


@pytest.mark.parametrize(("flags", "lines"), LINES.values(), ids=LINES.keys())
def test_a_scenario_that_does_not_match_is_one_clear_line(
    extender: Run, cluster: str, flags: list[str], lines: list[str]
) -> None:
    assert extender("what-if", "-f", cluster, *flags) == (2, "", "".join(f"extender: {line}\n" for line in lines))


USAGE = {
    "nothing changes": ([], "nothing changes; name a change, such as --drain NODE"),
    "copies of nothing": (["--replicas", "3"], "Invalid value for --replicas: needs --pods FILE with the pod to copy"),
    "no copies": (["--replicas", "0"], "Invalid value for --replicas: 0; want 1 to 1000000 copies"),
    "no node to copy": (
        ["--add", "3"],
        "Invalid value for --add: 1 times --add and 0 times --like; each --add N needs one --like NODE",
    ),
}


@pytest.mark.parametrize(("flags", "message"), USAGE.values(), ids=USAGE.keys())
def test_an_invalid_flag_is_one_clear_line(extender: Run, cluster: str, flags: list[str], message: str) -> None:
    status, out, err = extender("what-if", "-f", cluster, *flags)
    assert (status, out, err.splitlines()[-1]) == (2, "", f"Error: {message}")


def test_a_file_of_nodes_without_a_node_is_an_error(extender: Run, cluster: str, tmp_path: Path) -> None:
    (tmp_path / "p.json").write_text(as_list([pod("big", "4", owner="")]))
    file = str(tmp_path / "p.json")
    assert extender("what-if", "-f", cluster, "--nodes", file) == (
        2,
        "",
        f"extender: {file}: holds no Node; name a file with a Node\n",
    )


def test_a_new_node_without_a_status_is_an_error(extender: Run, cluster: str, tmp_path: Path) -> None:
    file = tmp_path / "n.json"
    file.write_text(as_list([{"apiVersion": "v1", "kind": "Node", "metadata": {"name": "new"}}]))
    assert extender("what-if", "-f", cluster, "--nodes", str(file)) == (
        2,
        "",
        f"extender: {file}: Node new: status.allocatable: is missing; "
        "add it, such as {cpu: 4, memory: 8Gi, pods: 110}\n",
    )


def test_an_empty_cluster_leaves_new_pods_waiting(extender: Run, tmp_path: Path) -> None:
    (tmp_path / "e.json").write_text(as_list([{"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "a"}}]))
    (tmp_path / "p.json").write_text(as_list([pod("big", "4", owner="")]))
    answer = ask(extender, str(tmp_path / "e.json"), "--pods", str(tmp_path / "p.json"))
    assert [entry["reasons"] for entry in answer["waiting"]] == [["no nodes available to schedule pods"]]


def test_a_drain_without_recorded_budgets_is_answered_with_a_warning(extender: Run, tmp_path: Path) -> None:
    (tmp_path / "c.json").write_text(as_list([node("n1"), node("n2"), pod("web", on="n1"), NO_REPLICA_SETS]))
    status, out, err = extender("what-if", "-f", str(tmp_path / "c.json"), "--drain", "n1")
    assert (status, out.splitlines()[0]) == (0, "1 pod moves.")
    assert err == (
        "extender: not recorded: poddisruptionbudgets; evictions are answered as if there were none; "
        'the command "record" records all kinds\n'
    )
    assert extender("what-if", "-f", str(tmp_path / "c.json"), "--remove", "n1")[2] == ""


@pytest.mark.parametrize("flags", [("--drain", "n1"), ("--remove", "n1")], ids=["a drain", "a lost node"])
def test_the_kinds_of_the_claims_that_were_not_read_are_named(
    extender: Run, tmp_path: Path, flags: tuple[str, ...]
) -> None:
    """Otherwise the claim of the pod that waits would seem not to exist."""
    volume = {"name": "v", "persistentVolumeClaim": {"claimName": "c"}}
    objects = [node("n1"), node("n2"), pod("db", on="n1", volumes=[volume]), budget("b", {}, 0), NO_REPLICA_SETS]
    (tmp_path / "c.json").write_text(as_list(objects))
    _, out, err = extender("what-if", "-f", str(tmp_path / "c.json"), *flags)
    assert 'persistentvolumeclaim "c" not found' in out
    assert err.startswith("extender: not recorded: persistentvolumeclaims, persistentvolumes, storageclasses; ")


def test_a_sweep_needs_a_recording(extender: Run, tmp_path: Path) -> None:
    (tmp_path / "s.yaml").write_text("scenarios: [{drain: n1}]")
    status, out, err = extender("what-if", "--sweep", str(tmp_path / "s.yaml"))
    assert (status, out) == (2, "")
    assert 'needs a recording with -f; the command "record" writes one' in err


def test_a_kubeconfig_contradicts_a_recording(extender: Run, cluster: str) -> None:
    status, out, err = extender("what-if", "-f", cluster, "--drain", "n1", "--kubeconfig", "k")
    assert (status, out) == (2, "")
    assert "--kubeconfig: selects a live cluster, but -f reads a file; leave out one of them" in err
