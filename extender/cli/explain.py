"""`extender explain`: show why a pod is pending, or which node is best for it."""

import sys
from collections.abc import Sequence
from typing import Annotated, Any, Final

import msgspec
import typer

from extender.analysis.explain import PodReport, explain_pods
from extender.app import wiring
from extender.cli.recording_options import (
    ConfigFile,
    Files,
    GatesOption,
    Output,
    OutputOption,
    read_inputs,
    warn,
    warn_about_other_schedulers,
)
from extender.config.documents import dump_yaml

_EPILOG: Final = """\b
Examples:
  extender explain -f cluster.json                           all pending pods
  extender explain -f cluster.json shop/api-7f4b-g3ypl       one pod
  extender explain -f cluster.json api-7f4b-g3ypl -o json    all results, per node and plugin
  extender explain -f cluster.json --config scheduler.yaml   with another configuration
  kubectl get nodes,pods -A -o json | extender explain -f -"""

app = typer.Typer(rich_markup_mode=None, add_completion=False)


@app.command(epilog=_EPILOG)
def explain(
    file: Files,
    pods: Annotated[
        list[str] | None,
        typer.Argument(metavar="POD", help="namespace/name, or name. Without any, all pending pods."),
    ] = None,
    config: ConfigFile = "",
    feature_gates: GatesOption = None,
    output: OutputOption = Output.TABLE,
) -> None:
    """Show why a pod is pending, or which node is best for it.

    For a pod that fits on no node: the number of rejected nodes per reason, the nodes that miss least and what would
    help, the message of kube-scheduler, and the victims of preemption. For a pod that fits: the best nodes with the
    scores of every plugin, and the plugins that made the difference. Each pod is explained on the cluster as recorded,
    without the other pending pods; a member of a pod group also with its group, if the feature gate GenericWorkload is
    enabled. A plugin error that ends the attempt is part of the explanation; the exit status is then 0.
    """
    inputs = read_inputs(file, config, feature_gates)
    scheduling = inputs.scheduling
    # If the configuration comes from the recording, only pods of its first profile are explained.
    scheduler_names = tuple(scheduling.profiles) if config else (scheduling.first_profile.scheduler_name,)
    reports = explain_pods(
        inputs.recording,
        pods or [],
        scheduling.profiles,
        scheduler_names,
        wiring.make_runtime(wiring.make_slow_call_observer(warn)),
        scheduling.gates,
    )
    match output:
        case Output.JSON:
            sys.stdout.write(msgspec.json.encode(_make_report_values(reports)).decode() + "\n")
        case Output.YAML:
            sys.stdout.write(dump_yaml(_make_report_values(reports)))
        case Output.TABLE:
            sys.stdout.write("\n".join(report.to_text() for report in reports))
            if not reports:
                names = " or ".join(f'"{name}"' for name in scheduler_names)
                sys.stderr.write(f"extender: no pod is pending for scheduler {names}\n")
    sys.stdout.flush()
    if not pods:
        warn_about_other_schedulers(inputs.recording, scheduler_names)


def _make_report_values(reports: Sequence[PodReport]) -> dict[str, Any]:
    return {"pods": {report.explanation.pod.key: report.to_values() for report in reports}}
