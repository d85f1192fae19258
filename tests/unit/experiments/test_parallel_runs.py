"""All runs: their order, and equal results in several processes."""

from extender.experiments.parallel_runs import run_all
from extender.experiments.policies import Policy
from tests.unit.experiments.small_trace import small_trace


def test_several_processes_give_the_results_of_one_in_the_same_order() -> None:
    trace, policies = small_trace(), [Policy("FGD"), Policy("Fill")]
    alone = list(run_all(trace, policies, [3, 4]))
    assert [(run.policy, run.seed) for run in alone] == [("FGD", 3), ("FGD", 4), ("Fill", 3), ("Fill", 4)]
    together = list(run_all(trace, policies, [3, 4], jobs=2))
    assert [(run.policy, run.seed, run.allocated_percent) for run in together] == [
        (run.policy, run.seed, run.allocated_percent) for run in alone
    ]
