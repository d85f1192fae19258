"""`extender experiment`: place the pods of a GPU trace with several policies, and compare the allocated GPUs."""

import sys
from collections.abc import Iterable, Sequence
from contextlib import ExitStack, suppress
from enum import Enum
from functools import lru_cache, partial
from itertools import product
from pathlib import Path
from typing import Annotated, Final, TextIO, TypeAlias

import msgspec
import typer

from extender.analysis.input.input_errors import make_input_error
from extender.analysis.input.input_files import STDIN
from extender.analysis.recorded_cluster import read_recording
from extender.cli.planning.workers import RUN_LOCK, Workers, run_tasks
from extender.cli.recording_options import redirect_plugin_output
from extender.cli.terminal import ProgressBar, write_error
from extender.experiments.defragmentation import defragment
from extender.experiments.gpu_trace import Trace, TraceError, make_trace
from extender.experiments.plots import MatplotlibMissingError, check_matplotlib, write_plots
from extender.experiments.policies import POLICIES, Policy, UnknownPolicyError, find_policies
from extender.experiments.published_results import PUBLISHED_PERCENTS, TRACE_FIGURES, measure_trace
from extender.experiments.report import format_defragmentation, format_report, make_curve_values, make_run_values
from extender.experiments.runner import Run, run_experiment
from extender.planning.rebalance.report import make_rebalance_values

_EPILOG: Final = f"""\b
Examples:
  extender experiment --trace default.json.gz --policy FGD,Fill --seeds 42-51 --jobs 2
  extender experiment --trace default.json.gz --policy BestFit,Fill --published default
  extender experiment --trace default.json.gz --policy BestFit,FGD,Fill --plots plots
  extender experiment --trace default.json.gz --policy BestFit -o jsonl > runs.jsonl
  extender experiment --trace default.json.gz --policy MyScore --curves curves.jsonl   an installed Score plugin

\b
Policies: {", ".join(POLICIES)}, or the name of an installed Score plugin.
Fill lets wasteful pods wait although a GPU is free; the other policies place every pod that fits."""

_MAX_SEEDS: Final = 10_000

