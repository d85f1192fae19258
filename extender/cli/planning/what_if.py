"""`extender what-if`: show what a change of the cluster does to its pods."""

from dataclasses import replace
from typing import Final

import typer

from extender.analysis.input.input_errors import make_input_error
from extender.answers.planning import ScenarioOutcome
from extender.answers.schema_version import AnswerKind
from extender.api.defaults import DEFAULT_NAMESPACE
from extender.cli import options
from extender.cli.live.cluster_options import ClusterOptions, read_cluster
from extender.cli.planning.cluster_input import describe_kinds_of_outcome, warn_about_missing_budgets
from extender.cli.planning.node_prices import load_prices
from extender.cli.planning.scenario_input import ScenarioFlags, read_scenario
from extender.cli.planning.sweep import SweepInput, run_sweep
from extender.cli.planning.workers import Workers
from extender.cli.recording_options import (
    Cluster,
    InputOptions,
    make_offline_runtime,
    redirect_plugin_output,
    write_answer,
)
from extender.cli.terminal import FITS, WAITS, ProgressBar, exit_with, write_error
from extender.planning.scenario import Scenario, ScenarioError
from extender.planning.what_if import WhatIfRunner
from extender.planning.what_if_report import format_what_if, make_what_if_values

_EPILOG: Final = """\b
Examples:
  extender what-if --drain node-7                               in the live cluster, which is not changed
  extender what-if -f cluster.json --drain node-7               which pods move where, and which ones wait
  extender what-if -f cluster.json --lose topology.kubernetes.io/zone=a
  extender what-if -f cluster.json --add 3 --like node-7        the pods that three more nodes take
  extender what-if -f cluster.json --pods new.yaml --replicas 30 --preempt
  extender what-if -f cluster.json --scale deployment/web=30 -o json
  extender what-if -f cluster.json --sweep scenarios.yaml --results results.jsonl --jobs 0
  extender what-if -f cluster.json --taint node-7=dedicated=gpu:NoSchedule --label node-7=disk-

A controller replaces its pod: the answer shows the new pod under the old name. A pod without a controller is lost.
A drain leaves DaemonSet and mirror pods in place, and respects PodDisruptionBudgets as kubectl drain does.
All pods without a node are placed in queue order. The same seed gives the same answer.

\b
A sweep file has scenarios with these flags, without dashes. * stands for
each node, each value or each type of node:
  scenarios:
  - drain: "*"
  - lose: topology.kubernetes.io/zone=*
  - {name: three more, add: 3, like: "*"}
  configs: [default.yaml, binpack.yaml]"""

_DASK_FLAG: Final = "--scheduler-address"

app = typer.Typer(rich_markup_mode=None, add_completion=False)


@app.command(epilog=_EPILOG)
def what_if(
    file: options.FilesOrClusterOption = None,
    drain: options.DrainOption = None,
    cordon: options.CordonOption = None,
    remove: options.RemoveOption = None,
    lose: options.LoseOption = None,
    add: options.AddOption = None,
    like: options.LikeOption = None,
    nodes: options.NodesOption = None,
    pods: options.PodsOption = None,
    replicas: options.ReplicasOption = 1,
    scale: options.ScaleOption = None,
    namespace: options.ScaleNamespaceOption = "",
    taint: options.TaintOption = None,
    label: options.LabelOption = None,
    preempt: options.PreemptOption = False,
    sweep: options.SweepOption = "",
    results: options.ResultsOption = "",
    jobs: options.JobsOption = 1,
    scheduler_address: options.SchedulerAddressOption = "",
    config: options.ConfigOption = "",
    feature_gates: options.GatesOption = None,
    emulated_version: options.EmulatedVersionOption = "",
    override: options.OverrideOption = False,
    kubeconfig: options.KubeconfigOption = "",
    context: options.ContextOption = "",
    cost_label: options.CostLabelOption = "",
    prices: options.PricesOption = "",
    output: options.OutputOption = options.OutputFormat.TABLE,
    seed: options.SeedOption = 0,
    exit_code: options.ExitCodeOption = False,
    verbose: options.VerboseOption = False,
) -> None:
    """Change a copy of the cluster, and show which pods move where, which ones wait and why, and which are lost.

    Without -f, the live cluster of the current kubeconfig is read, and not changed. All flags may be combined.
    """
    input_options = InputOptions(config, tuple(feature_gates or ()), emulated_version, override)
    flags = ScenarioFlags(
        drain, cordon, remove, lose, add, like, nodes, pods, replicas, scale, namespace, taint, label, preempt
    )
    workers = _read_workers(flags, sweep, results, Workers(jobs, scheduler_address))
    scenario_input = SweepInput(tuple(file or ()), (input_options,), cost_label, prices, seed, verbose)
    if sweep:
        exit_with(run_sweep(sweep, scenario_input, workers, results=results, output=output), enabled=exit_code)
        return
    with redirect_plugin_output():
        cluster, flags = _read_cluster(file, input_options, ClusterOptions(kubeconfig, context, namespace), flags)
        outcome = _run(cluster, flags, scenario_input)
    exit_with(_write(outcome, output), enabled=exit_code)


