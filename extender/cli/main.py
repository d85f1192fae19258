"""The command `extender`: it selects the subcommand, and converts an exception to one line and an exit status.

Each subcommand is a module of this package with a `typer.Typer` named `app`. A module is imported only when
its subcommand is run, so that the others start fast.
"""

import os
import sys
from difflib import get_close_matches
from importlib import import_module
from typing import Annotated, Any, Final

import typer
from typer.core import TyperGroup

from extender import __version__
from extender.analysis.input_errors import InputError, UnreadableError
from extender.basics import gc_tuning
from extender.config.errors import ConfigError

COMMANDS: Final = {
    "demo": "Schedule a demo cluster in this process, for twenty seconds or for kubectl.",
    "explain": "Show why a pod is pending, or which node is best for it.",
    "simulate": "Place all pending pods on a copy of a recorded cluster.",
    "schedule": "Schedule the pods of a cluster, with kube-scheduler's flags.",
    "serve": "Answer the extender verbs over HTTP, for a live or a recorded cluster.",
    "config": "Check a KubeSchedulerConfiguration, convert a Policy, or show the defaults.",
}

_EPILOG: Final = """\b
Examples:
  extender demo
  kubectl get nodes,pods,namespaces,services,replicasets -A -o json > cluster.json
  extender explain -f cluster.json shop/api-7f4b-g3ypl
  extender simulate -f cluster.json --config scheduler.yaml
  extender serve -f cluster.json --port 8080
  extender schedule --config scheduler.yaml --leader-elect=false
  extender config check scheduler.yaml

\b
Exit status: 0 success, 1 failure, 2 invalid input or command line (1 for schedule, as in kube-scheduler)."""

_FAILED: Final = 1
_BAD_INPUT: Final = 2


class _Commands(TyperGroup):
    """The subcommands by name; a subcommand's module is imported when the subcommand is run."""

    def list_commands(self, ctx: Any) -> list[str]:  # noqa: ARG002
        return list(COMMANDS)

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        if cmd_name not in COMMANDS:
            suggestions = get_close_matches(cmd_name, COMMANDS, n=1)
            message = f"No such command '{cmd_name}'. Did you mean '{suggestions[0]}'?" if suggestions else ""
            return ctx.fail(message) if message else None
        command = typer.main.get_command(import_module(f"extender.cli.{cmd_name}").app)
        command.name = cmd_name
        return command

    def invoke(self, ctx: Any) -> Any:
        try:
            return super().invoke(ctx)
        except typer.BadParameter as error:
            error.message = error.message.removeprefix("Value error, ")  # added by a library below Typer
            raise

    def format_commands(self, ctx: Any, formatter: Any) -> None:  # noqa: ARG002
        with formatter.section("Commands"):
            formatter.write_dl(list(COMMANDS.items()))


app = typer.Typer(
    cls=_Commands,
    rich_markup_mode=None,
    add_completion=False,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)


def _show_version(requested: bool) -> None:
    if requested:
        typer.echo(f"extender {__version__}")
        raise typer.Exit


@app.callback(epilog=_EPILOG)
def extender(
    _version: Annotated[
        bool, typer.Option("--version", callback=_show_version, is_eager=True, help="Show the version and exit.")
    ] = False,
) -> None:
    """The Kubernetes scheduler in Python: explain, simulate, extend kube-scheduler, or schedule."""


def main() -> None:
    """Run the command line and exit with its status; an exception becomes one line on standard error.

    Typer handles invalid options (2), Ctrl-C (130) and a closed output pipe (1, without a message).
    """
    # OpenBLAS starts one thread per processor; no code here multiplies matrices.
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    gc_tuning.set_gc_thresholds()
    try:
        app(prog_name="extender")
    except Exception as error:  # noqa: BLE001  the outermost handler
        lines, status = _describe_exception(error)
        for line in lines:
            sys.stderr.write(f"extender: {line}\n")
        sys.exit(status)


def _describe_exception(error: Exception) -> tuple[list[str], int]:
    """Return the lines that describe an exception, and the exit status."""
    match error:
        case InputError() | ConfigError():
            return [str(line) for line in error.errors], _BAD_INPUT
        case UnreadableError():
            return [str(error)], _BAD_INPUT
        case OSError():
            text = error.strerror or str(error)
            return [f"{error.filename}: {text}" if error.filename else text], _FAILED
    return [f"internal error: {type(error).__name__}: {error}"], _FAILED
