"""The demo's scenario: deterministic for a seed, timed, and small enough that all ordinary pods fit."""

import asyncio

from extender.api.quantity import milli_value
from extender.demo.scenario import DemoSize, Scenario, Step, build_scenario, run_scenario
from extender.fake_apiserver.registry.resources import NODES, PODS
from tests.unit.fake_apiserver.builders import make_api, make_node, make_pod


def step_names(size: DemoSize) -> list[tuple[float, str]]:
    return [
        (step.at_seconds, manifest["metadata"]["name"])
        for step in build_scenario(size).steps
        for manifest in step.create
    ]


def test_the_scenario_is_deterministic_for_a_seed() -> None:
    assert step_names(DemoSize(5, 30, seed=1)) == step_names(DemoSize(5, 30, seed=1))
    assert step_names(DemoSize(5, 30, seed=1)) != step_names(DemoSize(5, 30, seed=2))


def test_steps_are_in_order_and_the_number_of_pods_is_as_requested() -> None:
    steps = step_names(DemoSize(5, 30))
    assert steps == sorted(steps, key=lambda step: step[0])
    assert len([name for _, name in steps if name.startswith(("web-", "api-", "report-"))]) == 30
    assert len([manifest for manifest in build_scenario(DemoSize(5, 30)).objects if manifest["kind"] == "Node"]) == 6


def test_ordinary_pods_never_request_more_than_the_nodes_have() -> None:
    for size in (DemoSize(3, 1), DemoSize(3, 240), DemoSize(8, 60), DemoSize(100, 8000)):
        requested_cpu = [
            milli_value(manifest["spec"]["containers"][0]["resources"]["requests"]["cpu"])
            for step in build_scenario(size).steps
            for manifest in step.create
            if manifest["metadata"]["name"].startswith(("web-", "api-", "report-"))
        ]
        assert len(requested_cpu) == size.pods
        assert max(requested_cpu) <= 1500
        assert sum(requested_cpu) < 0.8 * size.nodes * 8000


def test_without_ordinary_pods_only_the_scripted_pods_remain() -> None:
    assert [name for _, name in step_names(DemoSize(3, 0))] == [
        "training", "cache", "month-end", "import", "node-new", "answers", "training-again"
    ]  # fmt: skip


def test_steps_run_in_order_at_their_times() -> None:
    api, slept, steps = make_api(), [], []

    async def sleep(seconds: float) -> None:
        slept.append(seconds)

    def on_step(step: Step) -> None:
        steps.append((step.message, [pod["metadata"]["name"] for pod in api.list_objects(PODS)]))

    first = Step(1, "pods are created", (make_pod(),), copies=2)
    scenario = Scenario("two steps", 5, steps=(first, Step(3.5, "a pod and a node", (make_pod("db"), make_node()))))
    asyncio.run(run_scenario(api, scenario, on_step, speed=2, sleep=sleep))
    assert steps == [("pods are created", []), ("a pod and a node", ["web-1", "web-2"])]
    assert slept == [0.5, 1.25, 0.75]
    assert [pod["metadata"]["name"] for pod in api.list_objects(PODS)] == ["db", "web-1", "web-2"]
    assert len(api.list_objects(NODES)) == 1


def test_the_api_server_accepts_all_objects_of_the_scenario() -> None:
    api = make_api()

    async def sleep(_: float) -> None:
        """Do nothing."""

    scenario = build_scenario(DemoSize(3, 10))
    for manifest in scenario.objects:
        api.create_from_manifest(manifest)
    asyncio.run(run_scenario(api, scenario, lambda _: None, sleep=sleep))
    names = [pod["metadata"]["name"] for pod in api.list_objects(PODS)]
    assert len(api.list_objects(NODES)) == 5
    assert len(names) == 20
    assert {"answers", "month-end", "cache-4", "training-2", "training-again"} <= set(names)
