"""One run: the allocation by arrived demand, reproducible results, and errors of plugins."""

from typing import Any

import pytest

from extender.experiments import runner
from extender.experiments.fragmentation_causes import Cause
from extender.experiments.policies import Policy
from extender.experiments.runner import run_experiment
from extender.experiments.trace_cluster import RunError
from extender.plugins.gpu_share.plugin import GpuShare
from tests.unit.experiments.small_trace import small_trace
from tests.unit.experiments.test_gpu_trace import trace_of
from tests.unit.plugins.gpu_share.gpu_builders import gpu_node, whole_pod


def test_all_pods_fit_until_the_gpus_are_used_up() -> None:
    trace = trace_of(gpu_node("a", gpus=10, cpu="64"), *(whole_pod(f"w{number}", 1) for number in range(13)))
    run = run_experiment(trace, Policy("BestFit"), 1)
    assert run.allocated_percent == {10 * step: min(100.0, 10.0 * step) for step in range(1, 14)}
    assert run.waiting_pods == {10 * step: max(0, step - 10) for step in range(1, 14)}


def test_an_entry_is_the_mean_of_the_pods_that_arrived_at_that_demand() -> None:
    pods = [whole_pod(f"w{number}", 1) for number in range(2)]
    for pod in pods:
        pod["spec"]["containers"][0]["resources"]["requests"]["alibabacloud.com/gpu-milli"] = "2"
    trace = trace_of(gpu_node("a", gpus=1, cpu="0"), *pods)
    run = run_experiment(trace, Policy("BestFit"), 1)
    assert run.allocated_percent[0] == 0.0
    assert run.waiting_pods[max(run.waiting_pods)] > 2, "nothing fits on a node without CPU"


def test_the_fragmentation_by_cause_is_measured_at_each_tenth_per_cent_that_is_reached() -> None:
    trace = trace_of(gpu_node("a", gpus=10, cpu="5"), *(whole_pod(f"w{number}", 1) for number in range(13)))
    run = run_experiment(trace, Policy("BestFit"), 1)
    assert list(run.fragmented_percent) == list(range(10, 130, 10))
    usable_until_the_cpu_is_used_up = [run.fragmented_percent[column][Cause.CPU] for column in (40, 50, 60)]
    assert usable_until_the_cpu_is_used_up == [0, 50, 50]


@pytest.mark.parametrize("name", ["FGD", "Fill", "FillNoWait", "Random", "BestFit"])
def test_equal_seeds_give_equal_results(name: str) -> None:
    trace = small_trace()
    first, second = (run_experiment(trace, Policy(name), 3) for _ in range(2))
    assert first.allocated_percent == second.allocated_percent
    assert 60 < first.allocated_percent[max(first.allocated_percent)] <= 100
    other = run_experiment(trace, Policy(name), 4)
    assert other.allocated_percent != first.allocated_percent


def test_a_plugin_that_fails_ends_the_run_with_one_line(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(self: Any, *arguments: Any) -> Any:
        raise KeyError("zone")

    monkeypatch.setattr(GpuShare, "score", fail)
    with pytest.raises(RunError, match=r"^policy Fill, pod default/\S+: .*KeyError"):
        run_experiment(small_trace(), Policy("Fill"), 1)


def test_reports_show_five_demands() -> None:
    assert runner.REPORTED_DEMAND_PERCENTS == (80, 90, 100, 110, 130)
