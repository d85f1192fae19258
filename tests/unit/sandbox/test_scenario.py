"""Tests of scenarios: what is read, what is refused, what is played and when."""

import asyncio

import pytest

from extender.demo.story import Crowd, story
from extender.sandbox.scenario import ScenarioError, Step, carry_out, parse_scenario, play, prepare
from extender.sandbox.served import NODES, PODS
from tests.unit.sandbox.calls import a_pod, an_api

TEXT = """
title: two pods
lasts: 5
objects:
- {apiVersion: v1, kind: Node, metadata: {name: n1}, status: {capacity: {cpu: "4"}}}
steps:
- at: 1
  say: they come
  copies: 2
  create: [{apiVersion: v1, kind: Pod, metadata: {name: web}, spec: {containers: [{name: c, image: a}]}}]
- {at: 3.5, say: one goes, delete: [pods/web-2, pods/default/never]}
"""


def test_a_scenario_is_played_step_by_step_at_its_times() -> None:
    api, slept, seen = an_api(), [], []

    async def sleep(seconds: float) -> None:
        slept.append(seconds)

    def tell(step: Step) -> None:
        seen.append((step.say, [pod["metadata"]["name"] for pod in api.each(PODS)]))

    scenario = parse_scenario(TEXT, "two.yaml")
    prepare(api, scenario)
    assert [node["metadata"]["name"] for node in api.each(NODES)] == ["n1"]
    asyncio.run(play(api, scenario, tell, speed=2, sleep=sleep))
    assert seen == [("they come", []), ("one goes", ["web-1", "web-2"])]
    assert slept == [0.5, 1.25, 0.75]
    assert [pod["metadata"]["name"] for pod in api.each(PODS)] == ["web-1"]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("title: [", "s.yaml: is not YAML"),
        ("title: a", "s.yaml: Object missing required field `lasts`"),
        ("{title: a, lasts: 1, colour: red}", "s.yaml: Object contains unknown field `colour`"),
        ("{title: a, lasts: 1, steps: [{at: 2}]}", r"s.yaml: steps\[0\].at: 2.0 is not between 0.0 and 1.0"),
        ("{title: a, lasts: 9, steps: [{at: 2}, {at: 1}]}", r"steps\[1\].at: 1.0 is not between 2.0 and 9.0"),
        ("{title: a, lasts: 9, steps: [{at: 2, copies: 0}]}", r"steps\[0\].copies: 0 is less than 1"),
        ("{title: a, lasts: 9, steps: [{at: 2, delete: [web]}]}", r"steps\[0\].delete\[0\]: 'web' names nothing"),
        (
            "{title: a, lasts: 9, objects: [{apiVersion: v2, kind: Pod}]}",
            r"objects\[0\]: the sandbox has no kind 'Pod' in apiVersion 'v2'",
        ),
        (
            "{title: a, lasts: 9, steps: [{at: 1, create: [{apiVersion: v1, kind: Pod}]}]}",
            r"steps\[0\].create\[0\].metadata.name: is missing",
        ),
    ],
)
def test_a_scenario_that_cannot_be_played_is_refused_with_its_place(text: str, message: str) -> None:
    with pytest.raises(ScenarioError, match=message):
        parse_scenario(text, "s.yaml")


def test_an_object_the_server_refuses_is_named() -> None:
    step = Step(at=0, create=(a_pod(priorityClassName="no"),))
    with pytest.raises(ScenarioError, match='Pod web: pods "web" is forbidden: no PriorityClass with name no'):
        carry_out(an_api(), step)


def test_the_demo_s_scenario_can_be_played() -> None:
    api = an_api()

    async def sleep(_: float) -> None:
        """Time passes."""

    scenario = story(Crowd(3, 10))
    prepare(api, scenario)
    asyncio.run(play(api, scenario, sleep=sleep))
    names = [pod["metadata"]["name"] for pod in api.each(PODS)]
    assert len(api.nodes()) == 5
    assert len(names) == 20
    assert {"answers", "month-end", "cache-4", "training-2", "training-again"} <= set(names)
