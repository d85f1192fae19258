"""`extender config`: check a KubeSchedulerConfiguration, convert a Policy, or print the default configuration."""

import sys
from collections.abc import Iterable
from typing import Annotated, Final

import typer
from msgspec.structs import replace

from extender.analysis.input.input_files import get_display_name
from extender.app import wiring
from extender.basics.visible_text import make_visible
from extender.cli.options import complete_releases
from extender.cli.recording_options import (
    add_file_to_errors,
    load_setup_from_file,
    parse_gates_of_release,
    read_text,
    redirect_plugin_output,
)
from extender.cli.terminal import write_error
from extender.client.extender_transport import ExtenderTransport
from extender.config.errors import ConfigError, FieldError, item
from extender.config.legacy_policy import policy_document
from extender.config.legacy_policy.algorithm_providers import ALGORITHM_PROVIDERS, get_provider
from extender.config.model import Extender
from extender.config.releases import DEFAULT_RELEASE, RELEASES
from extender.config.render import render_without_defaults
from extender.extender_api.best_node.caller_configuration import describe_best_node_effects, list_score_plugins
from extender.extender_api.best_node.choice import FilterAnswer

_CHECK_EPILOG: Final = """\b
Examples:
  extender config check scheduler.yaml
  extender config check --show scheduler.yaml    and print it with all defaults
  extender config check --filter-answer best scheduler.yaml    and what kube-scheduler no longer calls
  kubectl -n kube-system get cm scheduler -o jsonpath='{.data.config}' | extender config check -"""

_EPILOG: Final = """\b
Examples:
  extender config check scheduler.yaml
  extender config defaults > scheduler.yaml
  extender config convert policy.json > scheduler.yaml"""

_DEFAULTS_EPILOG: Final = """\b
Example:
  extender config defaults > scheduler.yaml"""

_CONVERT_EPILOG: Final = """\b
Examples:
  extender config convert policy.json > scheduler.yaml
  kubectl -n kube-system get cm scheduler-policy -o yaml | extender config convert -
  extender config convert --provider ClusterAutoscalerProvider"""

_VersionOption = Annotated[
    str,
    typer.Option(
        "--emulated-version",
        metavar="VERSION",
        help=f"Kubernetes release of the defaults: {' or '.join(RELEASES)}. Default: {DEFAULT_RELEASE.version}.",
        autocompletion=complete_releases,
    ),
]

app = typer.Typer(
    rich_markup_mode=None,
    add_completion=False,
    no_args_is_help=True,
    help="Check a KubeSchedulerConfiguration, convert a Policy, or show the defaults.",
    epilog=_EPILOG,
)


@app.command(epilog=_CHECK_EPILOG, short_help="Check a configuration or a Policy.")
def check(
    file: Annotated[str, typer.Argument(metavar="FILE", help="YAML or JSON; - is standard input.")],
    show: Annotated[bool, typer.Option("--show", help="Print the configuration with all defaults.")] = False,
    filter_answer: Annotated[
        FilterAnswer,
        typer.Option(
            "--filter-answer",
            help="The flag of extender serve. With best, print what kube-scheduler no longer calls, and reject "
            "contradictions.",
        ),
    ] = FilterAnswer.FEASIBLE,
    url_prefix: Annotated[
        str,
        typer.Option(
            "--extender",
            metavar="URL",
            help="With --filter-answer best, the urlPrefix of extender serve if several extenders have filterVerb.",
        ),
    ] = "",
    emulated_version: _VersionOption = "",
) -> None:
    """Check a configuration or a Policy by kube-scheduler's rules: fields, plugins and their arguments.

    Each error is one line with its path on standard error; the exit status is then 2.
    """
    with redirect_plugin_output():
        setup = load_setup_from_file(file, parse_gates_of_release(filter(None, (emulated_version,)), ()))
    _check_certificates(setup.configuration.extenders, file)
    lines = []
    if filter_answer is FilterAnswer.BEST:
        score_plugins = list_score_plugins(setup.profiles)
        try:
            lines = describe_best_node_effects(setup.configuration, score_plugins, url_prefix=url_prefix)
        except ConfigError as error:
            raise add_file_to_errors(error, get_display_name(file)) from error
    elif url_prefix:
        raise ConfigError([FieldError("--extender", "has no effect without --filter-answer best")])
    if show:
        sys.stdout.write(setup.render_with_defaults())
    else:
        names = ", ".join(setup.profiles)
        sys.stdout.write(make_visible(f"{get_display_name(file)}: fine; decides for {names}\n"))
        sys.stdout.writelines(f"{line}\n" for line in lines)
        if other_plugins := ", ".join(setup.list_plugins_of_extender()):
            write_error(f"note: kube-scheduler {setup.gates.release.version} does not have {other_plugins}")
    sys.stdout.flush()


def _check_certificates(extenders: Iterable[Extender], file: str) -> None:
    """Check the certificates and keys in the configuration itself. Files may exist only on the scheduler's machine.

    Raises:
        InputError: kube-scheduler would not start.
    """
    errors: list[FieldError] = []
    for index, extender in enumerate(extenders):
        if extender.tls_config is not None:
            tls = replace(extender.tls_config, ca_file="", cert_file="", key_file="")
            try:
                ExtenderTransport(replace(extender, tls_config=tls), item("extenders", index))
            except ConfigError as error:
                errors += error.errors
    if errors:
        raise add_file_to_errors(ConfigError(errors), get_display_name(file))


@app.command(epilog=_DEFAULTS_EPILOG, short_help="Print the default configuration.")
def defaults(emulated_version: _VersionOption = "") -> None:
    """Print the configuration that applies without a configuration file, with all defaults."""
    with redirect_plugin_output():
        setup = wiring.build_setup(gates=parse_gates_of_release(filter(None, (emulated_version,)), ()))
    sys.stdout.write(setup.render_with_defaults())
    sys.stdout.flush()


@app.command(epilog=_CONVERT_EPILOG, short_help="Convert a Policy to a configuration.")
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
