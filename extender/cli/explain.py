"""`extender explain`: why a pod waits, or which node is best for it."""

import sys
from collections.abc import Sequence
from typing import Annotated, Any, Final

import msgspec
import typer

from extender import wiring
from extender.cli.inputs import ConfigFile, Files, Inputs, Output, OutputOption, read_inputs
from extender.config.documents import write
from extender.decide.examine import Examination, examine
from extender.framework.profiles import Profile
from extender.objects.pod import Pod
from extender.offline.answers import answer
from extender.offline.capture import load_state
from extender.offline.waiting import named, nominate_waiting, waiting

_EPILOG: Final = """\b
Examples:
  extender explain -f cluster.json                           all pods that wait
  extender explain -f cluster.json shop/api-7f4b-g3ypl       one pod
  extender explain -f cluster.json api-7f4b-g3ypl -o json    all that was found out, node by node
  extender explain -f cluster.json --config scheduler.yaml   with another configuration
  kubectl get nodes,pods -A -o json | extender explain -f -"""

app = typer.Typer(rich_markup_mode=None)


@app.command(epilog=_EPILOG)
def explain(
    file: Files,
    pods: Annotated[
        list[str] | None,
        typer.Argument(metavar="[POD]...", help="namespace/name, or name. Without any, all pods that wait."),
    ] = None,
    config: ConfigFile = "",
    output: OutputOption = Output.TABLE,
) -> None:
    """Say why a pod waits, or which node is best for it.

    For a pod that no node can take: how many nodes refuse it and why, the nearest misses and what would help, and the
    message kube-scheduler writes. For a pod that fits: the best nodes with every plugin's score, and what decided.
    Each pod is asked about alone, the cluster being as it was recorded.
    """
    inputs = read_inputs(file, config)
    examinations = _examine(inputs, pods or [])
    match output:
        case Output.JSON:
            sys.stdout.write(msgspec.json.encode(_result(examinations)).decode() + "\n")
        case Output.YAML:
            sys.stdout.write(write(_result(examinations)))
        case Output.TABLE:
            sys.stdout.write("")
    sys.stdout.flush()


def _examine(inputs: Inputs, names: Sequence[str]) -> list[Examination]:
    """The pods named, each by the profile of its scheduler; without any, all that wait for the first profile."""
    state = load_state(inputs.capture)
    scheduling = inputs.scheduling
    engine = wiring.engine()
    if names:
        pods = named(names, inputs.capture, list(scheduling.profiles))
    else:
        pods = waiting(state, (scheduling.first.scheduler_name,))
    by_profile: dict[str, list[Pod]] = {}
    for pod in pods:
        by_profile.setdefault(pod.spec.scheduler_name, []).append(pod)
    found: dict[str, Examination] = {}
    for name, mine in by_profile.items():
        profile: Profile = scheduling.profiles[name]
        nominate_waiting(state, profile, engine)
        snapshot = state.snapshot()
        found.update((pod.key, examine(snapshot.query(pod), snapshot, profile, engine)) for pod in mine)
    return [found[pod.key] for pod in pods]


def _result(examinations: Sequence[Examination]) -> dict[str, Any]:
    return {"pods": {each.pod.key: answer(each) for each in examinations}}
