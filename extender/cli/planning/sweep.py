"""Run the scenarios of a file of `extender what-if --sweep` in one or several processes, and write JSON lines."""

import re
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from functools import cache, partial
from pathlib import Path
from typing import Any, Final

import msgspec
import typer

from extender.analysis.input.input_errors import InputError, InputErrorLine, make_input_error
from extender.analysis.input.input_files import STDIN
from extender.cli.live.cluster_options import read_cluster
from extender.cli.options import OutputFormat
from extender.cli.planning.cluster_input import warn_about_missing_budgets
from extender.cli.planning.node_prices import load_price_function
from extender.cli.planning.result_file import ResultFile, make_digest, make_file_digest, make_plugin_digest
from extender.cli.planning.scenario_input import ScenarioFlags, read_scenario
from extender.cli.planning.workers import RUN_LOCK, Workers, run_tasks
from extender.cli.recording_options import (
    Cluster,
    InputOptions,
    load_setup_for_recording,
    make_offline_runtime,
    read_document,
    redirect_plugin_output,
)
from extender.cli.terminal import FITS, WAITS, ProgressBar, write_text
from extender.config.did_you_mean import did_you_mean
from extender.config.documents import dump_yaml
from extender.planning.scaling import calculate_pod_changes
from extender.planning.scenario import ScenarioError
from extender.planning.sweep import (
    SweepTask,
    expand_wildcards,
    format_scenario_name,
    format_sweep_table,
    make_sweep_row,
    make_sweep_values,
)
from extender.planning.what_if import WhatIfRunner

_TOP_KEYS: Final = ("scenarios", "configs")
_LIST_FLAGS: Final = (
    "drain", "cordon", "remove", "lose", "add", "like", "nodes", "pods", "scale", "taint", "label",
)  # fmt: skip
_SINGLE_FLAGS: Final = ("replicas", "namespace", "preempt")
_KEYS: Final = ("name", *_LIST_FLAGS, *_SINGLE_FLAGS)
_NUMBER: Final = re.compile(r"[0-9]{1,9}")
_MAX_SCENARIOS: Final = 1_000_000


def read_sweep_file(file: str) -> tuple[list[dict[str, Any]], list[str]]:
    """Return the scenarios of a file, with wildcards, and its configuration files.

    Raises:
        InputError: the file is invalid; contains all errors.
    """
    location, document = read_document(file)
    errors = [InputErrorLine(location, message, path=path) for path, message in _find_errors(document)]
    if errors:
        raise InputError(errors)
    return document["scenarios"], document.get("configs") or []


def _find_errors(document: object) -> Iterator[tuple[str, str]]:
    """Yield the path and the message of each error."""
    if not isinstance(document, dict) or not isinstance(document.get("scenarios"), list) or not document["scenarios"]:
        yield "scenarios", "want a list of scenarios, such as - drain: n1"
        return
    for key in document.keys() - set(_TOP_KEYS):
        yield str(key), f"is unknown; want scenarios or configs{did_you_mean(str(key), _TOP_KEYS)}"
    configs = document.get("configs") or []
    if not isinstance(configs, list) or not all(isinstance(config, str) for config in configs):
        yield "configs", "want a list of file names"
    for index, entry in enumerate(document["scenarios"]):
        yield from _find_scenario_errors(f"scenarios[{index}]", entry)


def _find_scenario_errors(path: str, entry: object) -> Iterator[tuple[str, str]]:
    if not isinstance(entry, dict) or not entry:
        yield path, "want the flags of what-if without dashes, such as drain: n1"
        return
    for key, value in entry.items():
        values = value if isinstance(value, list) else [value]
        if key not in _KEYS:
            yield f"{path}.{key}", f"is no flag of a scenario{did_you_mean(str(key), _KEYS)}"
        elif key == "preempt":
            if not isinstance(value, bool):
                yield f"{path}.{key}", "want true or false"
        elif key in ("add", "replicas"):
            if not values or not all(_NUMBER.fullmatch(str(item)) for item in values):
                yield f"{path}.{key}", "want a number"
        elif not values or not all(isinstance(item, str) for item in values):
            yield f"{path}.{key}", "want text, or a list of texts"


