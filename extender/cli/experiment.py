"""`extender experiment`: place the pods of a GPU trace with several policies, and compare the allocated GPUs."""

import csv
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack, closing, suppress
from enum import Enum
from functools import lru_cache, partial
from io import StringIO
from itertools import product
from pathlib import Path
from typing import Annotated, Final, TextIO, TypeAlias

import msgspec
import typer

from extender.analysis.input.input_errors import make_input_error
from extender.analysis.input.input_files import STDIN
from extender.analysis.recorded_cluster import read_recording
from extender.analysis.text_table import format_count
from extender.cli.planning.result_file import ResultFile, make_digest, make_plugin_digest
from extender.cli.planning.workers import RUN_LOCK, Workers, run_tasks
from extender.cli.recording_options import redirect_plugin_output
from extender.cli.terminal import ProgressBar, write_error
from extender.experiments.defragmentation import Defragmentation, defragment
from extender.experiments.gpu_trace import Trace, TraceError, make_trace
from extender.experiments.plots import MatplotlibMissingError, check_matplotlib, write_plots
from extender.experiments.policies import POLICIES, Policy, UnknownPolicyError, find_policies
from extender.experiments.published_results import PUBLISHED_PERCENTS, TRACE_FIGURES, measure_trace
from extender.experiments.report import (
    CSV_COLUMNS,
    format_defragmentation,
    format_report,
    make_csv_rows,
    make_curve_values,
    make_run_values,
)
from extender.experiments.runner import Run, run_experiment
from extender.experiments.trace_cluster import RunError, find_pods_without_node
from extender.planning.rebalance.report import make_rebalance_values

_EPILOG: Final = f"""\b
Examples:
  extender experiment --trace default.json.gz --policy FGD,Fill --seeds 42-51 --jobs 2
  extender experiment --trace default.json.gz --policy BestFit,Fill --published default
  extender experiment --trace default.json.gz --policy BestFit,FGD,Fill --plots plots
  extender experiment --trace default.json.gz --policy BestFit -o csv > runs.csv
  extender experiment --trace default.json.gz --seeds 1-500 --results runs.jsonl
  extender experiment --trace default.json.gz --policy MyScore --curves curves.jsonl   an installed Score plugin

Policies: {", ".join(POLICIES)}, or the name of an installed Score plugin.
Fill lets wasteful pods wait although a GPU is free; the other policies place every pod that fits."""

_MAX_SEEDS: Final = 10_000

_Trace: TypeAlias = Annotated[
    str,
    typer.Option(
        metavar="FILE",
        help="Recorded cluster with GPU nodes and pending pods: YAML or JSON, plain or gzipped. "
        "docs/science.md converts the CSV files of a trace.",
    ),
]
_Seeds: TypeAlias = Annotated[
    str, typer.Option(metavar="RANGE", help="Seeds of the order of pods and nodes, such as 42-51 or 1,3,5.")
]
_Curves: TypeAlias = Annotated[
    str, typer.Option(metavar="FILE", help="Write the allocation by arrived demand to this file, as JSON lines.")
]
_Plots: TypeAlias = Annotated[
    str, typer.Option(metavar="DIR", help="Draw allocation, waiting pods and fragmentation by cause as SVG files.")
]
_Published: TypeAlias = Annotated[
    str, typer.Option(metavar="VARIANT", help="Compare with the results published for this variant of openb.")
]
_Moves: TypeAlias = Annotated[
    float,
    typer.Option(
        metavar="PERCENT", help="Then move at most this part of the pods, so that waiting pods fit.", min=0, max=100
    ),
]
_Jobs: TypeAlias = Annotated[int, typer.Option(metavar="N", help="Number of processes; 0: one per core.")]
_SchedulerAddress: TypeAlias = Annotated[
    str,
    typer.Option(
        metavar="URL", help="Run on the workers of the Dask scheduler at this address, which read the same files."
    ),
]
_Results: TypeAlias = Annotated[
    str, typer.Option(metavar="FILE", help="Add the runs to this file, and skip the runs that it has.")
]
_Plans: TypeAlias = Annotated[
    str, typer.Option(metavar="DIR", help="With --moves: write the plan of each run, as `rebalance -o json` does.")
]

