"""What a Policy may not say, each fault in the words of the releases that read Policies."""

from typing import Any

import pytest

from extender.config.faults import ConfigError
from extender.policy import document
from extender.policy.providers import provider
from extender.policy.validate import validate

RATIO = {"requestedToCapacityRatioArguments": {"shape": [{"utilization": 0, "score": 1}]}}


def faults(**fields: Any) -> list[str]:
    policy = document.from_builtins({"kind": "Policy", "apiVersion": "v1", **fields}, "f").policy
    return [str(fault) for fault in validate(policy)]


def priority(name: str, weight: int = 1, **argument: Any) -> dict[str, Any]:
    return {"name": name, "weight": weight, **({"argument": argument} if argument else {})}


CASES: dict[str, tuple[dict[str, Any], list[str]]] = {
    "an unknown predicate, with the one that is meant": (
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
    "an argument of a predicate with nothing in it": (
        {"predicates": [{"name": "HostName", "argument": {}}]},
        ["predicates[0].argument: exactly 1 predicate argument is required, numArgs: 0, predicate HostName"],
    ),
    "two arguments of a priority": (
        {"priorities": [priority("A", labelPreference={"label": "x"}, serviceAntiAffinity={"label": "y"})]},
        ["priorities[0].argument: exactly 1 priority argument is required, numArgs: 2, priority A"],
    ),
    "a weight of 0, one below, and one that cannot be held": (
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
    "two ratios": (
        {"priorities": [priority("A", **RATIO), priority("B", **RATIO)]},
        ['priorities[1].argument: priority "B" redeclares custom priority "RequestedToCapacityRatio", from: "A"'],
    ),
    "an extender that rates without a weight": (
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
    "a resource that is none": (
        {"extenders": [{"managedResources": [{"name": "kubernetes.io/a"}]}]},
        ["extenders[0].managedResources[0].name: kubernetes.io/a is an invalid extended resource name"],
    ),
    "a weight of hard affinity out of range": (
        {"hardPodAffinitySymmetricWeight": 101},
        ["hardPodAffinitySymmetricWeight: Invalid hardPodAffinitySymmetricWeight: 101, must be in the range 1-100"],
    ),
    "what is right": (
        {
            "predicates": [{"name": "Mine", "argument": {"labelsPresence": {"labels": ["x"]}}}, {"name": "HostName"}],
            "priorities": [
                priority("A", 2, labelPreference={"label": "x"}),
                priority("B", 2, labelPreference={"label": "y"}),
                priority("C", 3, serviceAntiAffinity={"label": "y"}),
                priority("D", 2**31 - 1, **RATIO),
            ],
            "hardPodAffinitySymmetricWeight": 100,
        },
        [],
    ),
}


@pytest.mark.parametrize(("fields", "wanted"), CASES.values(), ids=CASES)
def test_a_policy_is_refused_for(fields: dict[str, Any], wanted: list[str]) -> None:
    """C077 to C080, C097."""
    assert faults(**fields) == wanted


def test_all_faults_are_told_at_once() -> None:
    assert len(faults(predicates=[{"name": "A"}], priorities=[priority("B", 0)])) == 3


def test_an_unknown_provider_is_told_with_those_there_are() -> None:
    """C010, C070."""
    with pytest.raises(ConfigError) as caught:
        provider("DefaultProvder")
    assert str(caught.value) == (
        'couldn\'t create scheduler using provider "DefaultProvder": algorithm provider "DefaultProvder" is not '
        'registered: want ClusterAutoscalerProvider | DefaultProvider; did you mean "DefaultProvider"?'
    )
