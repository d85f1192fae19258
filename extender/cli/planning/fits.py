"""`extender fits`: count how many more copies of a pod fit into a cluster."""

import sys
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Annotated, Any, Final

import msgspec
import typer

from extender.analysis.input.input_errors import make_input_error
from extender.analysis.input.input_files import STDIN
from extender.analysis.pending_pods import find_pods, nominate_pending_pods
from extender.analysis.pod_placer import PodPlacer
from extender.analysis.pod_selection import PodSelection, join_resource_type
from extender.answers.planning import FitCount
from extender.answers.schema_version import AnswerKind
from extender.cli import options
from extender.cli.live.cluster_options import ClusterOptions, read_cluster
from extender.cli.planning.cluster_input import ReplicatedPod, group_replicated_pods, read_replicated_pods
from extender.cli.recording_options import (
    Cluster,
    InputOptions,
    make_offline_runtime,
    redirect_plugin_output,
    write_answer,
)
from extender.cli.terminal import FITS, WAITS, exit_with
from extender.planning.fits import count_fitting_copies, format_fit, format_fit_table

_EPILOG: Final = """\b
Examples:
  extender fits -p pod.yaml                                  in the live cluster
  extender fits web-7f4b -n shop                             copies of a pod of the live cluster
  extender fits -f cluster.json -p pod.yaml                  how many copies fit, and what stops the next one
  extender fits -f cluster.json -p small.yaml -p large.yaml  a table: the headroom by shape of pod
  extender fits -f cluster.json -p pod.yaml -o json          fits, placed by node, stoppedBy

Pods in the cluster without a node use no resources, unless they have a nominated node. Nothing is evicted."""

_DEFAULT_LIMIT: Final = 100_000

_PodsArgument = Annotated[
    list[str] | None,
    typer.Argument(
        metavar="POD",
        help="A pod of the cluster to copy: name, namespace/name, or a workload, as in `extender explain`.",
        autocompletion=options.make_completion("pods"),
    ),
]
_PodFilesOption = Annotated[
    list[str] | None,
    typer.Option("--pod", "-p", metavar="FILE", help="A file with the pod to copy: YAML or JSON. May be repeated."),
]

app = typer.Typer(rich_markup_mode=None, add_completion=False)


@app.command(epilog=_EPILOG)
def fits(
    pods: _PodsArgument = None,
    pod: _PodFilesOption = None,
    file: options.FilesOrClusterOption = None,
    config: options.ConfigOption = "",
    feature_gates: options.GatesOption = None,
    emulated_version: options.EmulatedVersionOption = "",
    override: options.OverrideOption = False,
    kubeconfig: options.KubeconfigOption = "",
    context: options.ContextOption = "",
    namespace: options.NamespaceOption = "",
    output: options.OutputOption = options.OutputFormat.TABLE,
    limit: Annotated[int, typer.Option(metavar="N", help="Stop at this number of copies.")] = _DEFAULT_LIMIT,
    seed: options.SeedOption = 0,
    exit_code: options.ExitCodeOption = False,
    verbose: options.VerboseOption = False,
) -> None:
    """Count how many more copies of a pod fit into the cluster, and show what stops the next copy.

    The pod is one of the cluster, or is in a file (-p). Without -f, the live cluster of the current kubeconfig is read.
    Copies are placed one after another with the complete scheduling cycle, as `extender simulate` would place them.
    With several pods, each pod is counted alone.
    """
    _check_arguments(pods or (), pod or (), limit)
    with redirect_plugin_output():
        input_options = InputOptions(config, feature_gates or (), emulated_version, override)
        cluster_options = ClusterOptions(kubeconfig, context, namespace)
        cluster = read_cluster(file, input_options, cluster_options)
        selection = cluster_options.make_selection(join_resource_type(pods or ()), live=not file)
        replicated_pods = [*_find_pods(selection, cluster), *read_replicated_pods(pod or (), cluster)]
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


def _find_pods(selection: PodSelection, cluster: Cluster) -> list[ReplicatedPod]:
    """Return one pod of each controller, of the pods with the names of *selection*. Whole workloads are not counted.

    Raises:
        InputError: a pod is unknown, has finished, or has a scheduler without a profile.
    """
    profiles = list(cluster.setup.profiles)
    pods = find_pods(selection.names, cluster.recording, profiles, selection.namespace)
    return [ReplicatedPod(replicated_pod.pod) for replicated_pod in group_replicated_pods(pods)]


def _check_arguments(names: Sequence[str], files: Sequence[str], limit: int) -> None:
    """Check the limit, that there is a pod, and that the files exist: the name of a pod may be given in their place.

    Raises:
        BadParameter: the limit is less than 1, or there is no pod.
        InputError: a file does not exist.
    """
    if limit < 1:
        raise typer.BadParameter("want at least 1", param_hint="--limit")
    if not (names or files):
        raise typer.BadParameter("no pod; want POD, a pod of the cluster, or a file in --pod FILE", param_hint="fits")
    for name in files:
        exists = True
        with suppress(OSError, ValueError):  # read_replicated_pods reports other errors
            exists = name == STDIN or Path(name).exists()
        if not exists:
            advice = "check the path, or leave out -p to name a pod of the cluster"
            raise make_input_error(name, f"no such file; {advice}")


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
