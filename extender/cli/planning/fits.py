"""`extender fits`: count how many more copies of a pod fit into a cluster."""

import sys
from typing import Annotated, Any, Final

import msgspec
import typer

from extender.analysis.pending_pods import nominate_pending_pods
from extender.analysis.pod_placer import PodPlacer
from extender.answers.planning import FitCount
from extender.answers.schema_version import AnswerKind
from extender.cli import options
from extender.cli.live.cluster_options import ClusterOptions, read_cluster
from extender.cli.planning.cluster_input import ReplicatedPod, read_replicated_pods
from extender.cli.recording_options import InputOptions, make_offline_runtime, redirect_plugin_output, write_answer
from extender.cli.terminal import FITS, WAITS, exit_with
from extender.planning.fits import count_fitting_copies, format_fit, format_fit_table

_EPILOG: Final = """\b
Examples:
  extender fits -p pod.yaml                                  in the live cluster
  extender fits -f cluster.json -p pod.yaml                  how many copies fit, and what stops the next one
  extender fits -f cluster.json -p small.yaml -p large.yaml  a table: the headroom by shape of pod
  extender fits -f cluster.json -p pod.yaml -o json          fits, placed by node, stoppedBy

Pods in the cluster without a node use no resources, unless they have a nominated node. Nothing is evicted."""

_DEFAULT_LIMIT: Final = 100_000

app = typer.Typer(rich_markup_mode=None, add_completion=False)


@app.command(epilog=_EPILOG)
def fits(
    pod: Annotated[
        list[str], typer.Option("--pod", "-p", metavar="FILE", help="The pod to copy: YAML or JSON. May be repeated.")
    ],
    file: options.FilesOrClusterOption = None,
    config: options.ConfigOption = "",
    feature_gates: options.GatesOption = None,
    emulated_version: options.EmulatedVersionOption = "",
    override: options.OverrideOption = False,
    kubeconfig: options.KubeconfigOption = "",
    context: options.ContextOption = "",
    output: options.OutputOption = options.OutputFormat.TABLE,
    limit: Annotated[int, typer.Option(metavar="N", help="Stop at this number of copies.")] = _DEFAULT_LIMIT,
    seed: options.SeedOption = 0,
    exit_code: options.ExitCodeOption = False,
    verbose: options.VerboseOption = False,
) -> None:
    """Count how many more copies of a pod fit into the cluster, and show what stops the next copy.

    Without -f, the live cluster of the current kubeconfig is read.
    Copies are placed one after another with the complete scheduling cycle, as `extender simulate` would place them.
    With several pods, each pod is counted alone.
    """
    if limit < 1:
        raise typer.BadParameter("want at least 1", param_hint="--limit")
    with redirect_plugin_output():
        input_options = InputOptions(config, feature_gates or (), emulated_version, override)
        cluster = read_cluster(file, input_options, ClusterOptions(kubeconfig, context))
        replicated_pods = read_replicated_pods(pod, cluster)
        runtime = make_offline_runtime(verbose=verbose)
        for profile in cluster.setup.profiles.values():
            nominate_pending_pods(cluster.cache, profile, runtime)
        progress = _show_progress if sys.stderr.isatty() else None
        results = [
            count_fitting_copies(
                cluster.cache,
                replicated_pod.pod,
                PodPlacer(cluster.cache, cluster.setup.profiles, runtime, seed),
                limit=limit,
                progress=progress,
            )
            for replicated_pod in replicated_pods
        ]
    kind = AnswerKind.FITS if len(results) == 1 else AnswerKind.FITS_BY_SHAPE
    write_answer(
        output, kind, lambda: _make_values(results, replicated_pods), lambda: _format_text(results, replicated_pods)
    )
    exit_with(FITS if all(result.fits for result in results) else WAITS, enabled=exit_code)


def _show_progress(count: int) -> None:
    """Show the number of copies on one line of a terminal, which is erased before the report is written."""
    if count % 1000 == 0:
        sys.stderr.write(f"\r{count} copies\r")
        sys.stderr.flush()


def _make_values(results: list[FitCount], replicated_pods: list[ReplicatedPod]) -> dict[str, Any]:
    values = [
        {
            **msgspec.to_builtins(result),
            "replicas": replicated_pod.replicas,
            "workloads": result.fits // replicated_pod.replicas,
        }
        for result, replicated_pod in zip(results, replicated_pods, strict=True)
    ]
    return values[0] if len(values) == 1 else {"shapes": values}


def _format_text(results: list[FitCount], replicated_pods: list[ReplicatedPod]) -> str:
    if len(results) > 1:
        return format_fit_table(results)
    replicas, count = replicated_pods[0].replicas, results[0].fits
    note = f"That is {count // replicas} times all {replicas} pods of the workload." if replicas > 1 else ""
    return format_fit(results[0], note)
