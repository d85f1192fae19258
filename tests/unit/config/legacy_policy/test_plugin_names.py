"""Every predicate and priority, alone in a Policy, on the snapshot of its case."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
import yaml

from extender.app import wiring
from extender.cache.cache import Cache
from extender.config.feature_gates import FeatureGates
from extender.config.legacy_policy.plugin_names import (
    EQUAL_PRIORITY,
    PLUGIN_BY_PRIORITY,
    PLUGINS_BY_PREDICATE,
    PREDICATE_ALIASES,
    PRIORITY_ALIASES,
)
from extender.config.releases import RELEASE_1_36
from extender.cycle.diagnosis import find_nodes_that_pass_filters
from extender.cycle.score import prioritize_nodes
from tests.build import make_cluster, make_node, make_object, make_pod

CASES = Path(__file__).resolve().parents[3] / "cases" / "legacy"
PREDICATE_CASES: Mapping[str, Any] = yaml.safe_load((CASES / "predicates.yaml").read_text())
PRIORITY_CASES: Mapping[str, Any] = yaml.safe_load((CASES / "priorities.yaml").read_text())


def make_case_cluster(case: Mapping[str, Any]) -> Cache:
    nodes = [make_node(name, **args) for name, args in case["nodes"].items()]
    assigned = [
        make_pod(**{"name": f"{name}-{index}", **args}, node=name)
        for name, pods in case.get("assigned", {}).items()
        for index, args in enumerate(pods)
    ]
    return make_cluster(*nodes, *assigned, *map(make_object, case.get("objects", ())))


def make_entry(name: str, case: Mapping[str, Any], **more: Any) -> dict[str, Any]:
    return {"name": name, **more, **({"argument": case["argument"]} if "argument" in case else {})}


def make_setup(**fields: Any) -> wiring.SchedulerSetup:
    body = {"kind": "Policy", "apiVersion": "v1", "predicates": [], "priorities": [], **fields}
    return wiring.build_setup_from_document(body, "policy", FeatureGates(release=RELEASE_1_36))


@pytest.mark.parametrize("name", PREDICATE_CASES)
def test_a_predicate_rejects_the_nodes_of_its_case(name: str) -> None:
    case = PREDICATE_CASES[name]
    snapshot = make_case_cluster(case).snapshot()
    profile = make_setup(predicates=[make_entry(name, case)]).first_profile
    diagnosis = find_nodes_that_pass_filters(
        snapshot.make_pod_info(make_pod(**{"name": "incoming", **case.get("pod", {})})),
        snapshot,
        profile,
        wiring.make_runtime(),
        with_rejections=True,
    )
    rejected: dict[str, list[str]] = {}
    for rejection in diagnosis.rejections:
        for row in rejection.nodes.nonzero()[0].tolist():
            rejected.setdefault(snapshot.names[row], []).append(rejection.reason.text)
    assert {node: sorted(texts) for node, texts in rejected.items()} == case["rejected"]
    feasible = [snapshot.names[row] for row in diagnosis.feasible.nonzero()[0].tolist()]
    assert sorted(feasible) == sorted(case["nodes"].keys() - rejected)
    assert rejected
    assert diagnosis.feasible.any()


@pytest.mark.parametrize("name", PRIORITY_CASES)
def test_a_priority_gives_the_scores_of_its_case(name: str) -> None:
    case = PRIORITY_CASES[name]
    snapshot = make_case_cluster(case).snapshot()
    profile = make_setup(priorities=[make_entry(name, case, weight=1)]).first_profile
    pod_info = snapshot.make_pod_info(make_pod(**{"name": "incoming", **case.get("pod", {})}))
    runtime = wiring.make_runtime()
    diagnosis = find_nodes_that_pass_filters(pod_info, snapshot, profile, runtime)
    assert diagnosis.feasible.all()
    ranking = prioritize_nodes(pod_info, snapshot, profile, runtime, diagnosis.feasible, diagnosis.pre_filter_run)
    assert ranking.error is None
    assert dict(zip(snapshot.names, ranking.totals.tolist(), strict=True)) == case["scores"]


def test_every_name_has_a_case() -> None:
    assert {*PLUGINS_BY_PREDICATE, *PREDICATE_ALIASES} <= PREDICATE_CASES.keys()
    assert {*PLUGIN_BY_PRIORITY, *PRIORITY_ALIASES, EQUAL_PRIORITY} <= PRIORITY_CASES.keys()
    assert all(case["source"] for case in (*PREDICATE_CASES.values(), *PRIORITY_CASES.values()))


def test_priority_cases_have_three_distinct_scores_where_possible() -> None:
    fewer = {
        name: len(scores) for name, case in PRIORITY_CASES.items() if len(scores := {*case["scores"].values()}) < 3
    }
    assert fewer == {
        "EqualPriority": 1,
        "NodePreferAvoidPodsPriority": 2,
        "ResourceLimitsPriority": 2,
        "LabelPreference": 2,
    }


def test_one_sample_has_every_predicate_priority_and_argument() -> None:
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
    assert {*PLUGINS_BY_PREDICATE, *PREDICATE_ALIASES, *PLUGIN_BY_PRIORITY, *PRIORITY_ALIASES, EQUAL_PRIORITY} - {
        entry["name"] for entry in entries
    } == set()