app = typer.Typer(rich_markup_mode=None, add_completion=False)


OnProgress: TypeAlias = Callable[[float], None]
"""A function that is called with the finished part of a run, from 0 to 1."""

RunAll: TypeAlias = Callable[[Sequence[tuple[Policy, int]]], Iterable[Run]]
"""A function that returns the run of each policy with a seed, in order."""


class ReportFormat(Enum):
    """The output format."""

    TABLE = "table"
    JSONL = "jsonl"
    CSV = "csv"


@app.command(epilog=_EPILOG)
def experiment(
    trace: _Trace,
    policy: Annotated[str, typer.Option(metavar="NAME[,NAME]", help="Policies to compare.")] = "FGD,Fill",
    seeds: _Seeds = "42-51",
    output: Annotated[ReportFormat, typer.Option("--output", "-o", help="Output format.")] = ReportFormat.TABLE,
    jobs: _Jobs = 1,
    scheduler_address: _SchedulerAddress = "",
    curves: _Curves = "",
    plots: _Plots = "",
    results: _Results = "",
    moves: _Moves = 0.0,
    plans: _Plans = "",
    published: _Published = "",
) -> None:
    """Place the pods of a trace one after another on its empty GPU nodes, and show the allocated part of the GPUs.

    The seed shuffles the pods and the nodes. Clones of pods are added until the pods request 1.3 times the GPUs. No pod
    is removed, and a pod that fits nowhere is dropped. Among equally good nodes, the first in the shuffled order is
    taken. Each run uses the scheduling cycle and the plugin GpuShare, as `extender schedule` does. Equal seeds give
    equal results. With -o jsonl there is a line for each policy and seed, which is written when the run ends. With
    -o csv there is one for each per cent of the arrived demand.

    With --results, an interrupted command continues where it ended, and other policies and seeds can be added later.
    """
    workers = Workers(jobs, scheduler_address)
    workers.validate("experiments")
    seed_numbers = _parse_seeds(seeds)
    _check_variant(published)
    _prepare_directories(plots, plans, moves)
    policies, gpu_trace = _read_policies(policy), _read_variant(trace, published)
    _warn_about_pods_without_node(gpu_trace)
    tasks = list(product(policies, seed_numbers))
    runs = list[Run]()
    with ExitStack() as stack:
        saved_runs = stack.enter_context(closing(_SavedRuns(results, gpu_trace, policies)))
        curve_file = stack.enter_context(_open_curves(curves)) if curves else None
        stack.callback(_finish_report, runs, len(tasks), output, published, saved=bool(results))
        bar = stack.enter_context(ProgressBar("runs"))
        bar.show(0, len(tasks))
        progress = _report_in_this_process(workers, lambda part: bar.show(len(runs) + part, len(tasks)))
        run_source = partial(run_task, gpu_trace if trace == STDIN else trace, on_progress=progress)
        for run in saved_runs.complete(tasks, lambda remaining: run_tasks(workers, run_source, remaining)):
            bar.erase()
            _write_run(run, output, curve_file, is_first=not runs)
            runs.append(run)
            bar.show(len(runs), len(tasks))
    for path in write_plots(runs, Path(plots)) if plots else ():
        typer.echo(f"wrote {path}", err=True)
    if moves:
        _show_moves(gpu_trace if trace == STDIN else trace, tasks, moves, plans, workers)


def _report_in_this_process(workers: Workers, on_progress: OnProgress) -> OnProgress | None:
    """Return *on_progress* if this process makes the runs; other processes cannot call it."""
    return on_progress if workers.runs_in_this_process else None


def _warn_about_pods_without_node(trace: Trace) -> None:
    """Print how many pods fit on no node of the empty cluster, for example because of a wrong unit."""
    pods = dict[str, str]()
    with suppress(RunError):  # the runs end with this error
        pods = find_pods_without_node(trace)
    for key, message in list(pods.items())[:1]:
        count = f"{len(pods):,} of {format_count(len(trace.pods), 'pod')}"
        write_error(f"note: {count} can never be placed; {key} on the empty cluster: {message}")


class _SavedRun(msgspec.Struct, frozen=True):
    """A line of `--results`. *plugins* is the digest of the installed plugins if the policy is one of them."""

    plugins: str
    run: Run


