"""Which taints a toleration accepts: B007, B016."""

import pytest

from extender.objects.affinity import Toleration
from extender.objects.node import Taint
from extender.objects.tolerations import tolerates, untolerated

GPU = Taint(key="gpu", value="a100", effect="NoSchedule")

CASES = {
    "no fields at all mean an empty value": (Toleration(), GPU, False),
    "no fields at all accept any key with an empty value": (Toleration(), Taint(key="x", effect="NoExecute"), True),
    "Exists without key accepts everything": (Toleration(operator="Exists"), GPU, True),
    "Exists with the key ignores the value": (Toleration(key="gpu", operator="Exists"), GPU, True),
    "Exists with another key": (Toleration(key="cpu", operator="Exists"), GPU, False),
    "an empty operator means Equal": (Toleration(key="gpu", value="a100"), GPU, True),
    "Equal with another value": (Toleration(key="gpu", operator="Equal", value="h100"), GPU, False),
    "the same effect": (Toleration(key="gpu", value="a100", effect="NoSchedule"), GPU, True),
    "another effect": (Toleration(key="gpu", value="a100", effect="NoExecute"), GPU, False),
    "an unknown operator": (Toleration(key="gpu", operator="Like", value="a100"), GPU, False),
}


@pytest.mark.parametrize(("toleration", "taint", "accepted"), CASES.values(), ids=CASES.keys())
def test_a_toleration_accepts_a_taint_or_not(toleration: Toleration, taint: Taint, accepted: bool) -> None:
    assert tolerates(toleration, taint) is accepted


COMPARISONS = {
    "Gt wants a taint above it": ("Gt", "5", "6", True),
    "Gt refuses an equal taint": ("Gt", "5", "5", False),
    "Lt wants a taint below it": ("Lt", "5", "-6", True),
    "Lt refuses an equal taint": ("Lt", "5", "5", False),
    "leading zeros are no number": ("Gt", "5", "06", False),
    "a plus sign is no number": ("Gt", "+5", "6", False),
    "minus zero is no number": ("Gt", "-0", "6", False),
    "zero is a number": ("Gt", "0", "6", True),
    "words are no number": ("Gt", "5", "six", False),
    "beyond int64 is no number": ("Gt", "5", "9223372036854775808", False),
}


@pytest.mark.parametrize(("operator", "limit", "actual", "accepted"), COMPARISONS.values(), ids=COMPARISONS.keys())
def test_comparison_operators_compare_integers(operator: str, limit: str, actual: str, accepted: bool) -> None:
    toleration = Toleration(key="sla", operator=operator, value=limit)
    taint = Taint(key="sla", value=actual, effect="NoSchedule")
    assert tolerates(toleration, taint, comparison_operators=True) is accepted


def test_without_their_gate_comparison_operators_accept_nothing() -> None:
    toleration = Toleration(key="sla", operator="Gt", value="5")
    assert not tolerates(toleration, Taint(key="sla", value="6", effect="NoSchedule"))


def test_the_first_taint_that_nothing_accepts_is_named() -> None:
    soft = Taint(key="soft", effect="PreferNoSchedule")
    first = Taint(key="first", effect="NoExecute")
    second = Taint(key="second", effect="NoSchedule")
    taints = (soft, GPU, first, second)
    gpu = Toleration(key="gpu", operator="Exists")
    assert untolerated(taints, (gpu,)) is first
    assert untolerated(taints, (gpu,), {"PreferNoSchedule"}) is soft
    assert untolerated(taints, (Toleration(operator="Exists"),)) is None
    assert untolerated((), ()) is None


def test_comparison_operators_are_passed_on() -> None:
    taint = Taint(key="sla", value="6", effect="NoSchedule")
    above = (Toleration(key="sla", operator="Gt", value="5"),)
    assert untolerated((taint,), above) is taint
    assert untolerated((taint,), above, comparison_operators=True) is None
