"""`extender explain`: show why a pod is pending, why it is on its node, or which node is best for it."""

import sys
from collections.abc import Iterator, Sequence
from typing import Annotated, Final

import msgspec
import typer

from extender.analysis.explain import PodExplainer, PodReport
from extender.analysis.input.input_errors import InputError, InputErrorLine, SourceLocation
from extender.analysis.pending_pods import list_pending_pods
from extender.analysis.pod_selection import join_resource_type
from extender.answers.schema_version import AnswerKind, make_answer
from extender.cli import options
from extender.cli.live.cluster_options import ClusterOptions, read_cluster_inputs
from extender.cli.recording_options import (
    Cluster,
    InputOptions,
    make_offline_runtime,
    redirect_plugin_output,
    warn_about_other_schedulers,
    warn_about_ungated_members,
)
from extender.cli.terminal import ERROR, FITS, WAITS, ProgressBar, exit_with, write_error, write_text
from extender.config.did_you_mean import did_you_mean
from extender.config.documents import dump_yaml

_EPILOG: Final = """\b
Examples:
  extender explain -A                                           all pending pods of the live cluster
  extender explain -A --brief                                   one line for each of them
  extender explain web-7f4b -n shop                             one pod of the live cluster
  extender explain deployment/web                               the pods of a workload
  extender explain web-7f4b --node node-17                      why not there: every plugin on that node
  extender explain -f cluster.json.gz                           all pending pods of a recording
  extender explain -f cluster.json.gz shop/api-7f4b-g3ypl       one pod
  extender explain -f cluster.json.gz api-7f4b-g3ypl -o json    all results, per node and plugin
  extender explain -f cluster.json.gz --config scheduler.yaml   with another configuration
  extender record -o - | extender explain -f -"""

_PodsArgument = Annotated[
    list[str] | None,
    typer.Argument(
        metavar="POD",
        help="name, namespace/name, pod/name, or a workload or pod group: deployment/name or deployment name. "
        "Without any, or with pods alone, all pending pods.",
        autocompletion=options.make_completion("pods"),
    ),
]
_NodeOption = Annotated[
    list[str] | None,
    typer.Option(
        "--node",
        metavar="NAME",
        help="Show all results for this node instead of summaries of all nodes. May be repeated.",
        autocompletion=options.complete_nodes,
    ),
]
_BriefOption = Annotated[
    bool, typer.Option("--brief", help="Print one line for each pod: where it fits, or how many nodes reject it.")
]

app = typer.Typer(rich_markup_mode=None, add_completion=False)


@app.command(epilog=_EPILOG)
def explain(
    file: options.FilesOrClusterOption = None,
    pods: _PodsArgument = None,
    config: options.ConfigOption = "",
    feature_gates: options.GatesOption = None,
    emulated_version: options.EmulatedVersionOption = "",
    override: options.OverrideOption = False,
    kubeconfig: options.KubeconfigOption = "",
    context: options.ContextOption = "",
    namespace: options.NamespaceOption = "",
    all_namespaces: options.AllNamespacesOption = False,
    selector: options.SelectorOption = "",
    node: _NodeOption = None,
    brief: _BriefOption = False,
    output: options.OutputOption = options.OutputFormat.TABLE,
    exit_code: options.ExitCodeOption = False,
    verbose: options.VerboseOption = False,
) -> None:
    """Show why a pod is pending, why it is on its node, or which node is best for it.

    Without -f, the live cluster of the current kubeconfig is read: nodes, pods, and the kinds on which the answer
    depends. Nothing is written to it.

    For a pod that fits on no node, the report has the number of rejected nodes per reason and kube-scheduler's message.
    It also has the nodes closest to feasible, what would help, and the victims of preemption. For a pod that fits, it
    has the best nodes with the scores of every plugin, and the plugins that made the difference. For a pod that has a
    node, it has the rank of this node, and the node to which the pod would go now.

    Each pod is explained alone, without the other pending pods. Pods with the same explanation have one report, unless
    they are named. With the feature gate GenericWorkload, a member of a pod group is also explained with its group. A
    plugin error that ends the attempt is part of the report; the exit status is then 0.
    """
    if brief and (node or output is not options.OutputFormat.TABLE):
        raise typer.BadParameter("contradicts --node and -o; leave out one of them", param_hint="--brief")
    input_options = InputOptions(config, feature_gates or (), emulated_version, override)
    cluster_options = ClusterOptions(kubeconfig, context, namespace, all_namespaces, selector)
    with redirect_plugin_output():
        cluster, selection = read_cluster_inputs(file, input_options, cluster_options, join_resource_type(pods or ()))
        setup = cluster.setup
        # If the configuration comes from the recording, only pods of its first profile are explained.
        scheduler_names = tuple(setup.profiles) if config else (setup.first_profile.scheduler_name,)
        runtime = make_offline_runtime(verbose=verbose)
        explainer = PodExplainer(cluster.recording, selection, setup.profiles, scheduler_names, runtime)
    _check_nodes(explainer, node or ())
    warn_about_ungated_members((pod for group in explainer.groups for pod in group), setup.gates)
    status = _write_reports(explainer, output, node or (), brief=brief)
    _warn_about_unexplained_pods(
        cluster, explainer, scheduler_names, selector, warn_if_none=output is options.OutputFormat.TABLE
    )
    exit_with(status, enabled=exit_code)