_Trace: TypeAlias = Annotated[
    str,
    typer.Option(
        metavar="FILE", help="Recorded cluster with GPU nodes and pending pods: YAML or JSON, plain or gzipped."
    ),
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
_Plans: TypeAlias = Annotated[
    str, typer.Option(metavar="DIR", help="With --moves: write the plan of each run, as `rebalance -o json` does.")
]

app = typer.Typer(rich_markup_mode=None, add_completion=False)


class ReportFormat(Enum):
    """The output format."""

    TABLE = "table"
    JSONL = "jsonl"


@app.command(epilog=_EPILOG)
def experiment(
    trace: _Trace,
    policy: Annotated[str, typer.Option(metavar="NAME[,NAME]", help="Policies to compare.")] = "FGD,Fill",
    seeds: Annotated[
        str, typer.Option(metavar="RANGE", help="Seeds of the order of pods and nodes, such as 42-51 or 1,3,5.")
    ] = "42-51",
    output: Annotated[ReportFormat, typer.Option("--output", "-o", help="Output format.")] = ReportFormat.TABLE,
    jobs: _Jobs = 1,
    scheduler_address: _SchedulerAddress = "",
    curves: Annotated[
        str, typer.Option(metavar="FILE", help="Write the allocation by arrived demand to this file, as JSON lines.")
    ] = "",
    plots: Annotated[
        str, typer.Option(metavar="DIR", help="Draw allocation, waiting pods and fragmentation by cause as SVG files.")
    ] = "",
    moves: _Moves = 0.0,
    plans: _Plans = "",
    published: Annotated[
        str, typer.Option(metavar="VARIANT", help="Compare with the results published for this variant of openb.")
    ] = "",
) -> None:
    """Place the pods of a trace one after another on its empty GPU nodes, and show the allocated part of the GPUs.

    The seed shuffles the pods and the nodes. Clones of pods are added until the pods request 1.3 times the GPUs. No pod
    is removed, and a pod that fits nowhere is dropped. Among equally good nodes, the first in the shuffled order is
    taken. Each run uses the scheduling cycle and the plugin GpuShare, as `extender schedule` does. Equal seeds give
    equal results. With -o jsonl there is a line for each policy and seed, which is written when the run ends.
    """
    workers = Workers(jobs, scheduler_address)
    workers.validate("experiments")
    _check_plans(plans, moves)
    seed_numbers = _parse_seeds(seeds)
    _check_variant(published)
    _prepare_directories(plots, plans)
    policies, gpu_trace = _read_policies(policy), _read_variant(trace, published)
    runs, total = list[Run](), len(policies) * len(seed_numbers)
    with ExitStack() as stack:
        curve_file = stack.enter_context(_open_curves(curves)) if curves else None
        run_source = partial(run_task, gpu_trace if trace == STDIN else trace)
        stack.callback(_finish_report, runs, total, output, published)
        bar = stack.enter_context(ProgressBar("runs"))
        bar.show(0, total)
        for run in run_tasks(workers, run_source, product(policies, seed_numbers)):
            bar.erase()
            _write_run(run, sys.stdout if output is ReportFormat.JSONL else None, curve_file)
            runs.append(run)
            bar.show(len(runs), total)
    _draw_plots(plots, runs)
    if moves:
        _show_moves(gpu_trace, product(policies, seed_numbers), moves, plans)


def _finish_report(runs: Sequence[Run], total: int, output: ReportFormat, variant: str) -> None:
    """Print the table of the finished runs, also after Ctrl-C or an error, which is noted on standard error."""
    if len(runs) < total:
        write_error(f"note: stopped after {len(runs)} of {total} runs; equal seeds give equal results")
    if runs and output is ReportFormat.TABLE:
        typer.echo(format_report(runs, variant), nl=False)


def _check_plans(directory: str, moves: float) -> None:
    """Refuse a directory for plans if no moves are planned.

    Raises:
        BadParameter: *directory* is named, and *moves* is 0.
    """
    if directory and not moves:
        raise typer.BadParameter("needs --moves PERCENT", param_hint="--plans")


def _show_moves(trace: Trace, runs: Iterable[tuple[Policy, int]], percent: float, directory: str) -> None:
    """Print to standard error how much more fits with moves, and write the plans; no name of a directory writes none.

    Raises:
        OSError: a plan cannot be written.
    """
    for policy, seed in runs:
        with redirect_plugin_output():
            result = defragment(trace, policy, seed, percent)
        typer.echo(format_defragmentation(result), err=True)
        if directory:
            path = Path(directory) / f"{policy.name}-{seed}.json"
            path.write_bytes(msgspec.json.encode(make_rebalance_values(result.plan)) + b"\n")


def run_task(source: Trace | str, task: tuple[Policy, int]) -> Run:
    """Run a policy with a seed; what plugins print goes to standard error. Executors call this function.

    Args:
        source: the trace, or its file, which a process reads once.
        task: the policy and the seed.

    Raises:
        RunError: a plugin failed.
        InputError: the file is no trace of GPU pods.
    """
    with RUN_LOCK, redirect_plugin_output():
        return run_experiment(_read_trace(source) if isinstance(source, str) else source, *task)


def _write_run(run: Run, output: TextIO | None, curves: TextIO | None) -> None:
    """Write the line of a run, and the line of its curves; None writes nothing."""
    if output is not None:
        _write_line(output, make_run_values(run))
    if curves is not None:
        _write_line(curves, make_curve_values(run))


def _write_line(file: TextIO, values: dict[str, object]) -> None:
    """Write a line of JSON.

    Raises:
        OSError: the file cannot be written, for example because the disk is full. The error names the file.
    """
    try:
        file.write(msgspec.json.encode(values).decode() + "\n")
        file.flush()
    except BrokenPipeError:
        raise
    except OSError as error:
        with suppress(OSError):
            file.close()  # otherwise it would try to write the line again, and raise without its name
        raise OSError(error.errno, error.strerror, file.name) from error


def _open_curves(file: str) -> TextIO:
    """Create the file of the curves.

    Raises:
        typer.BadParameter: it cannot be created.
    """
    try:
        return Path(file).open("w", encoding="utf-8")
    except OSError as error:
        raise typer.BadParameter(f"{file}: {error.strerror}", param_hint="--curves") from error


def _read_policies(text: str) -> list[Policy]:
    """Return the policies whose names *text* separates by commas.

    Raises:
        typer.BadParameter: there is no name, or one is unknown.
    """
    names = list(filter(None, text.split(",")))
    if not names:
        raise typer.BadParameter("want at least one name", param_hint="--policy")
    try:
        return find_policies(names)
    except UnknownPolicyError as error:
        raise typer.BadParameter(str(error), param_hint="--policy") from error


@lru_cache(maxsize=1)
def _read_trace(file: str) -> Trace:
    """Read the nodes and the pending pods of a recording. A forked process has the trace of its parent.

    Raises:
        InputError: the recording is invalid, or it is no trace of GPU pods.
    """
    try:
        return make_trace(read_recording([file]))
    except TraceError as error:
        raise make_input_error(file, str(error)) from error


def _check_variant(name: str) -> None:
    """Check the name of a variant with published results; no name is allowed.

    Raises:
        typer.BadParameter: the name is unknown.
    """
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


def _prepare_directories(plots: str, plans: str) -> None:
    """Check that plots can be drawn, and create the directories, before the runs start; no name is allowed.

    Raises:
        typer.BadParameter: matplotlib is not installed, or a directory cannot be created.
    """
    try:
        if plots:
            check_matplotlib()
    except MatplotlibMissingError as error:
        raise typer.BadParameter(str(error), param_hint="--plots") from error
    _make_directory(plots, "--plots")
    _make_directory(plans, "--plans")


def _make_directory(directory: str, flag: str) -> None:
    """Create a directory for outputs before the runs start; no name creates none.

    Raises:
        typer.BadParameter: it cannot be created.
    """
    try:
        Path(directory).mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise typer.BadParameter(f"{directory}: {error.strerror}", param_hint=flag) from error


def _draw_plots(directory: str, runs: Sequence[Run]) -> None:
    """Draw the plots and print their paths to standard error; no name draws none."""
    for path in write_plots(runs, Path(directory)) if directory else ():
        typer.echo(f"wrote {path}", err=True)


def _parse_seeds(text: str) -> list[int]:
    """Return the seeds of ranges such as `42-51` and numbers, separated by commas.

    Raises:
        typer.BadParameter: the text is invalid.
    """
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
