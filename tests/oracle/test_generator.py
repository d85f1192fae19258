"""The random scenarios: reproducible, of all categories, and full of decisions that differ from pod to pod."""

import json
from collections import Counter
from itertools import count, islice
from typing import Any

import pytest

from extender.cli.recording_options import parse_gates_of_release
from extender.config.feature_gates import SCHEDULING_FEATURES
from tests.oracle.answers import ask_extender
from tests.oracle.generator.flipped_gates import flip_gates
from tests.oracle.generator.scenarios import (
    CATEGORIES,
    GROUP_CATEGORIES,
    UNRECORDED_CATEGORIES,
    make_scenario,
)
from tests.parity import golden

ROUNDS = 8


def make_round(category: str) -> list[dict[str, object]]:
    """Return scenarios that are compared by pod: those with cycles have no results of pods."""
    numbers = count(list(CATEGORIES).index(category), len(CATEGORIES))
    scenarios = (make_scenario("test", number) for number in numbers)
    return list(islice((scenario for scenario in scenarios if "cycles" not in scenario), ROUNDS))


def test_a_seed_and_a_number_always_make_the_same_scenario() -> None:
    scenarios = [make_scenario("a", 13), make_scenario("a", 13), make_scenario("b", 13), make_scenario("a", 27)]
    texts = [json.dumps(scenario) for scenario in scenarios]
    assert texts[0] == texts[1]
    assert len(set(texts)) == 3


def test_the_categories_are_those_of_the_recorded_scenarios() -> None:
    recorded = {name.rpartition("-")[0] for name in golden.scenario_names(*CATEGORIES)}
    assert set(CATEGORIES) == recorded | GROUP_CATEGORIES | UNRECORDED_CATEGORIES


@pytest.mark.parametrize("number", [10, 269, 930, 1109, 1297, 1411])
def test_pods_that_have_not_started_are_on_one_node(number: int) -> None:
    """kube-scheduler reads the clock for the start time of such a pod, so that its choice between nodes is random."""
    pods = [item for item in make_scenario("x", number, "1.37")["items"] if item["kind"] == "Pod"]
    assigned = [pod for pod in pods if "nodeName" in pod["spec"]]
    assert len({pod["spec"]["nodeName"] for pod in assigned if "startTime" not in pod["status"]}) == 1


@pytest.mark.parametrize("version", ["1.36", "1.37"])
def test_flipped_gates_are_valid_and_are_all_gates(version: str) -> None:
    flipped: set[str] = set()
    for number in range(300):
        gates = flip_gates("test", number, {"items": []}, version)["featureGates"]
        parse_gates_of_release([version], [f"{name}={on}" for name, on in gates.items()])
        flipped |= gates.keys()
    assert flipped >= {"DRAPrioritizedList" if version == "1.36" else "CompositePodGroup", "SchedulerPopFromBackoffQ"}
    assert len(flipped & SCHEDULING_FEATURES) >= 24


@pytest.mark.parametrize("category", CATEGORIES)
def test_no_two_objects_of_a_kind_have_one_name(category: str) -> None:
    for scenario in make_round(category):
        items: list[dict[str, dict[str, str]]] = scenario["items"]  # type: ignore[assignment]
        keys = Counter(
            (str(item["kind"]), item["metadata"].get("namespace"), item["metadata"]["name"]) for item in items
        )
        assert [key for key, count in keys.items() if count > 1] == []
        assert len({item["metadata"]["uid"] for item in items}) == len(items)


@pytest.mark.parametrize("category", sorted(CATEGORIES.keys() - GROUP_CATEGORIES))
def test_extender_accepts_the_scenarios_and_finds_and_refuses_nodes(category: str) -> None:
    """A category without a pod that fits, or without a refused node, would compare nothing."""
    fitting = refused = 0
    for scenario in make_round(category):
        for result in ask_extender(scenario, "1.36")["pods"].values():
            fitting += bool(result["feasible"])
            refused += sum(bool(node["filters"]) for node in result["nodes"].values())
    assert fitting >= 5
    assert refused >= 5


@pytest.mark.parametrize("version", ["1.36", "1.37"])
def test_pod_groups_are_scheduled_rejected_and_held_and_wait_for_preemption(version: str) -> None:
    numbers = [number for number in range(500) if list(CATEGORIES)[number % len(CATEGORIES)] in GROUP_CATEGORIES]
    counts: Counter[str] = Counter()
    for number in numbers:
        for group in ask_extender(make_scenario("test", number, version), version)["podGroups"].values():
            members = group["members"].values()
            counts["scheduled"] += group["scheduled"]
            counts["waits for preemption"] += group["waitsForPreemption"]
            counts["rejected"] += not (group["scheduled"] or group["waitsForPreemption"]) and bool(group["message"])
            counts["held"] += any(member["preEnqueue"] for member in members)
            counts["victims"] += bool(group["victims"])
    assert set(counts) == {"scheduled", "waits for preemption", "rejected", "held", "victims"}
    assert min(counts.values()) >= 3, counts


