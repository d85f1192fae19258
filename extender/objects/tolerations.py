"""Which taints a toleration accepts."""

import re
from collections.abc import Collection, Iterable
from typing import Final

from extender.objects.affinity import Toleration
from extender.objects.label_syntax import int64
from extender.objects.node import Taint

HARD_EFFECTS: Final = frozenset({"NoSchedule", "NoExecute"})
"""The effects that keep a pod from being placed on a node."""

_CANONICAL: Final = re.compile(r"0|-?[1-9][0-9]*", re.ASCII)


def tolerates(toleration: Toleration, taint: Taint, *, comparison_operators: bool = False) -> bool:
    """Whether a toleration accepts a taint.

    Args:
        toleration: an empty key or effect stands for any.
        taint: the taint.
        comparison_operators: whether Gt and Lt are known (gate TaintTolerationComparisonOperators).

    Source: B007.
    """
    if toleration.effect not in {"", taint.effect} or toleration.key not in {"", taint.key}:
        return False
    match toleration.operator:
        case "" | "Equal":
            return toleration.value == taint.value
        case "Exists":
            return True
        case "Gt" | "Lt":
            return comparison_operators and _compares(toleration, taint)
        case _:
            return False


def _compares(toleration: Toleration, taint: Taint) -> bool:
    limit, actual = _canonical_int64(toleration.value), _canonical_int64(taint.value)
    if limit is None or actual is None:
        return False
    return actual > limit if toleration.operator == "Gt" else actual < limit


def _canonical_int64(text: str) -> int | None:
    """The number of a text that spells it the one canonical way: no plus sign, no leading zeros."""
    return int64(text) if _CANONICAL.fullmatch(text) else None


def untolerated(
    taints: Iterable[Taint],
    tolerations: Collection[Toleration],
    effects: Collection[str] = HARD_EFFECTS,
    *,
    comparison_operators: bool = False,
) -> Taint | None:
    """The first taint of one of these effects that no toleration accepts. Source: B016."""
    for taint in taints:
        if taint.effect in effects and not any(
            tolerates(toleration, taint, comparison_operators=comparison_operators) for toleration in tolerations
        ):
            return taint
    return None
