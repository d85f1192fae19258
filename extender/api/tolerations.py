"""Matching of tolerations and taints of nodes or devices."""

import re
from collections.abc import Collection, Iterable
from typing import Final, TypeVar

from extender.api.kinds.affinity import Toleration
from extender.api.kinds.devices import DeviceTaint
from extender.api.kinds.node import Taint
from extender.api.label_syntax import parse_int64

AnyTaint = TypeVar("AnyTaint", Taint, DeviceTaint)

DO_NOT_SCHEDULE_EFFECTS: Final = frozenset({"NoSchedule", "NoExecute"})
"""The effects that prevent scheduling."""

_CANONICAL_INTEGER: Final = re.compile(r"0|-?[1-9][0-9]*", re.ASCII)


def tolerates(toleration: Toleration, taint: Taint | DeviceTaint, *, comparison_operators: bool = False) -> bool:
    """Return whether a toleration tolerates a taint.

    An empty key of *toleration* matches every key, and an empty effect every effect. *comparison_operators* enables the
    operators Gt and Lt (gate TaintTolerationComparisonOperators).

    Source: api/core/v1/toleration.go, Toleration.ToleratesTaint (1.36).
    """
    if toleration.effect not in {"", taint.effect} or toleration.key not in {"", taint.key}:
        return False
    match toleration.operator:
        case "" | "Equal":
            return toleration.value == taint.value
        case "Exists":
            return True
        case "Gt" | "Lt":
            return comparison_operators and _compare_values(toleration, taint)
        case _:
            return False


def _compare_values(toleration: Toleration, taint: Taint | DeviceTaint) -> bool:
    limit, number = _parse_canonical_int64(toleration.value), _parse_canonical_int64(taint.value)
    if limit is None or number is None:
        return False
    return number > limit if toleration.operator == "Gt" else number < limit


def _parse_canonical_int64(text: str) -> int | None:
    """Parse an integer without plus sign or leading zeros. Return None for any other text."""
    return parse_int64(text) if _CANONICAL_INTEGER.fullmatch(text) else None


def find_untolerated_taint(
    taints: Iterable[AnyTaint],
    tolerations: Collection[Toleration],
    effects: Collection[str] = DO_NOT_SCHEDULE_EFFECTS,
    *,
    comparison_operators: bool = False,
) -> AnyTaint | None:
    """Return the first taint with one of these effects that no toleration tolerates.

    Source: component-helpers/scheduling/corev1/helpers.go, FindMatchingUntoleratedTaint (1.36).
    """
    for taint in taints:
        if taint.effect in effects and not any(
            tolerates(toleration, taint, comparison_operators=comparison_operators) for toleration in tolerations
        ):
            return taint
    return None
