"""Tasks in this process, in others and on any executor: their order, and how many are submitted at once."""

from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor

import pytest
import typer

from extender.cli.planning.workers import Workers, run_tasks, run_with_executor


def square(number: int) -> int:
    return number * number


@pytest.mark.parametrize("jobs", [1, 2], ids=["this process", "two processes"])
def test_results_have_the_order_of_the_tasks(jobs: int) -> None:
    assert list(run_tasks(Workers(jobs), square, range(20))) == [number * number for number in range(20)]


def test_any_executor_can_run_tasks() -> None:
    with ThreadPoolExecutor(3) as executor:
        assert list(run_with_executor(executor, 3, square, range(20))) == [number * number for number in range(20)]


def test_at_most_three_tasks_for_each_job_are_submitted() -> None:
    taken: list[int] = []

    class Immediate(ThreadPoolExecutor):
        def submit(self, fn, /, *args, **kwargs):  # type: ignore[no-untyped-def]  # an executor without threads
            future: Future[int] = Future()
            future.set_result(fn(*args, **kwargs))
            return future

    def iterate_tasks() -> Iterator[int]:
        for number in range(100):
            taken.append(number)
            yield number

    with Immediate() as executor:
        results = run_with_executor(executor, 2, square, iterate_tasks())
        assert next(results) == 0
        assert len(taken) == 6


@pytest.mark.parametrize(
    ("workers", "message"),
    [
        (Workers(-1), "-1; want 0 to 1024"),
        (Workers(1025), "1025; want 0 to 1024"),
        (Workers(2, "tcp://a:1"), "contradicts --jobs; the workers of Dask run the runs"),
    ],
)
def test_invalid_workers_are_an_error(workers: Workers, message: str) -> None:
    with pytest.raises(typer.BadParameter) as caught:
        workers.validate("runs")
    assert str(caught.value) == message


def test_no_jobs_means_one_for_each_core(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("os.cpu_count", lambda: 6)
    assert (Workers(0).process_count, Workers(0).runs_in_this_process) == (6, False)
    monkeypatch.setattr("os.cpu_count", lambda: 1)
    assert Workers(0).runs_in_this_process
    assert not Workers(1, "tcp://a:1").runs_in_this_process
