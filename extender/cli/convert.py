"""`extender config convert`: convert a Policy of an old release to a KubeSchedulerConfiguration."""

import sys
from typing import Annotated, Final

import typer

from extender.app import wiring
from extender.cli.recording_options import add_file_to_errors, read_text, redirect_plugin_output
from extender.cli.terminal import write_error
from extender.config.errors import ConfigError
from extender.config.legacy_policy import policy_document
from extender.config.legacy_policy.algorithm_providers import ALGORITHM_PROVIDERS, get_provider
from extender.config.render import render_without_defaults

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
            "--provider",
            metavar="NAME",
            help=f"Convert an algorithm provider instead: {' | '.join(ALGORITHM_PROVIDERS)}.",
        ),
    ] = "",
) -> None:
    """Print the KubeSchedulerConfiguration v1 with the same decisions as a Policy of releases up to 1.22.

    The configuration may name plugins that kube-scheduler removed; this program still has them. Parts of the Policy
    without an equivalent are listed on standard error, one line each.
    """
    if bool(file) == bool(algorithm_provider):
        raise typer.BadParameter("want a file, or --provider with a name", param_hint="POLICY")
    if file:
        name, data = read_text(file)
    else:
        name, data = "--provider", b""
    try:
        policy = (
            policy_document.load_policy(data, name)
            if file
            else policy_document.LoadedPolicy(get_provider(algorithm_provider))
        )
        with redirect_plugin_output():
            setup = wiring.build_setup_from_policy(policy)
    except ConfigError as error:
        raise add_file_to_errors(error, name) from error
    for warning in setup.warnings:
        write_error(f"note: {warning}")
    sys.stdout.write(render_without_defaults(setup.configuration))
    sys.stdout.flush()
