"""Run the tasks of a sweep or an experiment in this process, in other processes, or on the workers of Dask."""

import multiprocessing
import os
import threading
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Executor, Future, ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from dataclasses import dataclass
from multiprocessing.connection import wait
from typing import Any, Final, TypeVar

import typer

_MAX_JOBS: Final = 1024
_TASKS_PER_JOB: Final = 3
_DASK_FLAG: Final = "--scheduler-address"
_CONNECT_TIMEOUT_SECONDS: Final = 10

RUN_LOCK: Final = threading.Lock()
"""Tasks that change the state of their process hold it. A worker of Dask may have several threads."""

T = TypeVar("T")
R = TypeVar("R")


@dataclass(frozen=True, slots=True)
class Workers:
    """The processes that run tasks.

    Attributes:
        jobs: the number of processes of this machine; 0: one per core.
        scheduler_address: the address of a Dask scheduler, whose workers run the tasks; empty: no Dask.
    """

    jobs: int = 1
    scheduler_address: str = ""

    @property
    def runs_in_this_process(self) -> bool:
        """Whether this process runs all tasks."""
        return not self.scheduler_address and self.process_count == 1

    @property
    def process_count(self) -> int:
        """The number of processes of this machine."""
        return self.jobs or os.cpu_count() or 1

    def validate(self, tasks: str) -> None:
        """Check the values of the flags; *tasks* names the tasks in the message.

        Raises:
            BadParameter: the number of jobs is out of range, or both jobs and Dask are wanted.
        """
        if self.jobs < 0 or self.jobs > _MAX_JOBS:
            raise typer.BadParameter(f"{self.jobs}; want 0 to {_MAX_JOBS}", param_hint="--jobs")
        if self.jobs != 1 and self.scheduler_address:
            message = f"contradicts --jobs; the workers of Dask run the {tasks}"
            raise typer.BadParameter(message, param_hint=_DASK_FLAG)


def run_tasks(workers: Workers, run: Callable[[T], R], tasks: Iterable[T]) -> Iterator[R]:
    """Yield the result of *run* for each task, in the order of the tasks.

    *run* can be pickled, as can its arguments and results.

    Raises:
        BadParameter: the workers of Dask cannot be reached.
    """
    if workers.scheduler_address:
        with open_dask_executor(workers.scheduler_address) as (executor, worker_count):
            yield from run_with_executor(executor, worker_count, run, tasks)
    elif workers.runs_in_this_process:
        yield from map(run, tasks)
    else:
        yield from _run_in_processes(workers.process_count, run, tasks)


def run_with_executor(executor: Executor, jobs: int, run: Callable[[T], R], tasks: Iterable[T]) -> Iterator[R]:
    """Yield the result of each task in order. Any `concurrent.futures.Executor` can be used.

    The executor runs *jobs* tasks at the same time; at most three times as many are submitted.
    """
    futures: deque[Future[R]] = deque()
    for task in tasks:
        futures.append(executor.submit(run, task))
        if len(futures) >= jobs * _TASKS_PER_JOB:
            yield futures.popleft().result()
    while futures:
        yield futures.popleft().result()


def _run_in_processes(jobs: int, run: Callable[[T], R], tasks: Iterable[T]) -> Iterator[R]:
    """Yield the result of each task in order, from processes of this machine."""
    # A forked process has the loaded cluster, but waits forever for a lock that another thread held at the fork.
    forks = "fork" in multiprocessing.get_all_start_methods() and threading.active_count() == 1
    context = multiprocessing.get_context("fork" if forks else "spawn")
    with ProcessPoolExecutor(jobs, mp_context=context, initializer=_watch_parent) as executor:
        try:
            yield from run_with_executor(executor, jobs, run, tasks)
        except BrokenProcessPool as error:
            message = "a process of --jobs was killed; if the memory was full, use fewer jobs"
            raise ChildProcessError(message) from error
        except BaseException:
            executor.shutdown(wait=False, cancel_futures=True)
            raise


def _watch_parent() -> None:
    """End this process when its parent ends. Without this, it waits for tasks forever after a kill of the parent."""
    parent = multiprocessing.parent_process()
    if parent is not None:
        threading.Thread(target=_exit_after, args=(parent.sentinel,), daemon=True).start()


def _exit_after(sentinel: int) -> None:
    wait([sentinel])
    os._exit(1)


@contextmanager
def open_dask_executor(address: str) -> Iterator[tuple[Executor, int]]:
    """Connect to the Dask scheduler at *address*, such as `tcp://127.0.0.1:8786`; disconnect at the end of the block.

    Yields:
        An executor that runs calls on the workers, and the number of worker processes, at least 1.

    Raises:
        BadParameter: distributed is not installed, no scheduler answers within ten seconds, or it has no worker.
    """
    try:
        from distributed import Client  # noqa: PLC0415 (optional, and its import takes a second)
        from distributed.comm.addressing import get_address_host_port  # noqa: PLC0415
    except ImportError as error:
        raise typer.BadParameter(
            "needs the package distributed; install it with pip install 'kube-scheduler-extender[dask]'",
            param_hint=_DASK_FLAG,
        ) from error
    try:
        # A client with an invalid address fails only after its construction, and prints a traceback when it is deleted.
        get_address_host_port(address, strict=True)
    except ValueError as error:
        raise typer.BadParameter(
            f"{address!r} is no address of a Dask scheduler; want one such as tcp://10.0.0.7:8786",
            param_hint=_DASK_FLAG,
        ) from error
    try:
        client: Any = Client(address, timeout=_CONNECT_TIMEOUT_SECONDS, set_as_default=False)  # type: ignore[no-untyped-call]
    except (OSError, ValueError) as error:
        raise typer.BadParameter(f"no Dask scheduler answers at {address}: {error}", param_hint=_DASK_FLAG) from error
    with client:
        worker_count = len(client.scheduler_info(n_workers=-1)["workers"])
        if not worker_count:
            raise typer.BadParameter(f"the Dask scheduler at {address} has no worker", param_hint=_DASK_FLAG)
        yield client.get_executor(), worker_count
