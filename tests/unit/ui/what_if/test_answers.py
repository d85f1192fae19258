"""Answers are given one after another, in slices, on copies of the cluster."""

import asyncio
from collections.abc import Mapping

import pytest

from extender.app import wiring
from extender.framework.profiles import Profile
from extender.planning.scenario import ScenarioError
from extender.ui.what_if import answers as answers_module
from extender.ui.what_if.answers import MAX_WAITING_QUESTIONS, BusyError, WhatIfAnswers
from extender.ui.what_if.question import Question
from tests.unit.planning.clusters import SETUP, make_cache, node, pod

DRAIN = Question(drain="n1")


class Cluster:
    """Two nodes with two pods; `configurations` has the configurations for which profiles were made."""

    def __init__(self) -> None:
        self.cache = make_cache(node("n1"), node("n2"), pod("a", on="n1"), pod("b", on="n1"))
        self.now, self.fork_count = 0.0, 0
        self.configurations: list[str] = []

    def make_answers(self, **options: float) -> WhatIfAnswers:
        def make_profiles(configuration: str) -> Mapping[str, Profile]:
            self.configurations.append(configuration)
            return SETUP.profiles

        def fork_cache() -> object:
            self.fork_count += 1
            return self.cache.fork()

        return WhatIfAnswers(fork_cache, make_profiles, wiring.make_runtime, get_time=lambda: self.now, **options)  # type: ignore[arg-type]  # a mapping of options


def test_an_answer_has_the_outcome_and_the_maps_and_changes_nothing() -> None:
    cluster = Cluster()
    answer = asyncio.run(cluster.make_answers().answer(DRAIN))
    assert [(moved.pod, moved.to) for moved in answer.outcome.moved] == [("default/a", "n2"), ("default/b", "n2")]
    assert answer.maps["before"]["pods"] == [2, 0]
    assert answer.maps["after"]["pods"] == [0, 2]
    assert len(cluster.cache.snapshot().pods_on("n1")) == 2


def test_an_answer_is_used_again_until_it_is_too_old() -> None:
    cluster = Cluster()
    answers = cluster.make_answers(max_age_seconds=30.0)
    first = asyncio.run(answers.answer(DRAIN))
    cluster.now = 30.0
    assert asyncio.run(answers.answer(DRAIN)) is first
    cluster.now = 30.1
    assert asyncio.run(answers.answer(DRAIN)) is not first
    assert cluster.fork_count == 2


def test_only_the_last_answers_are_stored() -> None:
    cluster = Cluster()
    answers = cluster.make_answers()
    for count in range(1, 10):
        asyncio.run(answers.answer(Question(add=str(count), like="n1")))
    asyncio.run(answers.answer(Question(add="9", like="n1")))
    assert cluster.fork_count == 9
    asyncio.run(answers.answer(Question(add="1", like="n1")))
    assert cluster.fork_count == 10


def test_other_tasks_run_between_the_slices(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(answers_module, "_SLICE_SECONDS", 0.0)
    counts: list[int] = []

    async def main() -> None:
        answers = Cluster().make_answers()
        task = asyncio.create_task(answers.answer(DRAIN))
        while not task.done():
            counts.append(1)
            await asyncio.sleep(0)

    asyncio.run(main())
    assert len(counts) >= 3


def test_a_question_that_takes_too_long_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(answers_module, "_SLICE_SECONDS", 0.0)
    monkeypatch.setattr(answers_module, "MAX_BUSY_SECONDS", 0.0)
    cluster = Cluster()
    with pytest.raises(ScenarioError, match=r"0 s of computing time: Nodes are changed; .* or use the command line"):
        asyncio.run(cluster.make_answers().answer(DRAIN))
    assert len(cluster.cache.snapshot().pods_on("n1")) == 2


def test_the_progress_is_reported(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(answers_module, "_SLICE_SECONDS", 0.0)
    reports: list[str] = []
    asyncio.run(Cluster().make_answers().answer(DRAIN, reports.append))
    assert reports[:2] == ["Other questions are answered first.", "The cluster is copied."]
    assert reports[2] == "Nodes are changed, after 0 s of computing time; the limit is 30 s."
    assert "1 of 2 pods are tried, after 0 s of computing time; the limit is 30 s." in reports


def test_too_many_questions_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(answers_module, "_SLICE_SECONDS", 0.0)

    async def main() -> list[object]:
        answers = Cluster().make_answers()
        counts = range(1, MAX_WAITING_QUESTIONS + 3)
        questions = [Question(drain="n1", add=str(count), like="n2") for count in counts]
        return await asyncio.gather(*map(answers.answer, questions), return_exceptions=True)

    results = asyncio.run(main())
    assert [isinstance(result, BusyError) for result in results] == [False] * MAX_WAITING_QUESTIONS + [True] * 2


def test_a_strategy_is_for_the_profiles_in_force() -> None:
    cluster = Cluster()
    asyncio.run(cluster.make_answers().answer(Question(strategy="MostAllocated")))
    assert cluster.configurations[0] == ""
    assert '"default-scheduler"' in cluster.configurations[1]


def test_a_question_about_an_unknown_node_is_an_error() -> None:
    with pytest.raises(ScenarioError, match="--drain n9: there is no such node"):
        asyncio.run(Cluster().make_answers().answer(Question(drain="n9")))
