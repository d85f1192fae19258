"""Answers about the cluster that the puzzles do not cover: new pods with claims, complete answers, wrong questions."""

import asyncio
import json

import pytest
import yaml

from extender.analysis.recorded_cluster import parse_recording
from extender.app import wiring
from extender.cli.mcp import cluster_questions
from extender.cli.mcp.answer_pages import QuestionError
from extender.cli.mcp.cluster_questions import (
    TimeLimitError,
    answer_fits,
    answer_rebalance,
    answer_summary,
    answer_what_if,
)
from extender.cli.mcp.loaded_cluster import LoadedCluster
from extender.cli.planning.scenario_input import ScenarioFlags
from extender.cli.recording_options import Cluster
from tests.unit.planning.clusters import NO_REPLICA_SETS, as_list, node, pod


def load(*objects: dict[str, object]) -> LoadedCluster:
    return LoadedCluster(Cluster(parse_recording(as_list(objects).encode(), "test"), wiring.build_setup()))


@pytest.fixture
def loaded() -> LoadedCluster:
    return load(node("n1", "4"), node("n2", "4"), pod("a", "3", on="n1"), pod("b", "2"), NO_REPLICA_SETS)


def test_the_summary_has_nodes_pods_use_and_the_fullest_nodes(loaded: LoadedCluster) -> None:
    assert answer_summary(loaded).splitlines() == [
        "2 nodes, 0 cordoned",
        "1 pod on nodes, 1 waiting in 1 group of alike pods (why_waiting)",
        "scheduler: default-scheduler, rules of Kubernetes 1.37",
        "",
        "Requested in the cluster",
        "  RESOURCE  REQUESTED         OF",
        "  pods              1   0%   220",
        "  cpu               3  38%     8",
        "  memory            0   0%  64Gi",
        "",
        "Nodes, the fullest first",
        "  n1: 75% of its scarcest resource, 1 pod",
        "  n2: 0% of its scarcest resource, 0 pods",
    ]


def test_new_pods_are_placed_and_the_next_question_does_not_see_them(loaded: LoadedCluster) -> None:
    manifest = as_list([pod("new", "2", owner="")])
    answer = answer_what_if(loaded, ScenarioFlags(replicas=3), manifest, full=False)
    assert "are left without a node" in answer
    assert "default/new-0" in answer
    again = yaml.safe_load(answer_what_if(loaded, ScenarioFlags(cordon=["n1"]), "", full=True))
    assert (again["kind"], again["before"]["pods"], [moved["pod"] for moved in again["moved"]]) == (
        "WhatIf", 1, ["default/b"]
    )  # fmt: skip


def test_objects_of_a_manifest_are_seen_only_by_its_question(loaded: LoadedCluster) -> None:
    claim = {"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": {"name": "data", "namespace": "default"}}
    volumes = [{"name": "data", "persistentVolumeClaim": {"claimName": "data"}}]
    db = pod("db", "1", owner="", volumes=volumes)
    with_claim = answer_fits(loaded, as_list([db, claim]), "", "", limit=10, full=False)
    without = answer_fits(loaded, as_list([db]), "", "", limit=10, full=False)
    assert "unbound immediate PersistentVolumeClaims" in with_claim
    assert 'persistentvolumeclaim "data" not found' in without


def test_several_pods_give_a_table_and_the_complete_answer_has_all(loaded: LoadedCluster) -> None:
    manifest = as_list([pod("small", "1", owner=""), pod("large", "4", owner="")])
    assert answer_fits(loaded, manifest, "", "", limit=100, full=False).splitlines()[0].split() == [
        "POD", "FITS", "LAST", "NODE", "STOPPED", "BY"
    ]  # fmt: skip
    shapes = yaml.safe_load(answer_fits(loaded, manifest, "", "", limit=100, full=True))["shapes"]
    assert [(shape["pod"], shape["fits"]) for shape in shapes] == [("default/small", 5), ("default/large", 1)]


def test_the_limit_ends_the_count(loaded: LoadedCluster) -> None:
    assert "At least 2 more copies" in answer_fits(loaded, "", "b", "", limit=2, full=False)


@pytest.mark.parametrize(("manifest", "like"), [("", ""), ("x", "b")])
def test_fits_wants_one_pod(loaded: LoadedCluster, manifest: str, like: str) -> None:
    with pytest.raises(QuestionError, match="want either a manifest, or the name of an existing pod in like"):
        answer_fits(loaded, manifest, like, "", limit=1, full=False)


def test_a_plan_lets_a_pod_run() -> None:
    loaded = load(node("n1", "4"), node("n2", "2"), pod("a", "2", on="n1"), pod("big", "4"))
    answer = answer_rebalance(loaded, "big", "", question="for", full=False)
    assert "default/a" in answer
    assert "n2" in answer
    values = yaml.safe_load(answer_rebalance(loaded, "big", "", question="for", full=True))
    assert (values["kind"], values["question"], values["moves"]) == ("Rebalance", "for", 1)
    assert json.dumps(values)