class _SavedRuns:
    """The finished runs in the file of `--results`; without a file there are none.

    Raises:
        InputError: the file has the runs of another trace or release, or other content, or cannot be read or written.
    """

    def __init__(self, file: str, trace: Trace, policies: Iterable[Policy]) -> None:
        inputs = {"trace": make_digest([trace.nodes, trace.pods])} if file else {}
        self._file = ResultFile(file, inputs, msgspec.json.Decoder(_SavedRun).decode)
        self._plugins = make_plugin_digest() if file and any(policy.is_plugin for policy in policies) else ""
        saved_runs = self._file.open()
        self._runs = {(saved.run.policy, saved.run.seed, saved.plugins): saved.run for saved in saved_runs}

    def close(self) -> None:
        """Let other commands open the file."""
        self._file.close()

    def complete(self, tasks: Sequence[tuple[Policy, int]], run_all: RunAll) -> Iterator[Run]:
        """Yield the run of each task, in order. *run_all* makes the runs that are not in the file; it gets them."""
        keys = [(policy.name, seed, self._plugins if policy.is_plugin else "") for policy, seed in tasks]
        new_runs = iter(run_all([task for task, key in zip(tasks, keys, strict=True) if key not in self._runs]))
        for key in keys:
            run = self._runs.get(key)
            if run is None:
                run = next(new_runs)
                self._file.append(msgspec.json.encode(_SavedRun(key[2], run)) + b"\n")
            yield run


def _finish_report(runs: Sequence[Run], total: int, output: ReportFormat, variant: str, *, saved: bool) -> None:
    """Print the table of the finished runs, also after Ctrl-C or an error, which is noted on standard error."""
    if len(runs) < total and not isinstance(sys.exception(), typer.BadParameter):
        advice = "the same command continues" if saved else "equal seeds give equal results"
        write_error(f"note: stopped after {len(runs)} of {total} runs; {advice}")
    if runs and output is ReportFormat.TABLE:
        typer.echo(format_report(runs, variant), nl=False)


def _show_moves(
    source: Trace | str, tasks: Sequence[tuple[Policy, int]], percent: float, directory: str, workers: Workers
) -> None:
    """Print to standard error how much more fits with moves, and write the plans; no name of a directory writes none.

    Raises:
        OSError: a plan cannot be written.
    """
    with ProgressBar("runs with moves") as bar:
        bar.show(0, len(tasks))
        done = 0
        progress = _report_in_this_process(workers, lambda part: bar.show(done + part, len(tasks)))
        for result in run_tasks(workers, partial(move_task, source, percent, on_progress=progress), tasks):
            bar.erase()
            typer.echo(format_defragmentation(result), err=True)
            if directory:
                path = Path(directory) / f"{result.policy}-{result.seed}.json"
                path.write_bytes(msgspec.json.encode(make_rebalance_values(result.plan)) + b"\n")
            done += 1
            bar.show(done, len(tasks))


def run_task(source: Trace | str, task: tuple[Policy, int], on_progress: OnProgress | None = None) -> Run:
    """Run a policy with a seed; what plugins print goes to standard error. Executors call this function.

    *source* is the trace, or its file, which a process reads once; see `run_experiment` for *on_progress*.

    Raises:
        RunError: a plugin failed.
        InputError: the file is no trace of GPU pods.
    """
    with RUN_LOCK, redirect_plugin_output():
        return run_experiment(_read_trace(source) if isinstance(source, str) else source, *task, on_progress)


def move_task(
    source: Trace | str, percent: float, task: tuple[Policy, int], on_progress: OnProgress | None = None
) -> Defragmentation:
    """Move at most *percent* of the pods of a policy with a seed; see `run_task`, also for the errors."""
    with RUN_LOCK, redirect_plugin_output():
        return defragment(_read_trace(source) if isinstance(source, str) else source, *task, percent, on_progress)


def _write_run(run: Run, output: ReportFormat, curves: TextIO | None, *, is_first: bool) -> None:
    """Write the lines of a run to standard output, and the line of its curves to *curves*."""
    if output is ReportFormat.JSONL:
        _write_text(sys.stdout, _make_line(make_run_values(run)))
    if output is ReportFormat.CSV:
        text = StringIO()
        csv.writer(text, lineterminator="\n").writerows([*([CSV_COLUMNS] if is_first else ()), *make_csv_rows(run)])
        _write_text(sys.stdout, text.getvalue())
    if curves is not None:
        _write_text(curves, _make_line(make_curve_values(run)))


