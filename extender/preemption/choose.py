"""Which of several nodes to make room on. Source: E028 to E033, E035."""

from collections.abc import Callable, Sequence
from random import Random

from extender.preemption.importance import started
from extender.preemption.plan import Candidate, PreemptionPlan

_OFFSET = 1 << 31
"""Added to each priority, so that many victims of negative priority count for more than few."""


def _violations(candidate: Candidate) -> float:
    return candidate.violations


def _highest_priority(candidate: Candidate) -> float:
    return candidate.victims[0].shape.priority


def _sum_of_priorities(candidate: Candidate) -> float:
    return sum([victim.shape.priority for victim in candidate.victims], _OFFSET * len(candidate.victims))


def _number(candidate: Candidate) -> float:
    return len(candidate.victims)


def _start_of_the_most_important(candidate: Candidate) -> float:
    """The earliest start among the victims of the highest priority, negative: the latest is best."""
    highest = max([victim.shape.priority for victim in candidate.victims])
    return -min([started(victim) for victim in candidate.victims if victim.shape.priority == highest])


_CRITERIA: tuple[Callable[[Candidate], float], ...] = (
    _violations,
    _highest_priority,
    _sum_of_priorities,
    _number,
    _start_of_the_most_important,
)
"""The least is best; each decides only among those that are equal by all before it."""


def choose(candidates: Sequence[Candidate], chance: Random | None) -> PreemptionPlan:
    """The best of *candidates*.

    Args:
        candidates: at least one, no node twice.
        chance: picks among equals; None takes the first by name.
    """
    left = list(candidates)
    for criterion in _CRITERIA:
        if len(left) == 1:
            break
        marks = [criterion(candidate) for candidate in left]
        best = min(marks)
        left = [candidate for candidate, mark in zip(left, marks, strict=True) if mark == best]
    left.sort(key=lambda candidate: candidate.node)
    chosen = left[0] if chance is None else chance.choice(left)
    return PreemptionPlan(chosen, tuple(candidate.node for candidate in left), tuple(candidates))
