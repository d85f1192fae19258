"""`extender config`: check a KubeSchedulerConfiguration, or show the one that holds when nothing is written."""

import sys
from typing import Annotated, Final

import typer

from extender import wiring
from extender.cli.convert import EPILOG as CONVERT_EPILOG
from extender.cli.convert import convert
from extender.cli.inputs import scheduling_from
from extender.offline.reading import named

_CHECK_EPILOG: Final = """\b
Examples:
  extender config check scheduler.yaml
  extender config check --show scheduler.yaml    and print it with every default filled in
  kubectl -n kube-system get cm scheduler -o jsonpath='{.data.config}' | extender config check -"""

_DEFAULTS_EPILOG: Final = """\b
Example:
  extender config defaults > scheduler.yaml"""

app = typer.Typer(
    rich_markup_mode=None,
    add_completion=False,
    no_args_is_help=True,
    help="Check a KubeSchedulerConfiguration, make one of a Policy, or show the default one.",
)


@app.command(epilog=_CHECK_EPILOG, short_help="Check a configuration or a Policy.")
def check(
    file: Annotated[str, typer.Argument(metavar="FILE", help="YAML or JSON; - is standard input.")],
    show: Annotated[bool, typer.Option("--show", help="Print the configuration with every default filled in.")] = False,
) -> None:
    """Check a configuration, or a Policy: its fields, its plugins and their arguments, by kube-scheduler's rules.

    Every fault is one line with its path on standard error, and the exit status is 2.
    """
    scheduling = scheduling_from(file)
    if show:
        sys.stdout.write(scheduling.defaulted())
    else:
        names = ", ".join(scheduling.profiles)
        sys.stdout.write(f"{named(file)}: fine; decides for {names}\n")
    sys.stdout.flush()


@app.command(epilog=_DEFAULTS_EPILOG, short_help="Print the configuration in force when none is given.")
def defaults() -> None:
    """Print the configuration in force when none is given, every default filled in."""
    sys.stdout.write(wiring.scheduling().defaulted())
    sys.stdout.flush()


app.command(epilog=CONVERT_EPILOG, short_help="Print the configuration that decides as a Policy does.")(convert)