def _check_nodes(explainer: PodExplainer, node_names: Sequence[str]) -> None:
    known_names = explainer.cache.snapshot().names
    errors = [
        InputErrorLine(SourceLocation("--node"), f"there is no node {name}{did_you_mean(name, known_names)}")
        for name in node_names
        if name not in known_names
    ]
    if errors:
        raise InputError(errors)


def _warn_about_unexplained_pods(
    cluster: Cluster, explainer: PodExplainer, scheduler_names: Sequence[str], selector: str, *, warn_if_none: bool
) -> None:
    """Say on standard error that no pod is pending, and which pods wait for other schedulers."""
    if not explainer.groups and warn_if_none:
        names = " or ".join(f'"{name}"' for name in scheduler_names)
        selection = explainer.selection
        namespace = f' in namespace "{selection.namespace}"' if selection.namespace else ""
        labels = f' with the labels "{selector}"' if selector else ""
        advice = _suggest_other_namespaces(explainer, scheduler_names)
        write_error(f"no pod is pending{namespace}{labels} for scheduler {names}{advice}")
    if not explainer.selection.names:
        warn_about_other_schedulers(cluster.recording, scheduler_names, explainer.selection)


def _suggest_other_namespaces(explainer: PodExplainer, scheduler_names: Sequence[str]) -> str:
    """Return a suggestion for a namespace in which no pod is pending; empty if all namespaces are selected."""
    namespace = explainer.selection.namespace
    if not namespace:
        return ""
    pending_pods = list_pending_pods(explainer.cache, scheduler_names)
    count = sum(pod.metadata.namespace != namespace for pod in pending_pods)
    others = f"; -A selects all namespaces, with {count} pending pod{'s' * (count > 1)}" if count else ""
    assigned_pods = explainer.cache.assigned_pods.values()
    namespaces = {pod.metadata.namespace for pod in pending_pods} | {pod.namespace for pod in assigned_pods}
    return others if namespace in namespaces else did_you_mean(namespace, namespaces) or others


def _write_reports(
    explainer: PodExplainer, output: options.OutputFormat, node_names: Sequence[str], *, brief: bool
) -> int:
    """Write each report as soon as it is made, and return the exit status for `--exit-code`."""
    status = FITS
    count, total = 0, sum(map(len, explainer.groups))
    progress_bar = ProgressBar("pods")
    write = write_text if output is options.OutputFormat.TABLE else sys.stdout.write
    if output is options.OutputFormat.JSON:
        sys.stdout.write(msgspec.json.encode(make_answer(AnswerKind.EXPLANATION, {})).decode()[:-1] + ',"pods":{')
    elif output is options.OutputFormat.YAML:
        sys.stdout.write(dump_yaml(make_answer(AnswerKind.EXPLANATION, {})))
        sys.stdout.write("pods:\n" if explainer.groups else "pods: {}\n")
    for report in _iterate_reports(explainer):
        status = max(status, ERROR if report.has_error else FITS if report.fits else WAITS)
        progress_bar.erase()
        parts = [report.to_line()] if brief else _format_report(report, output, node_names, is_first=not count)
        for part in parts:
            write(part)
        sys.stdout.flush()
        count += 1 + len(report.alike_pods)
        progress_bar.show(count, total)
    if output is options.OutputFormat.JSON:
        sys.stdout.write("}}\n")
    sys.stdout.flush()
    return status


def _iterate_reports(explainer: PodExplainer) -> Iterator[PodReport]:
    """Yield the reports; what plugins print meanwhile goes to standard error."""
    reports = explainer.iterate_reports()
    while True:
        with redirect_plugin_output():
            report = next(reports, None)
        if report is None:
            return
        yield report


def _format_report(
    report: PodReport, output: options.OutputFormat, node_names: Sequence[str], *, is_first: bool
) -> Iterator[str]:
    """Yield the parts of the report. In JSON and YAML, each pod has its own entry."""
    if output is options.OutputFormat.TABLE:
        yield ("" if is_first else "\n") + report.to_text(node_names)
        return
    keys = (report.explanation.pod.key, *report.alike_pods)
    if output is options.OutputFormat.JSON:
        values = msgspec.json.encode(report.to_values(node_names)).decode()
        for index, key in enumerate(keys):
            yield ("" if is_first and not index else ",") + f"{msgspec.json.encode(key).decode()}:"
            yield values
        return
    for key in keys:
        lines = dump_yaml({key: report.to_values(node_names)}).removesuffix("\n").split("\n")
        yield "".join(f"  {line}\n" for line in lines)
