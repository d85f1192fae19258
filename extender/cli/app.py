"""The command `extender`: finds the command to run, and turns what goes wrong into one line each and an exit status.

A command is a module of this room with a `typer.Typer` named `app`. It is imported when it is asked for, so that no
command waits for what another needs.
"""

import os
import sys
from difflib import get_close_matches
from importlib import import_module
from typing import Annotated, Any, Final

import typer
from typer.core import TyperGroup

from extender import __version__
from extender.basics import collector
from extender.config.faults import ConfigError
from extender.offline.faults import InputError, UnreadableError

COMMANDS: Final = {
    "demo": "Watch it schedule: a cluster in this process, for twenty seconds or for kubectl.",
    "explain": "Why a pod waits, or which node is best for it.",
    "simulate": "Place all waiting pods on a copy of a recorded cluster.",
    "schedule": "Schedule the pods of a cluster, with kube-scheduler's flags.",
    "serve": "Answer the extender verbs over HTTP, for a live cluster or one from a file.",
    "config": "Check a KubeSchedulerConfiguration, make one of a Policy, or show the default one.",
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
Exit status: 0 all went well, 1 something failed, 2 the input or the command line is wrong
(1 for schedule, as kube-scheduler)."""

_FAILED: Final = 1
_BAD_INPUT: Final = 2


class _Commands(TyperGroup):
    """The commands by name, each imported when it is run."""

    def list_commands(self, ctx: Any) -> list[str]:  # noqa: ARG002
        return list(COMMANDS)

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        if cmd_name not in COMMANDS:
            near = get_close_matches(cmd_name, COMMANDS, n=1)
            return ctx.fail(f"No such command '{cmd_name}'. Did you mean '{near[0]}'?") if near else None
        command = typer.main.get_command(import_module(f"extender.cli.{cmd_name}").app)
        command.name = cmd_name
        return command

    def invoke(self, ctx: Any) -> Any:
        try:
            return super().invoke(ctx)
        except typer.BadParameter as wrong:
            wrong.message = wrong.message.removeprefix("Value error, ")  # how the library below Typer begins
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


def _show_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"extender {__version__}")
        raise typer.Exit


@app.callback(epilog=_EPILOG)
def extender(
    _version: Annotated[
        bool, typer.Option("--version", callback=_show_version, is_eager=True, help="Show the version and exit.")
    ] = False,
) -> None:
    """The Kubernetes scheduler in Python: ask it, simulate with it, or put it beside kube-scheduler."""


def main() -> None:
    """Runs the command line and ends the process with its exit status; a fault is one line on standard error.

    Typer sees to wrong options (2), to Ctrl-C (130), and to a reader of the output who has gone (1, in silence).
    """
    # NumPy's algebra library starts a thread for every processor; nothing here multiplies matrices.
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    collector.look_seldom()
    try:
        app(prog_name="extender")
    except Exception as fault:  # noqa: BLE001  the last place to turn a fault into a message
        lines, status = _told(fault)
        for line in lines:
            sys.stderr.write(f"extender: {line}\n")
        sys.exit(status)


def _told(fault: Exception) -> tuple[list[str], int]:
    """The lines that say what went wrong, and the exit status."""
    match fault:
        case InputError() | ConfigError():
            return [str(each) for each in fault.faults], _BAD_INPUT
        case UnreadableError():
            return [str(fault)], _BAD_INPUT
        case OSError():
            what = fault.strerror or str(fault)
            return [f"{fault.filename}: {what}" if fault.filename else what], _FAILED
    return [f"internal error: {type(fault).__name__}: {fault}"], _FAILED
