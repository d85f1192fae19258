"""`extender rebalance`: find the evictions that let pods run, empty nodes, or end violations of rules."""

import sys
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from importlib import import_module
from typing import Any, Final

import typer

from extender.analysis.coscheduling_groups import convert_coscheduling_groups
from extender.analysis.input.input_errors import make_input_error
from extender.analysis.pod_selection import PodSelection
from extender.analysis.recorded_cluster import Recording, load_cache
from extender.answers.schema_version import AnswerKind
from extender.app.wiring import SchedulerSetup
from extender.cli import options
from extender.cli.live.cluster_options import ClusterOptions, read_cluster
from extender.cli.planning.cluster_input import find_target_pods, warn_about_missing_budgets
from extender.cli.planning.node_prices import load_prices
from extender.cli.recording_options import (
    Cluster,
    InputOptions,
    make_offline_runtime,
    redirect_plugin_output,
    write_answer,
)
from extender.cli.terminal import FITS, WAITS, ProgressBar, exit_with, write_error
from extender.config.did_you_mean import did_you_mean
from extender.planning.cluster_totals import NodePriceFunction
from extender.planning.rebalance.empty_nodes import EmptyPlan, empty_nodes
from extender.planning.rebalance.fix_violations import fix_violations
from extender.planning.rebalance.make_room import RoomPlan, make_room
from extender.planning.rebalance.move_simulator import MoveSimulator
from extender.planning.rebalance.plan import (
    DEFAULT_MAX_ATTEMPTS,
    DEFAULT_MAX_MOVES,
    Change,
    Failure,
    Proof,
    SearchLimits,
    make_command,
)
from extender.planning.rebalance.report import RebalancePlan, format_rebalance, make_rebalance_values

_EPILOG: Final = """\b
Examples:
  extender rebalance --for web-7f4b -n shop           the fewest evictions after which the pod runs
  extender rebalance --for deployment/web -n shop     for all waiting pods of a workload, or podgroup/NAME
  extender rebalance --empty --prices prices.yaml     which nodes can be emptied, the most expensive ones first
  extender rebalance --empty --node node-7            whether this node can be emptied
  extender rebalance --fix                            which pods violate taints, affinity or spread by now
  extender rebalance -f cluster.json.gz --fix -o json
  extender rebalance --for web-7f4b -n shop --apply   evict, prove each step again, stop at the first surprise

Nothing is evicted without --apply. Each eviction respects PodDisruptionBudgets. Pods without a controller, pods with
karpenter.sh/do-not-disrupt=true or cluster-autoscaler.kubernetes.io/safe-to-evict=false are not moved.
Wait after each printed eviction until the new pod has a node. The same seed gives the same plan."""

DEFAULT_TIMEOUT_SECONDS: Final = 300.0
_MAX_MOVES: Final = 100_000
_MAX_ATTEMPTS: Final = 1_000_000_000

app = typer.Typer(rich_markup_mode=None, add_completion=False)


@dataclass(frozen=True, slots=True)
class _Question:
    """The question of a plan: one of pods, empty and fix. *nodes* restricts `--empty`."""

    pods: Sequence[str]
    is_empty: bool
    is_fix: bool
    nodes: Sequence[str]
    limits: SearchLimits


