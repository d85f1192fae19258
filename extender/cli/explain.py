"""`extender explain`: why a pod waits, or which node is best for it."""

import sys
from collections.abc import Sequence
from typing import Annotated, Any, Final

import msgspec
import typer

from extender import wiring
from extender.cli.inputs import ConfigFile, Files, GatesOption, Output, OutputOption, read_inputs, warn, warn_elsewhere
from extender.config.documents import write
from extender.offline.explain import Explained
from extender.offline.explain import explain as run

_EPILOG: Final = """\b
Examples:
  extender explain -f cluster.json                           all pods that wait
  extender explain -f cluster.json shop/api-7f4b-g3ypl       one pod
  extender explain -f cluster.json api-7f4b-g3ypl -o json    all that was found out, node by node
  extender explain -f cluster.json --config scheduler.yaml   with another configuration
  kubectl get nodes,pods -A -o json | extender explain -f -"""

app = typer.Typer(rich_markup_mode=None, add_completion=False)


@app.command(epilog=_EPILOG)
def explain(
    file: Files,
    pods: Annotated[
        list[str] | None,
        typer.Argument(metavar="POD", help="namespace/name, or name. Without any, all pods that wait."),
    ] = None,
    config: ConfigFile = "",
    feature_gates: GatesOption = None,
    output: OutputOption = Output.TABLE,
) -> None:
    """Say why a pod waits, or which node is best for it.

    For a pod that no node can take: how many nodes refuse it and why, the nearest misses and what would help, and the
    message kube-scheduler writes, and whom it would evict. For a pod that fits: the best nodes with every plugin's
    score, and what decided. Each pod is asked about alone, the cluster being as it was recorded; a member of a pod
    group also with its group, if the feature gate GenericWorkload is on. An answer that a
    plugin's error ends the attempt, because of a claim that cannot be evaluated for instance, is an answer: exit 0.
    """
    inputs = read_inputs(file, config, feature_gates)
    scheduling = inputs.scheduling
    # Of a configuration that was recorded with the cluster the first profile applies.
    schedulers = tuple(scheduling.profiles) if config else (scheduling.first.scheduler_name,)
    found = run(
        inputs.capture,
        pods or [],
        scheduling.profiles,
        schedulers,
        wiring.engine(wiring.naming_slow(warn)),
        scheduling.gates,
    )
    match output:
        case Output.JSON:
            sys.stdout.write(msgspec.json.encode(_values(found)).decode() + "\n")
        case Output.YAML:
            sys.stdout.write(write(_values(found)))
        case Output.TABLE:
            sys.stdout.write("\n".join(each.text() for each in found))
            if not found:
                names = " or ".join(f'"{name}"' for name in schedulers)
                sys.stderr.write(f"extender: no pod waits for scheduler {names}\n")
    sys.stdout.flush()
    if not pods:
        warn_elsewhere(inputs.capture, schedulers)


def _values(found: Sequence[Explained]) -> dict[str, Any]:
    return {"pods": {each.examination.pod.key: each.values() for each in found}}
