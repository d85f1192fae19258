"""What default preemption would do for a pod that fits nowhere, as text for people."""

from typing import Final

from extender.decide.examine import Examination
from extender.offline.answers import preemption_plan
from extender.offline.layout import columns, counted
from extender.preemption.plan import Candidate

_NODES: Final = 5
_NAMES: Final = 3


def evictions(examination: Examination) -> list[str]:
    """Which node is nominated, who is evicted there, and where else there would have been room; nothing without it."""
    plan = preemption_plan(examination.rescue)
    if plan is None:
        return []
    chosen = plan.chosen
    equals = f", one of {len(plan.ties)} equally good nodes" if len(plan.ties) > 1 else ""
    others = sorted((each for each in plan.candidates if each.node != chosen.node), key=_fewest)
    rows = [("NODE", "EVICTED", "AGAINST A BUDGET", "WHO"), *map(_row, (chosen, *others[: _NODES - 1]))]
    left = len(others) - (_NODES - 1)
    number = counted(len(chosen.victims), "pod")
    return [
        "",
        f"  Room is made on {chosen.node}{equals}: {number} evicted, and this one nominated",
        *columns(rows, right=[1, 2], indent="    "),
        *([f"    and on {counted(left, 'other node')} it would be possible"] if left > 0 else []),
    ]


def _fewest(candidate: Candidate) -> tuple[int, int, str]:
    return candidate.violations, len(candidate.victims), candidate.node


def _row(candidate: Candidate) -> tuple[str, ...]:
    names = [victim.key for victim in candidate.victims]
    more = f" and {len(names) - _NAMES} more" if len(names) > _NAMES else ""
    return candidate.node, str(len(names)), str(candidate.violations), ", ".join(names[:_NAMES]) + more
