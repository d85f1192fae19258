"""Carry out the plan of `extender rebalance --apply`: prove its remaining steps on each new reading of the cluster."""

import sys
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from importlib import import_module
from typing import Any, Final

import typer

from extender.analysis.coscheduling_groups import convert_coscheduling_groups
from extender.analysis.recorded_cluster import Recording, load_cache
from extender.app.wiring import SchedulerSetup
from extender.cli.live.cluster_options import ClusterOptions
from extender.cli.recording_options import make_offline_runtime, redirect_plugin_output
from extender.cli.terminal import write_error
from extender.planning.rebalance.make_room import RoomPlan
from extender.planning.rebalance.move_simulator import MoveSimulator
from extender.planning.rebalance.plan import Change, Failure, Proof
from extender.planning.rebalance.report import RebalancePlan

DEFAULT_TIMEOUT_SECONDS: Final = 300.0


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