@pytest.mark.parametrize(
    ("version", "words"),
    [
        ("1.36", ("DRADeviceTaints", "NodeDeclaredFeatures", "postFilter")),
        (
            "1.37",
            (
                "DRAFractionalCapacityRange",
                "podGroupPostFilter",
                "InterPodAffinityHostnameFastPath",
                "bindMountOptions",
                "DeviceTaintRule",
                "nodeAllocatableResources",
                "capacityMultiplier",
                "[true]",
                "versions",
                "perContainer",
                "nodeAllocatableResourceClaimStatuses",
            ),
        ),
    ],
)
def test_some_scenarios_have_rare_fields_gates_and_configurations(version: str, words: tuple[str, ...]) -> None:
    text = "".join(json.dumps(make_scenario("test", number, version)) for number in range(1100))
    of_all = (
        "PodResizeInProgress",
        "initContainerStatuses",
        "failure-domain.beta.kubernetes.io/zone",
        "ReplicationController",
        "disruptedPods",
        "cinder",
        "VolumeAttachment",
        "volume.kubernetes.io/selected-node",
        "perDeviceNodeSelection",
        "deviceclass.resource.kubernetes.io/gpu",
        "rare-pool-2",
        "resource.kubernetes.io/extended-resource-claim",
        "extendedResourceClaimStatus",
        "TaintTolerationComparisonOperators",
        "preScore",
        "preFilter",
        "RestartAllContainers",
        "deleted-node",
        "equal-12",
        "placementScore",
        "1500.5Mi",
        "-9223372036854775808",
        "mismatchLabelKeys",
    )
    assert [word for word in (*of_all, *words) if f'"{word}"' not in text] == []


def test_some_scenarios_score_extended_resources_of_classes_and_slices_of_all_kinds() -> None:
    texts = [json.dumps(make_scenario("test", number)) for number in range(1000)]
    words = ("extendedResourceName", "perDeviceNodeSelection", "NodeResourcesBalancedAllocationArgs")
    assert sum(all(f'"{word}"' in text for word in words) for text in texts) >= 2


def test_some_scenarios_have_prebound_volumes_preempted_pods_fractions_and_counters_in_conflict() -> None:
    counts: Counter[str] = Counter()
    for number in range(1000):
        scenario = make_scenario("test", number, "1.37")
        items = scenario["items"]
        unbound = {
            (item["metadata"]["namespace"], item["metadata"]["name"])
            for item in items
            if item["kind"] == "PersistentVolumeClaim" and "volumeName" not in item["spec"]
        }
        references = [item["spec"].get("claimRef", {}) for item in items if item["kind"] == "PersistentVolume"]
        counts["prebound"] += any((each.get("namespace"), each.get("name")) in unbound for each in references)
        text = json.dumps(scenario)
        for word in ("EvictionByEvictionAPI", "counters-again", "2500m", '"migrated"', "/healthy"):
            counts[word] += word in text
        counts["fractional"] += '"DRAFractionalCapacityRange": true' in text
    assert len(counts) == 7
    assert min(counts.values()) >= 1, counts


def test_some_scenarios_have_cycles_with_profiles_nominations_and_extenders_of_all_verbs() -> None:
    counts: Counter[str] = Counter()
    for number in range(500):
        scenario = make_scenario("test", number)
        if "cycles" not in scenario:
            continue
        counts["several profiles"] += len(scenario["config"]["profiles"]) > 1
        counts["sequence"] += "sequence" in scenario["cycles"]
        for cycle in ask_extender(scenario, "1.36")["cycles"].values():
            counts["node"] += bool(cycle["node"])
            counts["victims"] += bool(cycle["victims"])
            counts["held"] += cycle["held"]
            counts["rejected by an extender"] += "Extender" in cycle["rejectors"]
            counts["error of an extender"] += "with extender at URL" in (cycle["message"] or "")
    assert len(counts) == 7
    assert min(counts.values()) >= 1, counts


def make_volume_scenarios(count: int) -> list[dict[str, Any]]:
    first, step = list(CATEGORIES).index("volumes"), len(CATEGORIES)
    return [make_scenario("test", first + turn * step) for turn in range(count)]


def test_no_two_volumes_refer_to_one_unbound_claim() -> None:
    """kube-scheduler takes any of them."""
    for scenario in make_volume_scenarios(100):
        specs = [item["spec"] for item in scenario["items"] if item["kind"] == "PersistentVolume"]
        references = [spec["claimRef"] for spec in specs if "claimRef" in spec]
        claims = [f"{reference['namespace']}/{reference['name']}" for reference in references]
        assert len(claims) == len(set(claims)), scenario["metadata"]


def test_pods_require_at_most_one_driver_on_their_node() -> None:
    """kube-scheduler names any of several missing drivers."""
    counts = [
        json.dumps(scenario["items"]).count("preventPodSchedulingIfMissing") for scenario in make_volume_scenarios(500)
    ]
    assert set(counts) == {0, 1}
