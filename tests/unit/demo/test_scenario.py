"""The demo's scenario: deterministic for a seed, and small enough that all ordinary pods fit."""

from extender.api.quantity import milli_value
from extender.demo.scenario import DemoSize, build_scenario


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
