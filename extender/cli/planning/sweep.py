"""Run the scenarios of `extender what-if --sweep` in one or several processes, and write the results as JSON lines."""

import hashlib
import multiprocessing
import os
import sys
import threading
from collections import deque
from collections.abc import Iterator, Sequence
from concurrent.futures import Executor, Future, ProcessPoolExecutor
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final

import msgspec
import typer

from extender.analysis.input.input_errors import InputError, InputErrorLine, SourceLocation
from extender.analysis.input.input_files import STDIN
from extender.cli.live.cluster_options import InputOptions
from extender.cli.planning.cluster_input import Cluster, read_cluster, warn_about_missing_budgets
from extender.cli.planning.dask_executor import open_dask_executor
from extender.cli.planning.node_prices import load_price_function
from extender.cli.planning.result_file import ResultFile
from extender.cli.planning.sweep_file import make_sweep_tasks, read_sweep_file
from extender.cli.recording_options import load_setup_for_recording, make_offline_runtime, redirect_plugin_output
from extender.cli.terminal import ProgressBar
from extender.planning.scaling import calculate_pod_changes
from extender.planning.scenario import ScenarioError
from extender.planning.sweep import SweepTask, make_sweep_values
from extender.planning.sweep_table import format_sweep_table, make_sweep_row
from extender.planning.what_if import WhatIfRunner

_CHUNK_SIZE: Final = 8
_CHUNKS_PER_JOB: Final = 3


@dataclass(frozen=True, slots=True)
class SweepInput:
    """What a process needs to run scenarios. Equal inputs give equal results.

    Attributes:
        files: the files of the cluster.
        input_options: one or more configurations; the feature gates and the release are the same in all of them.
        cost_label, prices, seed, verbose: the values of the flags.
    """

    files: tuple[str, ...]
    input_options: tuple[InputOptions, ...]
    cost_label: str
    prices: str
    seed: int
    verbose: bool


@dataclass(frozen=True, slots=True)
class SweepWorkers:
    """The processes that run the scenarios of a sweep.

    Attributes:
        jobs: the number of processes of this machine; 0: one per core.
        scheduler_address: the address of a Dask scheduler, whose workers run the scenarios; empty: no Dask.
    """

    jobs: int = 1
    scheduler_address: str = ""


_clusters: dict[SweepInput, Cluster] = {}
_runners: dict[SweepInput, list[WhatIfRunner]] = {}
"""The loaded clusters of this process, and their runners. A forked process has those of its parent."""
_run_lock: Final = threading.Lock()
"""Held while scenarios run, because they change the loaded cluster. A Dask worker may have several threads."""


def load_sweep_cluster(sweep_input: SweepInput) -> Cluster:
    """Return the cluster with the first configuration; it is read in the first call of a process."""
    if sweep_input not in _clusters:
        _clusters[sweep_input] = read_cluster(sweep_input.files, sweep_input.input_options[0])
    return _clusters[sweep_input]


def get_runners(sweep_input: SweepInput) -> list[WhatIfRunner]:
    """Return one runner for each configuration. All runners share one cache, and leave it as it was."""
    if sweep_input not in _runners:
        cluster = load_sweep_cluster(sweep_input)
        get_price = load_price_function(sweep_input.cost_label, sweep_input.prices)
        setups = [
            cluster.setup
            if index == 0
            else load_setup_for_recording(options.config, cluster.recording, cluster.setup.gates)
            for index, options in enumerate(sweep_input.input_options)
        ]
        _runners[sweep_input] = [
            WhatIfRunner(cluster.cache, setup.profiles, make_offline_runtime(verbose=sweep_input.verbose), get_price)
            for setup in setups
        ]
    return _runners[sweep_input]


def run_tasks(sweep_input: SweepInput, tasks: Sequence[SweepTask]) -> list[bytes]:
    """Run scenarios in this process; return one line of JSON for each. Executors call this function."""
    lines: list[bytes] = []
    with _run_lock, redirect_plugin_output():
        runners = get_runners(sweep_input)
        for task in tasks:
            outcome = runners[task.config_index].run(task.scenario, seed=sweep_input.seed)
            config = sweep_input.input_options[task.config_index].config
            lines.append(msgspec.json.encode(make_sweep_values(task, config, outcome)) + b"\n")
    return lines


def run_with_executor(
    executor: Executor, jobs: int, sweep_input: SweepInput, tasks: Sequence[SweepTask]
) -> Iterator[bytes]:
    """Yield the line of each scenario in order. Any `concurrent.futures.Executor` can be used.

    Args:
        executor: runs `run_tasks`.
        jobs: the number of calls that the executor runs at the same time.
        sweep_input: the cluster and the configurations.
        tasks: the scenarios.
    """
    chunks = (tasks[start : start + _CHUNK_SIZE] for start in range(0, len(tasks), _CHUNK_SIZE))
    futures: deque[Future[list[bytes]]] = deque()
    for chunk in chunks:
        futures.append(executor.submit(run_tasks, sweep_input, chunk))
        if len(futures) >= jobs * _CHUNKS_PER_JOB:
            yield from futures.popleft().result()
    while futures:
        yield from futures.popleft().result()


