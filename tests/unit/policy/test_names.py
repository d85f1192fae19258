"""Every predicate and priority by its old name, alone in a Policy, on the small cluster of its case."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
import yaml

from extender import wiring
from extender.cluster.state import ClusterState
from extender.decide.feasible import feasible
from extender.decide.rank import rank
from extender.policy.names import EQUAL, PREDICATE_ALIASES, PREDICATES, PRIORITIES, PRIORITY_ALIASES
from tests.build import a_cluster, a_node, a_pod, an_object

CASES = Path(__file__).resolve().parents[2] / "cases" / "legacy"
FILTERING: Mapping[str, Any] = yaml.safe_load((CASES / "predicates.yaml").read_text())
RATING: Mapping[str, Any] = yaml.safe_load((CASES / "priorities.yaml").read_text())


def cluster_of(case: Mapping[str, Any]) -> ClusterState:
    nodes = [a_node(name, **args) for name, args in case["nodes"].items()]
    placed = [
        a_pod(**{"name": f"{name}-{index}", **args}, node=name)
        for name, pods in case.get("placed", {}).items()
        for index, args in enumerate(pods)
    ]
    return a_cluster(*nodes, *placed, *map(an_object, case.get("objects", ())))


def entry(name: str, case: Mapping[str, Any], **more: Any) -> dict[str, Any]:
    return {"name": name, **more, **({"argument": case["argument"]} if "argument" in case else {})}


def scheduling(**fields: Any) -> wiring.Scheduling:
    body = {"kind": "Policy", "apiVersion": "v1", "predicates": [], "priorities": [], **fields}
    return wiring.from_builtins(body, "policy")


@pytest.mark.parametrize("name", FILTERING)
def test_a_predicate_refuses_what_its_case_says(name: str) -> None:
    case = FILTERING[name]
    cluster = cluster_of(case).snapshot()
    profile = scheduling(predicates=[entry(name, case)]).first
    found = feasible(
        cluster.query(a_pod(**{"name": "asks", **case.get("pod", {})})), cluster, profile, wiring.engine(), reasons=True
    )
    refused: dict[str, list[str]] = {}
    for refusal in found.refusals:
        for row in refusal.nodes.nonzero()[0]:
            refused.setdefault(cluster.names[row], []).append(refusal.reason.text)
    assert {node: sorted(texts) for node, texts in refused.items()} == case["refused"]
    assert sorted(cluster.names[row] for row in found.feasible.nonzero()[0]) == sorted(case["nodes"].keys() - refused)
    assert refused
    assert found.feasible.any()


@pytest.mark.parametrize("name", RATING)
def test_a_priority_rates_as_its_case_says(name: str) -> None:
    case = RATING[name]
    cluster = cluster_of(case).snapshot()
    profile = scheduling(priorities=[entry(name, case, weight=1)]).first
    query, engine = cluster.query(a_pod(**{"name": "asks", **case.get("pod", {})})), wiring.engine()
    found = feasible(query, cluster, profile, engine)
    assert found.feasible.all()
    ranking = rank(query, cluster, profile, engine, found.feasible, found.before)
    assert ranking.error is None
    assert dict(zip(cluster.names, ranking.totals.tolist(), strict=True)) == case["scores"]


def test_every_name_has_a_case() -> None:
    assert {*PREDICATES, *PREDICATE_ALIASES} <= FILTERING.keys()
    assert {*PRIORITIES, *PRIORITY_ALIASES, EQUAL} <= RATING.keys()
    assert all(case["row"] for case in (*FILTERING.values(), *RATING.values()))


def test_the_cases_of_priorities_have_three_scores_where_the_rule_has_as_many() -> None:
    fewer = {name: len(scores) for name, case in RATING.items() if len(scores := {*case["scores"].values()}) < 3}
    assert fewer == {
        "EqualPriority": 1,
        "NodePreferAvoidPodsPriority": 2,
        "ResourceLimitsPriority": 2,
        "LabelPreference": 2,
    }


def test_one_sample_names_every_predicate_and_priority_and_has_every_argument() -> None:
    sample = yaml.safe_load((CASES.parent / "policy" / "every-name.yaml").read_text())
    entries = [*sample["predicates"], *sample["priorities"]]
    arguments = {kind for entry in entries for kind in entry.get("argument", {})}
    assert arguments == {
        "labelPreference",
        "labelsPresence",
        "requestedToCapacityRatioArguments",
        "serviceAffinity",
        "serviceAntiAffinity",
    }
    assert {*PREDICATES, *PREDICATE_ALIASES, *PRIORITIES, *PRIORITY_ALIASES, EQUAL} - {
        each["name"] for each in entries
    } == set()
