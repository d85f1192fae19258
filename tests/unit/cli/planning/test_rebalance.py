"""`extender rebalance`: the three questions, the output formats, and invalid input."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from extender.cli.live.cluster_options import read_cluster
from extender.cli.planning import rebalance
from tests.unit.planning.clusters import as_list, budget, node, pod

Run = Callable[..., tuple[int, str, str]]
TAINT = {"key": "dedicated", "effect": "NoSchedule"}


@pytest.fixture
def cluster(tmp_path: Path) -> str:
    """Write a cluster in which one eviction lets `big` run, n3 can be emptied, and `wrong` violates a taint."""
    nodes = [node("n1"), node("n2"), node("n3", "2", taints=[TAINT])]
    pods = [pod("a", "2", on="n1"), pod("b", "1", on="n2"), pod("c", "1", on="n2"), pod("wrong", "500m", on="n3")]
    group = {"schedulingGroup": {"podGroupName": "train"}}
    objects = [*nodes, *pods, pod("big", "3500m", owner=""), pod("m", "3500m", owner="", **dict[str, Any](group))]
    path = tmp_path / "c.json"
    path.write_text(as_list([*objects, budget("other", {"app": "other"}, 0)]))
    return str(path)


def ask(extender: Run, cluster: str, *flags: str) -> dict[str, Any]:
    status, out, err = extender("rebalance", "-f", cluster, "-o", "json", *flags)
    assert (status, err) == (0, "")
    answer: dict[str, Any] = json.loads(out)
    return answer


def test_a_plan_for_a_pod_has_steps_with_their_commands(extender: Run, cluster: str) -> None:
    answer = ask(extender, cluster, "--for", "big")
    assert (answer["question"], answer["pods"], answer["unplaced"]) == ("for", ["default/big"], [])
    assert answer["moves"] == 1
    assert [(step["action"], step["pod"] or step["node"], step["to"]) for step in answer["steps"]] == [
        ("cordon", "n1", None),
        ("evict", "default/a", "n2"),
        ("uncordon", "n1", None),
    ]
    assert answer["steps"][2]["placed"] == [{"pod": "default/big", "node": "n1"}]
    assert answer["steps"][0]["command"] == "kubectl cordon n1"


def test_a_plan_that_empties_nodes_names_what_it_saves(extender: Run, cluster: str, tmp_path: Path) -> None:
    prices = tmp_path / "prices.yaml"
    prices.write_text("n1: 2\nn2: 2\nn3: 7.5\n")
    answer = ask(extender, cluster, "--empty", "--prices", str(prices))
    assert answer["question"] == "empty"
    assert answer["emptied"][0] == {"node": "n3", "moves": 1, "price": 7.5}
    assert answer["saved"] == sum(entry["price"] for entry in answer["emptied"])
    assert [entry["node"] for entry in ask(extender, cluster, "--empty", "--node", "n3")["emptied"]] == ["n3"]


def test_a_plan_that_ends_violations_names_the_rule(extender: Run, cluster: str) -> None:
    answer = ask(extender, cluster, "--fix")
    assert answer["question"] == "fix"
    assert answer["violations"] == [
        {
            "pod": "default/wrong",
            "node": "n3",
            "plugin": "TaintToleration",
            "reason": "node(s) had untolerated taint(s)",
            "reasonCode": "UntoleratedTaint",
        }
    ]
    assert (answer["moves"], answer["remaining"]) == (1, [])


def test_the_answers_to_all_questions_have_the_same_keys(extender: Run, cluster: str) -> None:
    answers = [ask(extender, cluster, *flags) for flags in (("--for", "big"), ("--empty",), ("--fix",))]
    assert answers[0].keys() == answers[1].keys() == answers[2].keys()


def test_the_text_has_a_summary_the_steps_and_the_commands(extender: Run, cluster: str) -> None:
    status, out, err = extender("rebalance", "-f", cluster, "--for", "big")
    assert (status, err) == (0, "")
    assert out == (
        "default/big runs after 1 move.\n"
        "\n"
        "Steps\n"
        "  1  cordon n1\n"
        "  2  evict default/a  from n1  to n2\n"
        "  3  uncordon n1\n"
        "                               default/big goes to n1\n"
        "\n"
        "Commands; after each eviction, wait until the new pod has a node\n"
        "  kubectl cordon n1\n"
        '  echo \'{"apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": "a", "namespace": "default"}}\''
        " | kubectl create --raw /api/v1/namespaces/default/pods/a/eviction -f -\n"
        "  kubectl uncordon n1\n"
    )


def test_the_exit_code_says_whether_the_plan_reaches_its_goal(extender: Run, cluster: str) -> None:
    assert extender("rebalance", "-f", cluster, "--for", "big", "--exit-code")[0] == 0
    assert extender("rebalance", "-f", cluster, "--for", "m", "--max-attempts", "1", "--exit-code")[0] == 3
    assert extender("rebalance", "-f", cluster, "--fix", "--exit-code")[0] == 0


def test_an_applied_plan_that_does_not_reach_its_goal_is_a_failure(
    extender: Run, cluster: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(rebalance, "read_cluster", lambda _, *options: read_cluster([cluster], *options))
    assert extender("rebalance", "--for", "m", "--max-attempts", "1", "--apply")[0] == 1
    assert extender("rebalance", "--for", "m", "--max-attempts", "1", "--apply", "--exit-code")[0] == 3


def test_a_group_is_named_by_its_pod_group(extender: Run, cluster: str) -> None:
    assert ask(extender, cluster, "--for", "podgroup/train")["pods"] == ["default/m"]
    assert ask(extender, cluster, "--for", "podgroup/default/train")["pods"] == ["default/m"]


def test_a_cluster_without_budgets_is_named(extender: Run, tmp_path: Path) -> None:
    path = tmp_path / "c.json"
    path.write_text(as_list([node("n1"), pod("w")]))
    _, out, err = extender("rebalance", "-f", str(path), "--for", "w")
    assert out == "default/w runs without any move.\n\nPlaced without any move\n  default/w  on n1\n"
    assert err == (
        "extender: not recorded: poddisruptionbudgets; evictions are answered as if there were none; "
        'the command "record" records all kinds\n'
    )


INVALID: dict[str, tuple[list[str], str]] = {
    "no question": ([], "Error: no question; want --for POD, --empty or --fix"),
    "two questions": (["--fix", "--empty"], "Error: --empty and --fix are separate plans; keep one of them"),
    "an unknown pod": (["--for", "bug"], "Pod bug: there is no such pod; did you mean default/big?"),
    "a pod that has a node": (["--for", "a"], "--for: Pod default/a: is on node n1 already"),
    "an unknown group": (
        ["--for", "podgroup/trian"],
        '--for: podgroup/trian: no waiting pod is in this group; did you mean "podgroup/train"?',
    ),
    "an unknown node": (["--empty", "--node", "n9"], "--node n9: there is no such node"),
    "nodes of another question": (["--fix", "--node", "n1"], "needs --empty"),
    "no moves": (["--fix", "--max-moves", "0"], "0; want 1 to 100000"),
    "a time limit without an execution": (["--fix", "--timeout", "9"], "Invalid value for --timeout: needs --apply"),
    "a file to apply to": (["--fix", "--apply"], "changes a live cluster, but -f reads a file; keep one of them"),
}


@pytest.mark.parametrize("case", INVALID)
def test_invalid_input_is_one_line(extender: Run, cluster: str, case: str) -> None:
    flags, message = INVALID[case]
    status, out, err = extender("rebalance", "-f", cluster, *flags)
    assert (status, out) == (2, "")
    assert message in err


@pytest.mark.parametrize("question", [["--fix"], ["--empty"]])
def test_an_empty_cluster_has_no_plan(extender: Run, tmp_path: Path, question: list[str]) -> None:
    path = tmp_path / "c.json"
    path.write_text(as_list([budget("other", {"app": "other"}, 0)]))
    status, out, err = extender("rebalance", "-f", str(path), *question)
    assert (status, err) == (0, "")
    assert out in {"No node can be emptied.\n", "No pod's node violates its taints, affinity or spread.\n"}