def _write(outcome: ScenarioOutcome, output: options.OutputFormat) -> int:
    """Write the answer, and return the exit status for `--exit-code`."""
    write_answer(output, AnswerKind.WHAT_IF, lambda: make_what_if_values(outcome), lambda: format_what_if(outcome))
    return WAITS if outcome.waiting else FITS


def _read_cluster(
    files: list[str] | None, input_options: InputOptions, cluster_options: ClusterOptions, flags: ScenarioFlags
) -> tuple[Cluster, ScenarioFlags]:
    """Return the cluster, and the flags with the namespace of `--scale`. The default is that of the context.

    Recordings have no context: the default is the default namespace.

    Raises:
        InputError: a file or the configuration is invalid.
        UnreadableError: the kubeconfig is invalid, or the live cluster cannot be read.
    """
    if flags.scale and not flags.namespace:
        flags = replace(flags, namespace=DEFAULT_NAMESPACE if files else cluster_options.load_namespace())
    return read_cluster(files, input_options, cluster_options), flags


def _read_workers(flags: ScenarioFlags, sweep: str, results: str, workers: Workers) -> Workers:
    """Return the workers of a sweep. Check that the flags of a sweep and those of a single scenario are not mixed."""
    workers.validate("scenarios")
    if sweep and flags != ScenarioFlags():
        raise typer.BadParameter("name the changes in its file, not on the command line", param_hint="--sweep")
    if not sweep and (results or workers != Workers()):
        flag = "--results" if results else "--jobs" if workers.jobs != 1 else _DASK_FLAG
        raise typer.BadParameter("needs --sweep FILE", param_hint=flag)
    return workers


def _run(cluster: Cluster, flags: ScenarioFlags, scenario_input: SweepInput) -> ScenarioOutcome:
    """Run the scenario of the flags, and show a progress bar at a terminal."""
    get_price = load_prices(scenario_input.cost_label, scenario_input.prices, cluster.recording)
    scenario, (input_options,) = read_scenario(flags, cluster), scenario_input.input_options
    if scenario == Scenario() and not input_options.config and not input_options.emulated_version:
        raise typer.BadParameter("nothing changes; name a change, such as --drain NODE", param_hint="what-if")
    runtime = make_offline_runtime(verbose=scenario_input.verbose)
    runner = WhatIfRunner(cluster.cache, cluster.setup.profiles, runtime, get_price)
    try:
        with ProgressBar("pods") as progress_bar:
            outcome = runner.run(scenario, seed=scenario_input.seed, progress=progress_bar.show)
    except ScenarioError as error:
        raise make_input_error("", *error.errors) from error
    warn_about_missing_budgets(cluster, drains_nodes=bool(scenario.drain))
    if scenario_input.files:  # the unreadable kinds of a live cluster were named when it was read
        profiles, drains_nodes = cluster.setup.profiles, bool(scenario.drain)
        for line in describe_kinds_of_outcome(cluster.recording, profiles, outcome, drains_nodes=drains_nodes):
            write_error(line)
    return outcome
