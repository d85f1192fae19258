"""`extender simulate`: schedule all pending pods on a copy of the cluster."""

from typing import Annotated, Final

import typer

from extender.analysis.recorded_cluster import check_nodes, load_cache
from extender.analysis.simulate import SimulationOptions, format_simulation, make_simulation_values
from extender.analysis.simulate import simulate as run_simulation
from extender.answers.schema_version import AnswerKind
from extender.cli import options
from extender.cli.live.cluster_options import ClusterOptions, read_cluster_inputs
from extender.cli.recording_options import (
    InputOptions,
    make_offline_runtime,
    redirect_plugin_output,
    warn_about_other_schedulers,
    warn_about_ungated_members,
    write_answer,
)
from extender.cli.terminal import FITS, WAITS, ProgressBar, exit_with

_EPILOG: Final = """\b
Examples:
  extender simulate                                             the pending pods of the live cluster
  extender simulate -f cluster.json                             scheduled pods, pending pods, and the reasons
  extender simulate -f cluster.json --config binpack.yaml       with another configuration
  extender simulate -f cluster.json -f more-nodes.yaml          with more nodes
  extender simulate -f cluster.json -f deployment.yaml          with a new Deployment
  extender simulate -f cluster.json -f node.yaml --override     with another version of a node
  extender simulate -f cluster.json.gz -o json --seed 7         all placements; another choice between equal nodes"""

app = typer.Typer(rich_markup_mode=None, add_completion=False)


@app.command(epilog=_EPILOG)
def simulate(
    file: options.FilesOrClusterOption = None,
    config: options.ConfigOption = "",
    feature_gates: options.GatesOption = None,
    emulated_version: options.EmulatedVersionOption = "",
    override: options.OverrideOption = False,
    kubeconfig: options.KubeconfigOption = "",
    context: options.ContextOption = "",
    output: options.OutputOption = options.OutputFormat.TABLE,
    seed: options.SeedOption = 0,
    preempt: Annotated[
        bool, typer.Option("--preempt", help="Evict pods of lower priority for pods that fit on no node.")
    ] = False,
    exit_code: options.ExitCodeOption = False,
    verbose: options.VerboseOption = False,
) -> None:
    """Schedule all pending pods, one after another in queue order, on a copy of the cluster.

    Without -f, the live cluster of the current kubeconfig is read: nodes, pods, and the kinds on which the placements
    depend. Each placed pod counts for the pods that follow. Nothing is written anywhere, and without --preempt nothing
    is evicted. The report has the placed pods, the pending pods with their reasons, the pods that would need evictions,
    the utilization of the cluster, and the fullest and emptiest nodes. The same seed gives the same placements.

    A workload in a file, such as a Deployment or a CronJob, is expanded to the pods that it does not have yet.
    """
    input_options = InputOptions(config, feature_gates or (), emulated_version, override)
    # Pods of all namespaces compete for the nodes.
    cluster_options = ClusterOptions(kubeconfig, context, all_namespaces=True)
    with redirect_plugin_output():
        cluster, _ = read_cluster_inputs(file, input_options, cluster_options)
    check_nodes(cluster.recording)
    cache = load_cache(cluster.recording, cluster.setup.gates, cluster.setup.profiles)
    warn_about_ungated_members(cache.pending_pods.values(), cluster.setup.gates)
    with redirect_plugin_output(), ProgressBar("pods") as progress_bar:
        simulation = run_simulation(
            cache,
            cluster.setup.profiles,
            make_offline_runtime(verbose=verbose),
            SimulationOptions(seed, preempt),
            recording=cluster.recording,
            progress=progress_bar.show,
        )
    write_answer(
        output,
        AnswerKind.SIMULATION,
        lambda: make_simulation_values(simulation, seed),
        lambda: format_simulation(simulation, seed),
    )
    warn_about_other_schedulers(cluster.recording, cluster.setup.profiles)
    exit_with(WAITS if simulation.placed_count < len(simulation.placements) else FITS, enabled=exit_code)