@app.command(epilog=_EPILOG)
def rebalance(
    file: options.FilesOrClusterOption = None,
    pods: options.ForOption = None,
    empty: options.EmptyOption = False,
    fix: options.FixOption = False,
    node: options.NodeOption = None,
    namespace: options.NamespaceOption = "",
    max_moves: options.MaxMovesOption = DEFAULT_MAX_MOVES,
    max_attempts: options.MaxAttemptsOption = DEFAULT_MAX_ATTEMPTS,
    apply: options.ApplyOption = False,
    timeout: options.TimeoutOption = DEFAULT_TIMEOUT_SECONDS,
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
    """Find an ordered plan of evictions. The scheduling cycle proves each move at its turn.

    Without -f, the live cluster of the current kubeconfig is read, and only changed with --apply.
    """
    question = _Question(pods or (), empty, fix, node or (), _read_limits(max_moves, max_attempts))
    _check_question(question)
    if timeout != DEFAULT_TIMEOUT_SECONDS and not apply:
        raise typer.BadParameter("needs --apply", param_hint="--timeout")
    if apply and file:
        raise typer.BadParameter("changes a live cluster, but -f reads a file; keep one of them", param_hint="--apply")
    input_options = InputOptions(config, tuple(feature_gates or ()), emulated_version, override)
    cluster_options = ClusterOptions(kubeconfig, context, namespace)
    with redirect_plugin_output():
        cluster = read_cluster(file, input_options, cluster_options)
        get_price = load_prices(cost_label, prices, cluster.recording)
        selection = cluster_options.make_selection(question.pods, live=not file)
        simulator = MoveSimulator(cluster.cache, cluster.setup.profiles, make_offline_runtime(verbose=verbose), seed)
        plan = _make_plan(question, cluster, selection, simulator, get_price)
        warn_about_missing_budgets(cluster, drains_nodes=True)
    _write(plan, output, applies=apply)
    if apply:
        execute(plan, PlanExecution(cluster.setup, cluster_options, timeout, seed, verbose=verbose))
        if _is_unmet(plan) and not exit_code:
            raise typer.Exit(1)
    exit_with(WAITS if _is_unmet(plan) else FITS, enabled=exit_code)


def _make_plan(
    question: _Question,
    cluster: Cluster,
    selection: PodSelection,
    simulator: MoveSimulator,
    get_price: NodePriceFunction | None,
) -> RebalancePlan:
    """Search the plan, and show a progress bar at a terminal.

    Raises:
        InputError: a pod or a node is unknown.
    """
    with ProgressBar("violations" if question.is_fix else "nodes") as progress_bar:
        if question.pods:
            return make_room(simulator, find_target_pods(selection, cluster), question.limits, progress_bar.show)
        if question.is_empty:
            names = _check_nodes(question.nodes, cluster)
            return empty_nodes(simulator, names, get_price, question.limits, progress_bar.show)
        return fix_violations(simulator, question.limits, progress_bar.show)


def _check_question(question: _Question) -> None:
    given = (("--for", question.pods), ("--empty", question.is_empty), ("--fix", question.is_fix))
    flags = [flag for flag, value in given if value]
    if len(flags) != 1:
        problem = f"{' and '.join(flags)} are separate plans; keep one of them" if flags else "no question"
        raise typer.BadParameter(f"{problem}; want --for POD, --empty or --fix", param_hint="rebalance")
    if question.nodes and not question.is_empty:
        raise typer.BadParameter("needs --empty", param_hint="--node")


def _read_limits(max_moves: int, max_attempts: int) -> SearchLimits:
    for flag, value, maximum in (
        ("--max-moves", max_moves, _MAX_MOVES),
        ("--max-attempts", max_attempts, _MAX_ATTEMPTS),
    ):
        if not 1 <= value <= maximum:
            raise typer.BadParameter(f"{value}; want 1 to {maximum}", param_hint=flag)
    return SearchLimits(max_moves, max_attempts)


def _check_nodes(names: Sequence[str], cluster: Cluster) -> list[str] | None:
    """Return the named nodes, each once."""
    if not names:
        return None
    cache = cluster.cache
    errors = [
        f"--node {name}: there is no such node{did_you_mean(name, list(cache.names))}"
        for name in names
        if cache.row(name) is None
    ]
    if errors:
        raise make_input_error("", *errors)
    return list(dict.fromkeys(names))


def _write(plan: RebalancePlan, output: options.OutputFormat, *, applies: bool) -> None:
    """Write the plan. Commands are never wrapped, so that they can be copied."""
    write_answer(output, AnswerKind.REBALANCE, lambda: make_rebalance_values(plan), lambda: format_rebalance(plan))
    if output is options.OutputFormat.TABLE and plan.proof.steps and not applies:
        commands = "".join(f"  {make_command(step.change)}\n" for step in plan.proof.steps)
        sys.stdout.write(f"\nCommands; after each eviction, wait until the new pod has a node\n{commands}")
        sys.stdout.flush()


def _is_unmet(plan: RebalancePlan) -> bool:
    """Return whether the plan does not reach what was asked for."""
    match plan:
        case RoomPlan():
            return bool(plan.unplaced)
        case EmptyPlan():
            return not plan.emptied
    return bool(plan.remaining)


@dataclass(frozen=True, slots=True)
class PlanExecution:
    """The execution of a plan of `extender rebalance --apply`."""

    setup: SchedulerSetup
    cluster_options: ClusterOptions
    timeout: float
    seed: int
    verbose: bool = False

    def prove(self, plan: RebalancePlan, recording: Recording, changes: Sequence[Change]) -> Proof:
        """Prove *changes* on a newly read cluster: they must be possible, and place the pods that the plan is for."""
        runtime = make_offline_runtime(verbose=self.verbose)
        with redirect_plugin_output():
            recording = convert_coscheduling_groups(recording, self.setup.gates)
            cache = load_cache(recording, self.setup.gates)
            simulator = MoveSimulator(cache, self.setup.profiles, runtime, self.seed)
            simulator.settle()
            proof = simulator.prove(changes)
        if proof.failure is not None or not isinstance(plan, RoomPlan):
            return proof
        planned_pods = set(plan.pods) - {pod for pod, _ in plan.unplaced}
        waiting_pods = [
            pod.key for pod in simulator.waiting if pod.key in planned_pods and not simulator.is_placed(pod)
        ]
        if not waiting_pods:
            return proof
        return Proof(proof.steps, Failure(changes[-1], f"pod {waiting_pods[0]} would still wait afterwards"))


def execute(plan: RebalancePlan, execution: PlanExecution) -> None:
    """Carry out *plan* in the live cluster, with one line on standard error before each step.

    Raises:
        Exit: a step did not have the proven outcome; the status is 1.
        UnreadableError: the API server refuses a request or cannot be reached.
    """
    executor: Any = import_module("extender.app.plan_executor")
    changes = [step.change for step in plan.proof.steps]
    if not changes:
        return
    options = executor.ExecutionOptions(partial(execution.prove, plan), _report, execution.timeout)
    try:
        executor.execute_plan(execution.cluster_options.credential_source, changes, options)
    except executor.SurpriseError as error:
        _report(str(error))
        raise typer.Exit(1) from error
    _report(f"the plan is carried out; {len(changes)} steps")


def _report(line: str) -> None:
    write_error(line)
    sys.stderr.flush()
