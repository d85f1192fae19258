"""`extender config convert`: the KubeSchedulerConfiguration that decides as a Policy of an old release does."""

import sys
from typing import Annotated, Final

import typer

from extender import wiring
from extender.cli.inputs import located, read_text
from extender.config.faults import ConfigError
from extender.policy import document
from extender.policy.providers import PROVIDERS, provider
from extender.policy.text import text

EPILOG: Final = """\b
Examples:
  extender config convert policy.json > scheduler.yaml
  kubectl -n kube-system get cm scheduler-policy -o yaml | extender config convert -
  extender config convert --provider ClusterAutoscalerProvider"""


def convert(
    file: Annotated[
        str, typer.Argument(metavar="POLICY", help="Policy or ConfigMap, YAML or JSON; - is standard input.")
    ] = "",
    algorithm_provider: Annotated[
        str,
        typer.Option(
            "--provider", metavar="NAME", help=f"Convert an algorithm provider instead: {' | '.join(PROVIDERS)}."
        ),
    ] = "",
) -> None:
    """Print the KubeSchedulerConfiguration v1 that decides as a Policy of releases up to 1.22 does.

    Plugins that kube-scheduler no longer has stand in it by their last names; this program has them. What has no equal
    is told on standard error, one line each.
    """
    if bool(file) == bool(algorithm_provider):
        raise typer.BadParameter("want a file, or --provider and a name", param_hint="POLICY")
    if file:
        name, data = read_text(file)
    else:
        name, data = "--provider", b""
    try:
        written = document.load(data, name) if file else document.Written(provider(algorithm_provider))
        scheduling = wiring.from_policy(written)
    except ConfigError as error:
        raise located(error, name) from error
    for note in scheduling.notes:
        sys.stderr.write(f"extender: note: {note}\n")
    sys.stdout.write(text(scheduling.configuration))
    sys.stdout.flush()
