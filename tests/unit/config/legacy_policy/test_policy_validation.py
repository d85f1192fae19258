"""Validation of a Policy with the messages of the releases that had it."""

from typing import Any

import pytest

from extender.config.legacy_policy import policy_document
from extender.config.legacy_policy.policy_validation import validate_policy

RATIO = {"requestedToCapacityRatioArguments": {"shape": [{"utilization": 0, "score": 1}]}}


def validation_errors(**fields: Any) -> list[str]:
    policy = policy_document.decode_document({"kind": "Policy", "apiVersion": "v1", **fields}, "f", []).policy
    return [str(error) for error in validate_policy(policy)]


def priority(name: str, weight: int = 1, **argument: Any) -> dict[str, Any]:
    return {"name": name, "weight": weight, **({"argument": argument} if argument else {})}


CASES: dict[str, tuple[dict[str, Any], list[str]]] = {
    "an unknown predicate with a suggestion": (
        {"predicates": [{"name": "PodFitsResource"}]},
        [
            'predicates[0].name: predicate type not found for "PodFitsResource"; did you mean "PodFitsResources"?',
        ],
    ),
    "an unknown priority": (
        {"priorities": [priority("Best")]},
        ['priorities[0].name: priority type not found for "Best"'],
    ),
    "two arguments of a predicate": (
        {"predicates": [{"name": "A", "argument": {"serviceAffinity": {}, "labelsPresence": {}}}]},
        ["predicates[0].argument: exactly 1 predicate argument is required, numArgs: 2, predicate A"],
    ),
    "an empty argument of a predicate": (
        {"predicates": [{"name": "HostName", "argument": {}}]},
        ["predicates[0].argument: exactly 1 predicate argument is required, numArgs: 0, predicate HostName"],
    ),
    "two arguments of a priority": (
        {"priorities": [priority("A", labelPreference={"label": "x"}, serviceAntiAffinity={"label": "y"})]},
        ["priorities[0].argument: exactly 1 priority argument is required, numArgs: 2, priority A"],
    ),
    "a weight of 0, a negative one, and one above int32": (
        {"priorities": [priority("EqualPriority", weight) for weight in (0, -1, 2**31)]},
        [
            f"priorities[{index}].weight: "
            "Priority EqualPriority should have a positive weight applied to it or it has overflown"
            for index in range(3)
        ],
    ),
    "label preferences of different weights": (
        {"priorities": [priority("A", 1, labelPreference={"label": "x"}), priority("B", 2, labelPreference={})]},
        ['priorities[1].weight: LabelPreference priority "B" has a different weight with "A"'],
    ),
    "service anti-affinities of different weights": (
        {"priorities": [priority("A", 3, serviceAntiAffinity={}), priority("B", 2, serviceAntiAffinity={})]},
        ['priorities[1].weight: ServiceAntiAffinity priority "B" has a different weight with "A"'],
    ),
    "two requested-to-capacity ratios": (
        {"priorities": [priority("A", **dict[str, Any](RATIO)), priority("B", **dict[str, Any](RATIO))]},
        ['priorities[1].argument: priority "B" redeclares custom priority "RequestedToCapacityRatio", from: "A"'],
    ),
    "an extender that prioritizes without a weight": (
        {"extenders": [{"urlPrefix": "http://x", "prioritizeVerb": "p"}]},
        ["extenders[0].weight: Priority for extender http://x should have a positive weight applied to it"],
    ),
    "two extenders that bind": (
        {"extenders": [{"bindVerb": "b"}, {"bindVerb": "c"}]},
        ["extenders: Only one extender can implement bind, found 2"],
    ),
    "a resource that two extenders manage": (
        {"extenders": [{"managedResources": [{"name": "example.com/a"}]}] * 2},
        ["extenders[1].managedResources[0].name: Duplicate extender managed resource name example.com/a"],
    ),
    "an invalid resource name": (
        {"extenders": [{"managedResources": [{"name": "kubernetes.io/a"}]}]},
        ["extenders[0].managedResources[0].name: kubernetes.io/a is an invalid extended resource name"],
    ),
    "a hard pod affinity weight out of range": (
        {"hardPodAffinitySymmetricWeight": 101},
        ["hardPodAffinitySymmetricWeight: Invalid hardPodAffinitySymmetricWeight: 101, must be in the range 1-100"],
    ),
    "a valid policy": (
        {
            "predicates": [{"name": "Custom", "argument": {"labelsPresence": {"labels": ["x"]}}}, {"name": "HostName"}],
            "priorities": [
                priority("A", 2, labelPreference={"label": "x"}),
                priority("B", 2, labelPreference={"label": "y"}),
                priority("C", 3, serviceAntiAffinity={"label": "y"}),
                priority("D", 2**31 - 1, **dict[str, Any](RATIO)),
            ],
            "hardPodAffinitySymmetricWeight": 100,
        },
        [],
    ),
}


@pytest.mark.parametrize(("fields", "expected"), CASES.values(), ids=CASES)
def test_a_policy_has_validation_errors(fields: dict[str, Any], expected: list[str]) -> None:
    assert validation_errors(**fields) == expected


def test_all_errors_are_reported_together() -> None:
    assert len(validation_errors(predicates=[{"name": "A"}], priorities=[priority("B", 0)])) == 3
