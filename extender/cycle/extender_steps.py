"""The steps at which a scheduling cycle asks its caller to call the HTTP extenders.

The cycle is a generator. It yields a step and is sent the answer, so that only the caller does I/O. A cycle without
extenders yields no step.
"""

from collections.abc import Generator
from dataclasses import dataclass
from typing import Any, TypeAlias, TypeVar

from extender.cache.snapshot import Snapshot
from extender.cycle.diagnosis import Diagnosis
from extender.cycle.plugin_runtime import PluginRuntime
from extender.cycle.score import Ranking
from extender.framework.extension_points import PostFilterResult

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class FilterStep:
    """Call the filter verbs. The answer is a `FilteredNodes`.

    Attributes:
        diagnosis: the nodes that pass the Filter plugins; at least one.
    """

    diagnosis: Diagnosis


@dataclass(frozen=True, slots=True)
class FilteredNodes:
    """The nodes to select from, and the inputs of their scores.

    Attributes:
        diagnosis: the nodes that pass the Filter plugins and the extenders.
        snapshot: the cluster for Score plugins, with the nodes as the extenders returned them.
        runtime: the runtime for Score plugins.
    """

    diagnosis: Diagnosis
    snapshot: Snapshot
    runtime: PluginRuntime


@dataclass(frozen=True, slots=True)
class PrioritizeStep:
    """Call the prioritize verbs. The answer is the `Ranking` with the scores of the extenders added.

    Attributes:
        diagnosis: the nodes to score; at least two.
        ranking: the scores of the plugins.
    """

    diagnosis: Diagnosis
    ranking: Ranking


@dataclass(frozen=True, slots=True)
class PreemptStep:
    """Call the preempt verbs. The answer is the `PostFilterResult` with the victims that the extenders accept.

    Attributes:
        result: the result of a PostFilter plugin that made a plan.
    """

    result: PostFilterResult


ExtenderStep: TypeAlias = FilterStep | PrioritizeStep | PreemptStep

ExtenderSteps: TypeAlias = Generator[ExtenderStep, Any, T]
"""A generator that yields steps, is sent their answers, and returns a result of type T."""


def run_without_extenders(steps: ExtenderSteps[T]) -> T:
    """Return the result of *steps*, which yield no step because there are no extenders."""
    try:
        step = next(steps)
    except StopIteration as stop:
        result: T = stop.value
        return result
    raise TypeError(f"a cycle without extenders yielded {step!r}")
