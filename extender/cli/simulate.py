"""`extender simulate`: schedule all pending pods on a copy of the cluster."""

from typing import Annotated, Final

import typer

from extender.analysis.recorded_cluster import check_nodes, load_cache
from extender.analysis.simulate import SimulationOptions
from extender.analysis.simulate import simulate as run_simulation
from extender.analysis.simulation_text import format_simulation, make_simulation_values
from extender.answers.schema_version import AnswerKind
from extender.cli.exit_status import FITS, WAITS, ExitCodeOption, exit_with
from extender.cli.live.cluster_options import (
    ClusterOptions,
    ContextOption,
    FilesOrClusterOption,
    InputOptions,
    KubeconfigOption,
    OverrideOption,
    read_cluster_inputs,
)
from extender.cli.recording_options import (
    ConfigOption,
    EmulatedVersionOption,
    GatesOption,
    OutputFormat,
    OutputOption,
    VerboseOption,
    make_offline_runtime,
    redirect_plugin_output,
    warn_about_other_schedulers,
    write_answer,
)
from extender.cli.terminal import ProgressBar

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
    file: FilesOrClusterOption = None,
    config: ConfigOption = "",
    feature_gates: GatesOption = None,
    emulated_version: EmulatedVersionOption = "",
    override: OverrideOption = False,
    kubeconfig: KubeconfigOption = "",
    context: ContextOption = "",
    output: OutputOption = OutputFormat.TABLE,
    seed: Annotated[int, typer.Option(help="Seed of the choice between equally good nodes.")] = 0,
    preempt: Annotated[
        bool, typer.Option("--preempt", help="Evict pods of lower priority for pods that fit on no node.")
    ] = False,
    exit_code: ExitCodeOption = False,
    verbose: VerboseOption = False,
) -> None:
    """Schedule all pending pods, one after another in queue order, on a copy of the cluster.

    Without -f, the live cluster of the current kubeconfig is read: nodes, pods, and the kinds on which the placements
    depend. Each placed pod counts for the pods that follow. Nothing is written anywhere, and without --preempt nothing
    is evicted. The report has the placed pods, the pending pods with their reasons, the pods that would need evictions,
    the utilization of the cluster, and the fullest and emptiest nodes. The same seed gives the same placements.

    A Deployment, StatefulSet, DaemonSet, Job or ReplicaSet in a file is expanded to the pods that it does not have yet.
    """
    input_options = InputOptions(config, feature_gates or (), emulated_version, override)
    # Pods of all namespaces compete for the nodes.
    cluster_options = ClusterOptions(kubeconfig, context, all_namespaces=True)
    with redirect_plugin_output():
        inputs, _ = read_cluster_inputs(file, input_options, cluster_options)
    check_nodes(inputs.recording)
    progress_bar = ProgressBar("pods")
    cache = load_cache(inputs.recording, inputs.setup.gates, inputs.setup.profiles)
    with redirect_plugin_output():
        simulation = run_simulation(
            cache,
            inputs.setup.profiles,
            make_offline_runtime(verbose=verbose),
            SimulationOptions(seed, preempt),
            recording=inputs.recording,
            progress=progress_bar.show,
        )
    write_answer(
        output,
        AnswerKind.SIMULATION,
        lambda: make_simulation_values(simulation, seed),
        lambda: format_simulation(simulation, seed),
    )
    warn_about_other_schedulers(inputs.recording, inputs.setup.profiles)
    exit_with(WAITS if len(simulation.placed_pods) < len(simulation.placements) else FITS, enabled=exit_code)
