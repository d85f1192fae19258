"""`extender config`: check a KubeSchedulerConfiguration, convert a Policy, or print the default configuration."""

import sys
from typing import Annotated, Final

import typer

from extender.analysis.input_files import get_display_name
from extender.app import wiring
from extender.cli.convert import EPILOG as CONVERT_EPILOG
from extender.cli.convert import convert
from extender.cli.recording_options import load_scheduling_from_file

_CHECK_EPILOG: Final = """\b
Examples:
  extender config check scheduler.yaml
  extender config check --show scheduler.yaml    and print it with all defaults
  kubectl -n kube-system get cm scheduler -o jsonpath='{.data.config}' | extender config check -"""

_DEFAULTS_EPILOG: Final = """\b
Example:
  extender config defaults > scheduler.yaml"""

app = typer.Typer(
    rich_markup_mode=None,
    add_completion=False,
    no_args_is_help=True,
    help="Check a KubeSchedulerConfiguration, convert a Policy, or show the defaults.",
)


@app.command(epilog=_CHECK_EPILOG, short_help="Check a configuration or a Policy.")
def check(
    file: Annotated[str, typer.Argument(metavar="FILE", help="YAML or JSON; - is standard input.")],
    show: Annotated[bool, typer.Option("--show", help="Print the configuration with all defaults.")] = False,
) -> None:
    """Check a configuration or a Policy by kube-scheduler's rules: fields, plugins and their arguments.

    Each error is one line with its path on standard error; the exit status is 2.
    """
    scheduling = load_scheduling_from_file(file)
    if show:
        sys.stdout.write(scheduling.render_with_defaults())
    else:
        names = ", ".join(scheduling.profiles)
        sys.stdout.write(f"{get_display_name(file)}: fine; decides for {names}\n")
    sys.stdout.flush()


@app.command(epilog=_DEFAULTS_EPILOG, short_help="Print the default configuration.")
def defaults() -> None:
    """Print the configuration that applies without a configuration file, with all defaults."""
    sys.stdout.write(wiring.build_scheduling().render_with_defaults())
    sys.stdout.flush()


app.command(epilog=CONVERT_EPILOG, short_help="Convert a Policy to a configuration.")(convert)
