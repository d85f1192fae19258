"""Run the policies of an experiment with several seeds, in several processes."""

from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from itertools import product
from multiprocessing import get_context

from extender.experiments.gpu_trace import Trace
from extender.experiments.policies import Policy
from extender.experiments.runner import Run, run_experiment

_worker_trace: list[Trace] = []
"""The trace of a worker process, which the process receives once."""


def run_all(trace: Trace, policies: Sequence[Policy], seeds: Sequence[int], jobs: int = 1) -> Iterator[Run]:
    """Run each policy with each seed, and yield the results in this order, whatever the number of processes.

    Args:
        trace: the trace.
        policies: the policies.
        seeds: the seeds.
        jobs: the number of processes.

    Raises:
        RunError: a plugin failed.
    """
    runs = list(product(policies, seeds))
    if jobs == 1 or len(runs) == 1:
        for policy, seed in runs:
            yield run_experiment(trace, policy, seed)
        return
    executor = ProcessPoolExecutor(min(jobs, len(runs)), get_context("spawn"), _set_worker_trace, (trace,))
    try:
        yield from executor.map(_run_in_worker, runs)
    finally:
        executor.shutdown(cancel_futures=True)


def _set_worker_trace(trace: Trace) -> None:
    _worker_trace[:] = [trace]


def _run_in_worker(run: tuple[Policy, int]) -> Run:
    return run_experiment(_worker_trace[0], *run)
