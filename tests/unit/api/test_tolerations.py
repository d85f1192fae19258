"""Matching of tolerations and taints."""

import pytest

from extender.api.kinds.affinity import Toleration
from extender.api.kinds.node import Taint
from extender.api.tolerations import find_untolerated_taint, tolerates

GPU = Taint(key="gpu", value="a100", effect="NoSchedule")

CASES = {
    "no fields match an empty value only": (Toleration(), GPU, False),
    "no fields match any key with an empty value": (Toleration(), Taint(key="x", effect="NoExecute"), True),
    "Exists without key tolerates every taint": (Toleration(operator="Exists"), GPU, True),
    "Exists with the key ignores the value": (Toleration(key="gpu", operator="Exists"), GPU, True),
    "Exists with another key": (Toleration(key="cpu", operator="Exists"), GPU, False),
    "an empty operator means Equal": (Toleration(key="gpu", value="a100"), GPU, True),
    "Equal with another value": (Toleration(key="gpu", operator="Equal", value="h100"), GPU, False),
    "the same effect": (Toleration(key="gpu", value="a100", effect="NoSchedule"), GPU, True),
    "another effect": (Toleration(key="gpu", value="a100", effect="NoExecute"), GPU, False),
    "an unknown operator": (Toleration(key="gpu", operator="Like", value="a100"), GPU, False),
}


@pytest.mark.parametrize(("toleration", "taint", "tolerated"), CASES.values(), ids=CASES.keys())
def test_a_toleration_tolerates_a_taint_or_not(toleration: Toleration, taint: Taint, tolerated: bool) -> None:
    assert tolerates(toleration, taint) is tolerated


COMPARISONS = {
    "Gt tolerates a greater taint": ("Gt", "5", "6", True),
    "Gt does not tolerate an equal taint": ("Gt", "5", "5", False),
    "Lt tolerates a lesser taint": ("Lt", "5", "-6", True),
    "Lt does not tolerate an equal taint": ("Lt", "5", "5", False),
    "leading zeros are invalid": ("Gt", "5", "06", False),
    "a plus sign is invalid": ("Gt", "+5", "6", False),
    "minus zero is invalid": ("Gt", "-0", "6", False),
    "zero is valid": ("Gt", "0", "6", True),
    "words are invalid": ("Gt", "5", "six", False),
    "a number beyond int64 is invalid": ("Gt", "5", "9223372036854775808", False),
}


@pytest.mark.parametrize(("operator", "limit", "actual", "tolerated"), COMPARISONS.values(), ids=COMPARISONS.keys())
def test_comparison_operators_compare_integers(operator: str, limit: str, actual: str, tolerated: bool) -> None:
    toleration = Toleration(key="sla", operator=operator, value=limit)
    taint = Taint(key="sla", value=actual, effect="NoSchedule")
    assert tolerates(toleration, taint, comparison_operators=True) is tolerated


def test_disabled_comparison_operators_tolerate_nothing() -> None:
    toleration = Toleration(key="sla", operator="Gt", value="5")
    assert not tolerates(toleration, Taint(key="sla", value="6", effect="NoSchedule"))


def test_the_first_untolerated_taint_is_found() -> None:
    soft = Taint(key="soft", effect="PreferNoSchedule")
    first = Taint(key="first", effect="NoExecute")
    second = Taint(key="second", effect="NoSchedule")
    taints = (soft, GPU, first, second)
    gpu = Toleration(key="gpu", operator="Exists")
    assert find_untolerated_taint(taints, (gpu,)) is first
    assert find_untolerated_taint(taints, (gpu,), {"PreferNoSchedule"}) is soft
    assert find_untolerated_taint(taints, (Toleration(operator="Exists"),)) is None
    assert find_untolerated_taint((), ()) is None


def test_comparison_operators_apply_to_untolerated_taints() -> None:
    taint = Taint(key="sla", value="6", effect="NoSchedule")
    above = (Toleration(key="sla", operator="Gt", value="5"),)
    assert find_untolerated_taint((taint,), above) is taint
    assert find_untolerated_taint((taint,), above, comparison_operators=True) is None