def run_sweep(file: str, sweep_input: SweepInput, workers: SweepWorkers, *, results: str, print_lines: bool) -> None:
    """Run the scenarios of a sweep file that have no result yet, and print the lines or the table of all scenarios.

    Args:
        file: the file of the sweep.
        sweep_input: the cluster; the configurations of the file, if any, replace those of *sweep_input*.
        workers: the processes that run the scenarios.
        results: the file to which the lines are appended; empty: no file.
        print_lines: whether the lines are printed; otherwise the table is printed.

    Raises:
        BadParameter: the cluster is not read from files, or a value of a scenario is invalid.
        InputError: a file is invalid, a scenario does not match the cluster, or *results* is of another sweep.
    """
    if not sweep_input.files:
        raise typer.BadParameter("needs a recording; write one with extender record", param_hint="--sweep")
    entries, file_configs = read_sweep_file(file)
    if file_configs:
        options = sweep_input.input_options[0]
        sweep_input = replace(
            sweep_input, input_options=tuple(replace(options, config=config) for config in file_configs)
        )
    with redirect_plugin_output():
        cluster = load_sweep_cluster(sweep_input)
        tasks = make_sweep_tasks(entries, len(sweep_input.input_options), cluster)
        _check_tasks(tasks, cluster)
        warn_about_missing_budgets(cluster, drains_nodes=any(task.scenario.drain for task in tasks))
    result_file = ResultFile(results, _make_sweep_id(sweep_input, entries))
    finished_tasks = result_file.open()
    configs = [options.config or None for options in sweep_input.input_options]
    remaining_tasks = [task for task in tasks if (task.name, configs[task.config_index]) not in finished_tasks]
    progress_bar = ProgressBar("scenarios")
    try:
        for number, line in enumerate(
            _run_tasks(sweep_input, remaining_tasks, workers), len(tasks) - len(remaining_tasks) + 1
        ):
            result_file.append(line)
            progress_bar.show(number, len(tasks))
    finally:
        progress_bar.erase()
    if print_lines:
        for line in result_file.read_lines():
            sys.stdout.write(line.decode())
    else:
        sys.stdout.write(format_sweep_table([make_sweep_row(values) for values in result_file.read_values()]))
    sys.stdout.flush()


def _run_tasks(sweep_input: SweepInput, tasks: Sequence[SweepTask], workers: SweepWorkers) -> Iterator[bytes]:
    """Yield the line of each scenario in order, from this process or from others."""
    jobs = workers.jobs or os.cpu_count() or 1
    if workers.scheduler_address:
        with open_dask_executor(workers.scheduler_address) as dask:
            yield from run_with_executor(dask.executor, dask.worker_count, sweep_input, tasks)
    elif jobs == 1:
        for task in tasks:
            yield from run_tasks(sweep_input, [task])
    else:
        yield from _run_in_processes(jobs, sweep_input, tasks)


def _run_in_processes(jobs: int, sweep_input: SweepInput, tasks: Sequence[SweepTask]) -> Iterator[bytes]:
    with ProcessPoolExecutor(jobs, mp_context=multiprocessing.get_context(_choose_start_method())) as executor:
        try:
            yield from run_with_executor(executor, jobs, sweep_input, tasks)
        finally:
            executor.shutdown(wait=False, cancel_futures=True)


def _choose_start_method() -> str:
    """Return how the processes start: "fork" if that is safe, because a forked process has the loaded cluster.

    A process that is forked while another thread holds a lock waits for this lock forever. A spawned process loads the
    cluster by itself.
    """
    forks = "fork" in multiprocessing.get_all_start_methods() and threading.active_count() == 1
    return "fork" if forks else "spawn"


def _check_tasks(tasks: Sequence[SweepTask], cluster: Cluster) -> None:
    """Check all scenarios before the first one runs.

    Raises:
        InputError: a scenario does not match the cluster. The error of the first such scenario is reported.
    """
    for task in tasks:
        try:
            task.scenario.check(cluster.cache.snapshot())
            for scale in task.scenario.scale:
                calculate_pod_changes(scale, cluster.cache)
        except ScenarioError as error:
            raise InputError(
                InputErrorLine(SourceLocation(f"scenario {task.name}"), line) for line in error.errors
            ) from error


def _make_sweep_id(sweep_input: SweepInput, entries: object) -> str:
    """Return a hash of the scenarios, the flags, and the contents of all files that the flags name."""
    configs = [options.config for options in sweep_input.input_options]
    files = [*sweep_input.files, *configs, sweep_input.prices]
    contents = [
        hashlib.sha256(Path(file).read_bytes()).hexdigest() if file and file != STDIN else file for file in files
    ]
    options = sweep_input.input_options[0]
    flags = [*options.feature_gates, *options.emulated_versions, sweep_input.cost_label, str(sweep_input.seed)]
    return hashlib.sha256(msgspec.json.encode([contents, flags, entries])).hexdigest()[:16]