def make_sweep_tasks(entries: list[dict[str, Any]], config_count: int, cluster: Cluster) -> list[SweepTask]:
    """Expand the wildcards of all scenarios, and check each scenario's values; one task for each configuration.

    Raises:
        BadParameter: a value is invalid, or there are too many scenarios.
        InputError: a file that a scenario names is invalid.
    """
    tasks: list[SweepTask] = []
    names: set[str] = set()
    snapshot = cluster.cache.snapshot()
    for entry in entries:
        lists = {key: _to_texts(entry[key]) for key in entry if key in _LIST_FLAGS}
        for flags in expand_wildcards(lists, snapshot):
            scenario = read_scenario(_make_flags(flags, entry), cluster)
            name = _choose_name(entry, flags, names)
            names.add(name)
            tasks += [SweepTask(name, scenario, index) for index in range(max(1, config_count))]
            if len(tasks) > _MAX_SCENARIOS:
                raise typer.BadParameter(f"more than {_MAX_SCENARIOS} scenarios", param_hint="--sweep")
    return tasks


def _to_texts(value: Any) -> list[str]:
    return [str(item) for item in (value if isinstance(value, list) else [value])]


def _make_flags(flags: Mapping[str, list[str]], entry: Mapping[str, Any]) -> ScenarioFlags:
    single_values = {key: entry[key] for key in _SINGLE_FLAGS if key in entry}
    if "replicas" in single_values:
        single_values["replicas"] = int(single_values["replicas"])
    added_counts = {"add": [int(count) for count in flags["add"]]} if "add" in flags else {}
    values: dict[str, Any] = {**flags, **added_counts, **single_values}
    return ScenarioFlags(**values)


def _choose_name(entry: Mapping[str, Any], flags: Mapping[str, list[str]], used_names: set[str]) -> str:
    """Return the name of a scenario: its `name`, or its flags, or both if the flags have a wildcard.

    A name that is taken gets a number.
    """
    single_values = {key: [str(entry[key]).lower()] for key in _SINGLE_FLAGS if key in entry}
    text = format_scenario_name({**flags, **single_values})
    has_wildcard = any(value.endswith("*") for key in flags for value in _to_texts(entry[key]))
    own_name = str(entry.get("name", ""))
    name = f"{own_name}: {text}" if own_name and has_wildcard else own_name or text
    unique_name, number = name, 2
    while unique_name in used_names:
        unique_name, number = f"{name} #{number}", number + 1
    return unique_name


_CHUNK_SIZE: Final = 8


@dataclass(frozen=True, slots=True)
class SweepInput:
    """The input of a process that runs scenarios. Equal inputs give equal results.

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


@cache
def load_sweep_cluster(sweep_input: SweepInput) -> Cluster:
    """Return the cluster with the first configuration. A process reads it once; a forked process has its parent's."""
    return read_cluster(sweep_input.files, sweep_input.input_options[0])


@cache
def get_runners(sweep_input: SweepInput) -> list[WhatIfRunner]:
    """Return one runner for each configuration. All runners share one cache, and leave it as it was."""
    cluster = load_sweep_cluster(sweep_input)
    get_price = load_price_function(sweep_input.cost_label, sweep_input.prices)
    setups = [cluster.setup] + [
        load_setup_for_recording(options.config, cluster.recording, cluster.setup.gates)
        for options in sweep_input.input_options[1:]
    ]
    return [
        WhatIfRunner(cluster.cache, setup.profiles, make_offline_runtime(verbose=sweep_input.verbose), get_price)
        for setup in setups
    ]


def run_scenarios(sweep_input: SweepInput, tasks: Sequence[SweepTask]) -> list[bytes]:
    """Run scenarios, which change the loaded cluster, in this process; return one line of JSON for each."""
    lines: list[bytes] = []
    with RUN_LOCK, redirect_plugin_output():
        runners = get_runners(sweep_input)
        for task in tasks:
            outcome = runners[task.config_index].run(task.scenario, seed=sweep_input.seed)
            config = sweep_input.input_options[task.config_index].config
            lines.append(msgspec.json.encode(make_sweep_values(task, config, outcome)) + b"\n")
    return lines


