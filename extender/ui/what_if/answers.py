"""Answers the questions of the page What if, one after another, on copies of the cluster."""

import asyncio
from collections import OrderedDict
from collections.abc import Callable, Generator, Mapping, Sequence
from dataclasses import dataclass, field
from time import perf_counter
from typing import Any, Final, TypeVar

from extender.answers.planning import ScenarioOutcome
from extender.cache.cache import Cache
from extender.cache.snapshot import Snapshot
from extender.cycle.plugin_runtime import PluginRuntime
from extender.framework.profiles import Profile
from extender.planning.scenario import Scenario, ScenarioError
from extender.planning.what_if import WhatIfRunner
from extender.ui.cluster_document import make_groups, make_use_document
from extender.ui.what_if.question import Question, make_configuration, make_scenario

ABSENT: Final = -2
"""The use of a node that does not exist before or after the changes."""

MAX_BUSY_SECONDS: Final = 30.0
"""The limit of the computing time of a question. A longer one is for the command line."""

MAX_WAITING_QUESTIONS: Final = 8
_SLICE_SECONDS: Final = 0.005
_MAX_ANSWERS: Final = 8

T = TypeVar("T")

Report = Callable[[str], object]
"""A function that is called with a sentence about the progress of a question."""


class BusyError(Exception):
    """The exception for a question that is not answered, because too many others wait."""


@dataclass(frozen=True, slots=True)
class Answer:
    """The answer to a question.

    Attributes:
        maps: the document of the two maps; see `make_maps_document`.
        time: when the question was answered, in monotonic seconds.
    """

    outcome: ScenarioOutcome
    maps: Mapping[str, Any]
    time: float


@dataclass(slots=True)
class WhatIfAnswers:
    """Answers questions in the event loop, in slices of some milliseconds, one question at a time.

    Attributes:
        fork_cache: returns a copy of the cluster.
        make_profiles: returns new profiles by scheduler name for a configuration as YAML; an empty text is the
            configuration in force. It raises an exception of `configuration_errors`.
        make_runtime: returns a new plugin runtime.
        pause_factor: how long other tasks of the event loop run after a slice, in durations of this slice.
        max_age_seconds: how long an answer is used again for the same question.
        get_time: returns monotonic seconds.
    """

    fork_cache: Callable[[], Cache]
    make_profiles: Callable[[str], Mapping[str, Profile]]
    make_runtime: Callable[[], PluginRuntime]
    pause_factor: float = 0.0
    max_age_seconds: float = float("inf")
    get_time: Callable[[], float] = perf_counter
    _lock: asyncio.Lock = field(default_factory=asyncio.Lock)
    _waiting_count: int = 0
    _answers: OrderedDict[Question, Answer] = field(default_factory=OrderedDict)

    async def answer(self, question: Question, report: Report = lambda _: None) -> Answer:
        """Return the answer to a question; *report* gets its progress.

        Raises:
            ScenarioError: the question does not match the cluster, its configuration is invalid, or it takes too long.
            BusyError: too many questions wait.
        """
        scenario = make_scenario(question)
        if self._waiting_count >= MAX_WAITING_QUESTIONS:
            raise BusyError
        self._waiting_count += 1
        report("Other questions are answered first.")
        try:
            async with self._lock:
                report("The cluster is copied.")
                return self._find_answer(question) or await self._run(question, scenario, report)
        finally:
            self._waiting_count -= 1

    def _find_answer(self, question: Question) -> Answer | None:
        answer = self._answers.get(question)
        return answer if answer is not None and self.get_time() - answer.time <= self.max_age_seconds else None

    async def _run(self, question: Question, scenario: Scenario, report: Report) -> Answer:
        profiles = self.make_profiles(self.make_configuration(question))
        cache = self.fork_cache()
        snapshots: list[Snapshot] = [cache.snapshot()]
        maps: list[Mapping[str, Any]] = []

        def observe(snapshot: Snapshot) -> None:
            maps.append(make_maps_document(snapshots.pop(), snapshot))

        runner = WhatIfRunner(cache, profiles, self.make_runtime())
        outcome = await self._run_in_slices(runner.run_in_steps(scenario, observe=observe, undo=False), report)
        answer = Answer(outcome, maps[0], self.get_time())
        self._answers[question] = answer
        self._answers.move_to_end(question)
        while len(self._answers) > _MAX_ANSWERS:
            self._answers.popitem(last=False)
        return answer

    def make_configuration(self, question: Question) -> str:
        """Return the configuration of a question as YAML; empty for the configuration in force."""
        return make_configuration(question, self.make_profiles("") if question.strategy else ())

    async def _run_in_slices(self, steps: Generator[tuple[int, int], None, T], report: Report) -> T:
        """Run a generator to its end, and let other tasks run after each slice."""
        busy_seconds, start_time = 0.0, perf_counter()
        try:
            while True:
                try:
                    done, total = next(steps)
                except StopIteration as end:
                    result: T = end.value
                    return result
                seconds = perf_counter() - start_time
                if seconds < _SLICE_SECONDS:
                    continue
                busy_seconds += seconds
                tried = f"{done} of {total} pods are tried" if total else "Nodes are changed"
                if busy_seconds > MAX_BUSY_SECONDS:
                    limit = f"the question takes more than {MAX_BUSY_SECONDS:.0f} s of computing time: {tried}"
                    raise ScenarioError([f"{limit}; change less at once, or use the command line, which has no limit"])
                report(f"{tried}, after {busy_seconds:.0f} s of computing time; the limit is {MAX_BUSY_SECONDS:.0f} s.")
                await asyncio.sleep(seconds * self.pause_factor)
                start_time = perf_counter()
        finally:
            steps.close()


def make_maps_document(before: Snapshot, after: Snapshot) -> dict[str, Any]:
    """Return the document of the two maps of the page, before and after the changes, as plain values.

    `nodes` has the names of the nodes that exist before or after the changes, and `groups` their groups, as in
    `make_cluster_document`. `before` and `after` have the lists of that document for these nodes: `use` by resource,
    `pods` and `unschedulable`. A node that does not exist has the use `ABSENT`.
    """
    new_nodes = [node for node in after.nodes if before.row(node.metadata.name) is None]
    # A node in both has the labels and taints that it has after the changes.
    rows = [after.row(node.metadata.name) for node in before.nodes]
    nodes = [
        *(old if row is None else after.nodes[row] for old, row in zip(before.nodes, rows, strict=True)),
        *new_nodes,
    ]
    names = [node.metadata.name for node in nodes]
    documents = {"before": make_use_document(before), "after": make_use_document(after)}
    resources = list(dict.fromkeys(resource for document in documents.values() for resource in document["use"]))
    return {
        "nodes": names,
        "groups": make_groups(nodes),
        "resources": resources,
        **{side: _select(document, names, resources) for side, document in documents.items()},
    }


def _select(document: Mapping[str, Any], names: Sequence[str], resources: Sequence[str]) -> dict[str, Any]:
    """Return the lists of *document* for the nodes *names*."""
    positions = {name: position for position, name in enumerate(document["nodes"])}
    order = [positions.get(name) for name in names]

    def select(values: Sequence[Any], missing: Any) -> list[Any]:
        return [missing if position is None else values[position] for position in order]

    no_use = [-1] * len(document["nodes"])
    return {
        "use": {resource: select(document["use"].get(resource, no_use), ABSENT) for resource in resources},
        "pods": select(document["pods"], 0),
        "unschedulable": select(document["unschedulable"], missing=False),
    }
