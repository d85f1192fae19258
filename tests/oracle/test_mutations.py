"""The mutated scenarios: reproducible, unlike the recorded ones, and accepted by extender."""

import json
from collections import Counter

from tests.oracle.answers import ask_extender
from tests.oracle.mutations import mutate_recorded_scenario
from tests.parity.golden import list_all_scenarios, read_scenario


def test_a_seed_and_a_number_always_make_the_same_scenario() -> None:
    texts = [json.dumps(mutate_recorded_scenario(seed, number)) for seed, number in (("a", 3), ("a", 3), ("b", 3))]
    assert texts[0] == texts[1] != texts[2]


def test_objects_have_values_that_no_recorded_scenario_has_for_them() -> None:
    recorded = {
        json.dumps(item, sort_keys=True)
        for name in list_all_scenarios()
        for item in json.loads(read_scenario(name))["items"]
    }
    counts: Counter[str] = Counter()
    for number in range(20):
        for item in mutate_recorded_scenario("a", number)["items"]:
            counts[item["kind"]] += json.dumps(item, sort_keys=True) not in recorded
    assert min(counts["Node"], counts["Pod"], counts["ResourceClaim"], counts["ResourceSlice"]) >= 5


def test_no_two_objects_of_a_kind_have_one_name() -> None:
    for number in range(20):
        items = mutate_recorded_scenario("a", number)["items"]
        keys = Counter((item["kind"], item["metadata"].get("namespace"), item["metadata"]["name"]) for item in items)
        assert [key for key, count in keys.items() if count > 1] == []


def test_extender_finds_and_refuses_nodes_for_the_pods() -> None:
    fitting = refused = 0
    for number in range(10):
        for result in ask_extender(mutate_recorded_scenario("a", number), "1.37")["pods"].values():
            fitting += bool(result["feasible"])
            refused += sum(bool(node["filters"]) for node in result["nodes"].values())
    assert fitting >= 5
    assert refused >= 5