def run_sweep(file: str, sweep_input: SweepInput, workers: Workers, *, results: str, output: OutputFormat) -> int:
    """Run the scenarios of a sweep file that have no result yet, and print the results or the table of all scenarios.

    Returns the exit status for `--exit-code`: whether a scenario leaves a pod waiting.

    Args:
        file: the file of the sweep.
        sweep_input: the cluster; the configurations of the file, if any, replace those of *sweep_input*.
        workers: the processes that run the scenarios.
        results: the file to which the lines are appended; empty: no file.
        output: JSON prints the lines, YAML one document for each scenario.

    Raises:
        BadParameter: the cluster is not read from files, or a value of a scenario is invalid.
        InputError: a file is invalid, a scenario does not match the cluster, or *results* is of another sweep.
    """
    if not sweep_input.files:
        raise typer.BadParameter('needs a recording with -f; the command "record" writes one', param_hint="--sweep")
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
    inputs = _describe_inputs(sweep_input, entries, cluster) if results else {}
    with closing(ResultFile(results, inputs, _decode_task)) as result_file:
        _run_remaining_tasks(sweep_input, tasks, workers, result_file)
        _write_results(result_file, output)
        return WAITS if any(values["waiting"] for values in result_file.read_values()) else FITS


def _run_remaining_tasks(
    sweep_input: SweepInput,
    tasks: Sequence[SweepTask],
    workers: Workers,
    result_file: ResultFile[tuple[str, str | None]],
) -> None:
    finished_tasks = set(result_file.open())
    configs = [options.config or None for options in sweep_input.input_options]
    remaining_tasks = [task for task in tasks if (task.name, configs[task.config_index]) not in finished_tasks]
    lines = _run_tasks(sweep_input, remaining_tasks, workers)
    with ProgressBar("scenarios") as progress_bar:
        for number, line in enumerate(lines, len(tasks) - len(remaining_tasks) + 1):
            result_file.append(line)
            progress_bar.show(number, len(tasks))


def _write_results(result_file: ResultFile[Any], output: OutputFormat) -> None:
    match output:
        case OutputFormat.JSON:
            for line in result_file.read_lines():
                sys.stdout.write(line.decode())
        case OutputFormat.YAML:
            for values in result_file.read_values():
                sys.stdout.write(f"---\n{dump_yaml(values)}")
        case OutputFormat.TABLE:
            write_text(format_sweep_table([make_sweep_row(values) for values in result_file.read_values()]))
    sys.stdout.flush()


def _run_tasks(sweep_input: SweepInput, tasks: Sequence[SweepTask], workers: Workers) -> Iterator[bytes]:
    """Yield the line of each scenario in order, from this process or from others."""
    size = 1 if workers.runs_in_this_process else _CHUNK_SIZE
    chunks = (tasks[start : start + size] for start in range(0, len(tasks), size))
    for lines in run_tasks(workers, partial(run_scenarios, sweep_input), chunks):
        yield from lines


def _check_tasks(tasks: Sequence[SweepTask], cluster: Cluster) -> None:
    """Check all scenarios before the first one runs."""
    for task in tasks:
        try:
            with cluster.cache.read() as snapshot:
                task.scenario.check(snapshot)
            for scale in task.scenario.scale:
                calculate_pod_changes(scale, cluster.cache)
        except ScenarioError as error:
            raise make_input_error(f"scenario {task.name}", *error.errors) from error


def _decode_task(line: bytes) -> tuple[str, str | None]:
    """Return the scenario and the configuration of a line."""
    values = msgspec.json.decode(line)
    return str(values["scenario"]), values["config"]


def _describe_inputs(sweep_input: SweepInput, entries: object, cluster: Cluster) -> dict[str, str]:
    """Return a digest of the scenarios, the flags, the contents of all files that the flags name, and the plugins.

    Standard input can be read only once, so the digest of its content is that of the objects.
    """
    files = [*sweep_input.files, *(options.config for options in sweep_input.input_options), sweep_input.prices]
    contents = [make_file_digest(Path(file)) for file in files if file and file != STDIN]
    if STDIN in files:
        contents.append(make_digest(cluster.recording.objects))
    options = sweep_input.input_options[0]
    flags = [*options.feature_gates, *options.emulated_versions, sweep_input.cost_label, str(sweep_input.seed)]
    flags += ["--override"] if options.override else []
    digests = {"scenarios": entries, "files": contents, "flags": flags}
    return {**{name: make_digest(value) for name, value in digests.items()}, "plugins": make_plugin_digest()}
