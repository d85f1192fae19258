"""Scenarios: parsing, validation and timing."""

import asyncio

import pytest

from extender.demo.scenario import DemoSize, build_scenario
from extender.fake_apiserver.registry.resources import NODES, PODS
from extender.fake_apiserver.scenario import (
    ScenarioError,
    Step,
    apply_step,
    create_objects,
    parse_scenario,
    run_scenario,
)
from tests.unit.fake_apiserver.builders import make_api, make_pod

TEXT = """
title: two pods
durationSeconds: 5
objects:
- {apiVersion: v1, kind: Node, metadata: {name: n1}, status: {capacity: {cpu: "4"}}}
steps:
- atSeconds: 1
  message: pods are created
  copies: 2
  create: [{apiVersion: v1, kind: Pod, metadata: {name: web}, spec: {containers: [{name: c, image: a}]}}]
- {atSeconds: 3.5, message: a pod is deleted, delete: [pods/web-2, pods/default/never]}
"""


HEAD = "title: a, durationSeconds: 9"


def test_steps_run_in_order_at_their_times() -> None:
    api, slept, steps = make_api(), [], []

    async def sleep(seconds: float) -> None:
        slept.append(seconds)

    def on_step(step: Step) -> None:
        steps.append((step.message, [pod["metadata"]["name"] for pod in api.list_objects(PODS)]))

    scenario = parse_scenario(TEXT, "two.yaml")
    create_objects(api, scenario)
    assert [node["metadata"]["name"] for node in api.list_objects(NODES)] == ["n1"]
    asyncio.run(run_scenario(api, scenario, on_step, speed=2, sleep=sleep))
    assert steps == [("pods are created", []), ("a pod is deleted", ["web-1", "web-2"])]
    assert slept == [0.5, 1.25, 0.75]
    assert [pod["metadata"]["name"] for pod in api.list_objects(PODS)] == ["web-1"]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("title: [", "s.yaml: is not YAML"),
        ("title: a", "s.yaml: Object missing required field `durationSeconds`"),
        (f"{{{HEAD}, colour: red}}", "s.yaml: Object contains unknown field `colour`"),
        (f"{{{HEAD}, steps: [{{atSeconds: 10}}]}}", r"steps\[0\].atSeconds: 10.0 is not between 0.0 and 9.0"),
        (
            f"{{{HEAD}, steps: [{{atSeconds: 2}}, {{atSeconds: 1}}]}}",
            r"steps\[1\].atSeconds: 1.0 is not between 2.0 and 9.0",
        ),
        (f"{{{HEAD}, steps: [{{atSeconds: 2, copies: 0}}]}}", r"steps\[0\].copies: 0 is less than 1"),
        (
            f"{{{HEAD}, steps: [{{atSeconds: 2, delete: [web]}}]}}",
            r"steps\[0\].delete\[0\]: 'web' does not name an object",
        ),
        (
            f"{{{HEAD}, objects: [{{apiVersion: v2, kind: Pod}}]}}",
            r"objects\[0\]: the fake API server has no kind 'Pod' in apiVersion 'v2'",
        ),
        (
            f"{{{HEAD}, steps: [{{atSeconds: 1, create: [{{apiVersion: v1, kind: Pod}}]}}]}}",
            r"steps\[0\].create\[0\].metadata.name: is missing",
        ),
    ],
)
def test_an_invalid_scenario_is_rejected_with_its_location(text: str, message: str) -> None:
    with pytest.raises(ScenarioError, match=message):
        parse_scenario(text, "s.yaml")


def test_an_object_that_the_server_rejects_is_named() -> None:
    step = Step(at_seconds=0, create=(make_pod(priorityClassName="no"),))
    with pytest.raises(ScenarioError, match='Pod web: pods "web" is forbidden: no PriorityClass with name no'):
        apply_step(make_api(), step)


def test_the_demo_s_scenario_is_valid() -> None:
    api = make_api()

    async def sleep(_: float) -> None:
        """Do nothing."""

    scenario = build_scenario(DemoSize(3, 10))
    create_objects(api, scenario)
    asyncio.run(run_scenario(api, scenario, sleep=sleep))
    names = [pod["metadata"]["name"] for pod in api.list_objects(PODS)]
    assert len(api.list_objects(NODES)) == 5
    assert len(names) == 20
    assert {"answers", "month-end", "cache-4", "training-2", "training-again"} <= set(names)