def _make_line(values: dict[str, object]) -> str:
    return msgspec.json.encode(values).decode() + "\n"


def _write_text(file: TextIO, text: str) -> None:
    """Write *text*.

    Raises:
        OSError: the file cannot be written, for example because the disk is full. The error names the file.
    """
    try:
        file.write(text)
        file.flush()
    except BrokenPipeError:
        raise
    except OSError as error:
        with suppress(OSError):
            file.close()  # otherwise it would try to write the line again, and raise without its name
        raise OSError(error.errno, error.strerror, file.name) from error


def _open_curves(file: str) -> TextIO:
    try:
        return Path(file).open("w", encoding="utf-8")
    except OSError as error:
        raise typer.BadParameter(f"{file}: {error.strerror}", param_hint="--curves") from error


def _read_policies(text: str) -> list[Policy]:
    names = list(filter(None, text.split(",")))
    if not names:
        raise typer.BadParameter("want at least one name", param_hint="--policy")
    try:
        return find_policies(names)
    except UnknownPolicyError as error:
        raise typer.BadParameter(str(error), param_hint="--policy") from error


@lru_cache(maxsize=1)
def _read_trace(file: str) -> Trace:
    """Read the nodes and the pending pods of a recording. A forked process has the trace of its parent."""
    try:
        return make_trace(read_recording([file]))
    except TraceError as error:
        raise make_input_error(file, str(error)) from error


def _check_variant(name: str) -> None:
    """Check the name of a variant with published results; no name is allowed."""
    if name and name not in PUBLISHED_PERCENTS:
        message = f'want one of {", ".join(PUBLISHED_PERCENTS)}, got "{name}"'
        raise typer.BadParameter(message, param_hint="--published")


def _read_variant(file: str, variant: str) -> Trace:
    """Read the trace, which must be the variant whose published results are compared; no name of one is allowed.

    Raises:
        InputError: the recording is invalid, or it is no trace of GPU pods.
        typer.BadParameter: the trace is another variant.
    """
    trace = _read_trace(file)
    figures = measure_trace(trace) if variant else None
    if figures is not None and figures != TRACE_FIGURES[variant]:
        others = [name for name, other in TRACE_FIGURES.items() if other == figures]
        message = f"the trace is not this variant of openb, which has {TRACE_FIGURES[variant]}. "
        message += f"It is the variant {others[0]}" if others else f"It has {figures}"
        raise typer.BadParameter(message, param_hint="--published")
    return trace


def _prepare_directories(plots: str, plans: str, moves: float) -> None:
    """Check that plots can be drawn, and create the directories, before the runs start; no name is allowed."""
    if plans and not moves:
        raise typer.BadParameter("needs --moves PERCENT", param_hint="--plans")
    try:
        if plots:
            check_matplotlib()
    except MatplotlibMissingError as error:
        raise typer.BadParameter(str(error), param_hint="--plots") from error
    _make_directory(plots, "--plots")
    _make_directory(plans, "--plans")


def _make_directory(directory: str, flag: str) -> None:
    """Create a directory for outputs before the runs start; no name creates none."""
    try:
        Path(directory).mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise typer.BadParameter(f"{directory}: {error.strerror}", param_hint=flag) from error


def _parse_seeds(text: str) -> list[int]:
    """Return the seeds of ranges such as `42-51` and numbers, separated by commas."""
    seeds: dict[int, None] = {}
    for part in text.split(","):
        first, separator, last = part.partition("-")
        if not first.isdecimal() or (separator and not last.isdecimal()):
            raise typer.BadParameter(f'want numbers and ranges such as 42-51, got "{part}"', param_hint="--seeds")
        numbers = range(int(first), int(last or first) + 1)
        if not numbers or len(numbers) > _MAX_SEEDS:
            message = f'want 1 to {_MAX_SEEDS:,} seeds, the lowest first, got "{part}"'
            raise typer.BadParameter(message, param_hint="--seeds")
        seeds.update(dict.fromkeys(numbers))
    return list(seeds)
