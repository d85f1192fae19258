"""Answers about pods that the puzzles do not cover: groups, namespaces, complete answers and wrong questions."""

import asyncio
from collections.abc import Callable

import pytest
import yaml

from extender.analysis.recorded_cluster import parse_recording
from extender.app import wiring
from extender.cli.mcp.answer_pages import QuestionError
from extender.cli.mcp.loaded_cluster import LoadedCluster
from extender.cli.mcp.pod_questions import answer_all_waiting, answer_why_here, answer_why_waiting
from extender.cli.recording_options import Cluster
from tests.unit.planning.clusters import as_list, node, pod


def load(*objects: dict[str, object]) -> LoadedCluster:
    return LoadedCluster(Cluster(parse_recording(as_list(objects).encode(), "test"), wiring.build_setup()))


def test_alike_pods_are_one_group() -> None:
    loaded = load(node("n1", "2"), *(pod(f"big-{number}", "4") for number in range(46)), pod("fits", "1"))
    assert answer_all_waiting(loaded, "", 1).splitlines() == [
        "47 pods waiting, in 2 groups of alike pods",
        "",
        "default/big-0 and 45 more like it",
        "  0/1 nodes are available: 1 Insufficient cpu. preemption: 0/1 nodes are"
        " available: 1 Preemption is not helpful for scheduling.",
        "  reason codes: InsufficientCPU",
        "",
        "default/fits",
        "  would fit now",
    ]


def test_many_groups_have_pages() -> None:
    loaded = load(node("n1", "2"), *(pod(f"p{number}", f"{number + 4}") for number in range(9)))
    assert answer_all_waiting(loaded, "", 1).endswith("(page 1 of 2; call the tool again with page=2 for more)\n")
    assert answer_all_waiting(loaded, "", 2).endswith("(page 2 of 2)\n")
    with pytest.raises(QuestionError, match="page 3: the answer has 2 pages; want 1 to 2"):
        answer_all_waiting(loaded, "", 3)


def test_a_namespace_without_waiting_pods_says_so() -> None:
    loaded = load(node("n1", "2"), pod("big", "4"))
    assert answer_all_waiting(loaded, "shop", 1) == "No pod waits in namespace shop.\n"
    assert answer_all_waiting(loaded, "default", 1).startswith("1 pod waiting in namespace default")


def test_the_complete_answer_has_each_node() -> None:
    loaded = load(node("n1", "2"), node("n2", "2"), pod("big", "4"), pod("a", "1", on="n1"))
    waiting = yaml.safe_load(answer_why_waiting(loaded, "big", "", full=True))["default/big"]
    assert waiting["nodes"]["n2"]["firstFailure"]["reasonCodes"] == ["InsufficientCPU"]
    here = yaml.safe_load(answer_why_here(loaded, "a", "", full=True))["default/a"]
    assert here["assigned"]["node"] == "n1"


def test_the_pods_of_a_workload_are_meant_by_its_name() -> None:
    waiting = load(node("n1", "2"), pod("web-1", "1", on="n1"), pod("web-2", "4"), pod("web-3", "4"))
    assert "Pod default/web-2" in answer_why_waiting(waiting, "replicaset/web", "", full=False)
    placed = load(node("n1", "2"), pod("web-1", "1", on="n1"))
    assert "Pod default/web-1" in answer_why_here(placed, "replicaset/web", "", full=False)


def test_a_question_about_the_other_kind_of_pod_names_the_right_tool() -> None:
    loaded = load(node("n1", "2"), pod("a", "1", on="n1"), pod("b", "4"))
    with pytest.raises(QuestionError, match="a has a node, it does not wait; ask why_here"):
        answer_why_waiting(loaded, "a", "", full=False)
    with pytest.raises(QuestionError, match="b has no node; ask why_waiting"):
        answer_why_here(loaded, "b", "", full=False)


@pytest.mark.parametrize(
    "ask",
    [
        lambda loaded: answer_all_waiting(loaded, "", 1),
        lambda loaded: answer_why_waiting(loaded, "waits", "", full=False),
        lambda loaded: answer_why_here(loaded, "placed", "", full=True),
    ],
    ids=["all waiting", "why waiting", "why here"],
)
def test_a_cancelled_question_about_pods_ends(ask: Callable[[LoadedCluster], str]) -> None:
    def raise_cancelled() -> None:
        raise asyncio.CancelledError

    loaded = load(node("n1", "2"), pod("placed", "1", on="n1"), pod("waits", "4"))
    loaded.check_cancelled = raise_cancelled
    with pytest.raises(asyncio.CancelledError):
        ask(loaded)
