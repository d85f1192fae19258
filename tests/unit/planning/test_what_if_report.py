"""The report of a scenario, as text and plain values."""

from typing import Any

from extender.answers.planning import ScenarioOutcome
from extender.app import wiring
from extender.planning.scenario import AddedNodes, Scale, Scenario
from extender.planning.what_if import WhatIfRunner
from extender.planning.what_if_report import format_what_if, make_what_if_values
from tests.unit.planning.clusters import SETUP, budget, make_cache, node, pod

WEB = {"app": "web"}
CLUSTER = (
    node("n1", "4"),
    node("n2", "2"),
    pod("low", "1", on="n2", priority=1),
    pod("high", "2", on="n1", priority=9, preemptionPolicy="PreemptLowerPriority"),
    pod("single", "1", on="n1", owner=""),
    pod("waits", "50", preemptionPolicy="Never"),
)


def run(*objects: dict[str, Any], **changes: Any) -> ScenarioOutcome:
    runner = WhatIfRunner(make_cache(*objects), SETUP.profiles, wiring.make_runtime(), lambda priced: None)
    return runner.run(Scenario(**changes))


def test_the_text_has_the_differences_first() -> None:
    assert format_what_if(run(*CLUSTER, drain=("n1",), preempt=True)) == (
        "1 pod moves, 1 is left without a node, 1 is lost, 1 is evicted.\n"
        "\n"
        "Left without a node\n"
        "  1  Insufficient cpu, node(s) were unschedulable\n"
        "     default/low\n"
        "\n"
        "Lost, because no controller creates a new pod\n"
        "  default/single  on n1\n"
        "\n"
        "Evicted by preemption\n"
        "  default/low  on n2  by default/high\n"
        "\n"
        "Moves\n"
        "  default/high  from n1  to n2\n"
        "\n"
        "Totals\n"
        "                            BEFORE           AFTER\n"
        "  nodes                          2               2\n"
        "  waiting pods                   1               2\n"
        "  pods                    3 of 220   1%   1 of 220   0%\n"
        "  cpu                       4 of 6  67%     2 of 6  33%\n"
        "  memory                 0 of 64Gi   0%  0 of 64Gi   0%\n"
        "  cost                        0.00            0.00\n"
        "  nodes without a price          2               2\n"
        "\n"
        "Waiting before and after\n"
        "  1  Insufficient cpu, node(s) were unschedulable\n"
        "     default/waits\n"
    )


def test_a_pod_that_would_preempt_is_a_hint_to_the_flag() -> None:
    text = format_what_if(run(*CLUSTER, drain=("n1",)))
    assert "     would evict default/low on n2; --preempt does it\n" in text


def test_budgets_new_pods_and_removed_pods_have_their_sections() -> None:
    web = [pod(name, "1", on="n1", labels=WEB) for name in ("a", "b")]
    blocked = format_what_if(run(node("n1"), *web, budget("web", WEB, 0), drain=("n1",)))
    assert "\nNot evicted, because a budget does not allow it\n  default/a  on n1  budget default/web\n" in blocked
    lost = format_what_if(run(node("n1"), node("n2"), *web, budget("web", WEB, 0), remove=("n1",)))
    assert "\nViolated budgets\n  default/web  2 pods too many  default/a, default/b\n" in lost
    scaled = format_what_if(run(node("n1"), *web, scale=(Scale("replicaset", "default", "web", 1),)))
    assert scaled.startswith("1 pod is removed.\n\nRemoved by --scale\n  default/a\n")
    added = format_what_if(run(node("n1", "1"), pod("c", "1"), pod("d", "1"), add=(AddedNodes(1, "n1"),)))
    assert added.startswith("2 pods are placed.\n\nPlaced\n  default/c  on n1")


def test_long_lists_are_shortened() -> None:
    pods = [pod(f"p{number:02}", "100m", on="n1") for number in range(12)]
    text = format_what_if(run(node("n1"), node("n2"), *pods, drain=("n1",)))
    assert text.startswith("12 pods move.\n\nMoves\n  default/p00  from n1  to n2\n")
    assert "\n  default/p09  from n1  to n2\n  and 2 more\n" in text
    waiting = format_what_if(run(node("n1"), *pods, drain=("n1",)))
    assert "  12  node(s) were unschedulable\n      default/p00, default/p01, default/p02 and 9 more\n" in waiting


def test_a_change_without_effect_says_so() -> None:
    assert format_what_if(run(node("n1"), cordon=("n1",))).startswith(
        "No pod moves, and none is left without a node.\n\nTotals\n"
    )


def test_the_values_have_all_details_under_stable_keys() -> None:
    values = make_what_if_values(run(*CLUSTER, drain=("n1",), preempt=True))
    assert list(values) == [
        "moved", "waiting", "evicted", "lost", "blocked", "violatedBudgets", "removed", "before", "after",
    ]  # fmt: skip
    assert values["moved"] == [{"pod": "default/high", "from": "n1", "to": "n2"}]
    assert values["evicted"] == [{"pod": "default/low", "node": "n2", "by": "default/high", "violatedBudgets": []}]
    assert values["lost"] == [{"pod": "default/single", "node": "n1"}]
    assert [(entry["pod"], entry["from"], entry["wasWaiting"]) for entry in values["waiting"]] == [
        ("default/low", "n2", False),
        ("default/waits", None, True),
    ]
    assert values["waiting"][0]["reasons"] == ["Insufficient cpu", "node(s) were unschedulable"]
    assert values["waiting"][0]["message"].startswith("0/2 nodes are available: 1 Insufficient cpu, ")
    assert (values["before"]["waiting"], values["after"]["waiting"]) == (1, 2)
    hint = make_what_if_values(run(*CLUSTER, drain=("n1",)))["waiting"][0]
    assert hint["preemption"] == {"node": "n2", "victims": ["default/low"]}