def test_a_plan_empties_nodes_or_ends_violations() -> None:
    taint = {"key": "broken", "value": "", "effect": "NoSchedule"}
    loaded = load(node("n1", "4", taints=[taint]), node("n2", "4"), pod("a", "1", on="n1"))
    assert "default/a" in answer_rebalance(loaded, "", "", question="fix", full=False)
    assert "n1" in answer_rebalance(loaded, "", "", question="empty", full=False)


def test_a_plan_for_a_pod_needs_its_name(loaded: LoadedCluster) -> None:
    with pytest.raises(QuestionError, match='the question "for" needs a pod'):
        answer_rebalance(loaded, "", "", question="for", full=False)


def test_a_change_and_a_count_that_take_too_long_end(monkeypatch: pytest.MonkeyPatch, loaded: LoadedCluster) -> None:
    monkeypatch.setattr(cluster_questions, "MAX_SECONDS", 0.0)
    with pytest.raises(TimeLimitError, match="takes more than 0 s; ask for less at once"):
        answer_what_if(loaded, ScenarioFlags(drain=["n1"]), "", full=False)
    with pytest.raises(TimeLimitError, match="takes more than 0 s"):
        answer_fits(loaded, as_list([pod("new", "1")]), "", "", limit=10, full=False)


def _raise_cancelled() -> None:
    raise asyncio.CancelledError


def test_a_cancelled_change_and_a_cancelled_count_end(loaded: LoadedCluster) -> None:
    loaded.check_cancelled = _raise_cancelled
    with pytest.raises(asyncio.CancelledError):
        answer_what_if(loaded, ScenarioFlags(drain=["n1"]), "", full=False)
    with pytest.raises(asyncio.CancelledError):
        answer_fits(loaded, as_list([pod("new", "1")]), "", "", limit=10, full=False)


@pytest.mark.parametrize("question", ["for", "empty", "fix"])
def test_a_search_for_a_plan_that_takes_too_long_is_an_error(monkeypatch: pytest.MonkeyPatch, question: str) -> None:
    """The search for violations of 30,000 pods took minutes before the first move, and other questions waited."""
    loaded = load(node("n1", "4"), node("n2", "4"), pod("a", "3", on="n1"), pod("b", "1", on="n2"), pod("big", "4"))
    monkeypatch.setattr(cluster_questions, "MAX_SECONDS", 0.0)
    with pytest.raises(TimeLimitError, match="the question takes more than 0 s; ask for less at once"):
        answer_rebalance(loaded, "big", "", question=question, full=False)


@pytest.mark.parametrize("question", ["for", "empty", "fix"])
def test_a_cancelled_search_for_a_plan_ends(question: str) -> None:
    taint = {"key": "broken", "value": "", "effect": "NoSchedule"}
    pods = pod("a", "3", on="n1"), pod("b", "1", on="n2"), pod("big", "4")
    loaded = load(node("n1", "4", taints=[taint]), node("n2", "4"), *pods)
    loaded.check_cancelled = _raise_cancelled
    with pytest.raises(asyncio.CancelledError):
        answer_rebalance(loaded, "big", "", question=question, full=False)


def test_the_answer_about_a_change_names_the_kinds_of_claims_that_are_not_recorded() -> None:
    """Otherwise the claim of the pod that waits would seem not to exist."""
    volume = {"name": "v", "persistentVolumeClaim": {"claimName": "c"}}
    loaded = load(node("n1", "4"), node("n2", "4"), pod("db", "1", on="n1", volumes=[volume]), NO_REPLICA_SETS)
    answer = answer_what_if(loaded, ScenarioFlags(remove=["n1"]), "", full=False)
    assert answer.startswith("# not recorded: persistentvolumeclaims, persistentvolumes, storageclasses; ")


def test_an_answer_with_evictions_says_that_budgets_are_not_recorded(loaded: LoadedCluster) -> None:
    note = (
        "# not recorded: poddisruptionbudgets; evictions are answered as if there were none; "
        'the command "record" records all kinds'
    )
    answers = [
        answer_what_if(loaded, ScenarioFlags(drain=["n1"]), "", full=False),
        answer_what_if(loaded, ScenarioFlags(drain=["n1"]), "", full=True),
        answer_rebalance(loaded, "", "", question="empty", full=False),
        answer_rebalance(loaded, "", "", question="empty", full=True),
        answer_what_if(loaded, ScenarioFlags(remove=["n1"]), "", full=False),
    ]
    assert [answer.partition("\n")[0] == note for answer in answers] == [True, True, True, True, False]
