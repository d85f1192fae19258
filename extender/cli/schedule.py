"""`extender schedule`: the scheduler of a cluster, with kube-scheduler's flags, files, port and exit status."""

import asyncio
import shutil
import sys
from collections.abc import Callable, Coroutine, Sequence
from pathlib import Path
from typing import Any, Final

import typer
from typer.core import TyperCommand

from extender import __version__
from extender.cli.flag_help import help_text
from extender.cli.flags import parse
from extender.cli.schedule_flags import FLAGS, GROUPS
from extender.cli.schedule_options import VERSION, options_of
from extender.client.errors import ApiError
from extender.config.faults import ConfigError
from extender.observe.logs import configure
from extender.offline.faults import InputError
from extender.options import ScheduleOptions
from extender.process.entrance import StartError
from extender.process.running import run

_FAILED: Final = 1
_NARROW, _WIDE = 80, 120

_USAGE: Final = "extender schedule [flags]"
_ABOUT: Final = """\
Watch a cluster, decide where its pods go, and bind them: kube-scheduler's work, with kube-scheduler's flags and \
configuration file. Run it in place of kube-scheduler, or beside it under another scheduler name.

It looks for the API server in --kubeconfig or the configuration file, in $KUBECONFIG, in ~/.kube/config, and in the \
pod it runs in. A configuration file wins over the deprecated flags; the flags of leader election win over the file."""
_END: Final = """\
Examples:
  extender schedule --kubeconfig ~/.kube/config --leader-elect=false -v=2
  extender schedule --config scheduler.yaml --logging-format=json
  extender schedule --config scheduler.yaml --write-config-to full.yaml
  curl -k https://127.0.0.1:10259/readyz?verbose

Signals: TERM and INT finish what was begun, release the lease and end the process; a second one ends it at once.
USR2 writes nodes, pods and queue to the log.

Exit status: 0 was told to stop, 1 anything else: a wrong flag or configuration, no API server, the lease is lost.
"""


class AsItStands(TyperCommand):
    """A command whose words are not Typer's business: flags are read as kube-scheduler reads them."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Leave all words to the command."""
        ctx.args = list(args)
        return []


app = typer.Typer(rich_markup_mode=None)


@app.command(name="schedule", cls=AsItStands, add_help_option=False)
def schedule(ctx: typer.Context) -> None:
    """Schedule the pods of a cluster, with kube-scheduler's flags."""
    raise typer.Exit(command(ctx.args, run))


def command(words: Sequence[str], start: Callable[[ScheduleOptions], Coroutine[Any, Any, int]]) -> int:
    """Carry the command line out, and give the exit status; what is wrong is a line each on standard error."""
    try:
        parsed = parse(words, FLAGS)
        if parsed["help"]:
            width = min(max(shutil.get_terminal_size().columns, _NARROW), _WIDE)
            sys.stdout.write(help_text(_USAGE, _ABOUT, GROUPS, _END, width))
            return 0
        if parsed["version"] != "false":
            return _version(parsed["version"])
        options = options_of(parsed)
        if parsed["write-config-to"]:
            return _written(options, parsed["write-config-to"])
        configure(options.logs)
        with asyncio.Runner(loop_factory=loop_factory()) as runner:
            return runner.run(start(options))
    except (ConfigError, InputError) as wrong:
        return _failed(*map(str, wrong.faults))
    except (ApiError, StartError) as wrong:
        return _failed(str(wrong))


def loop_factory() -> Callable[[], asyncio.AbstractEventLoop] | None:
    """What makes the event loop; None: asyncio's own way."""
    if sys.platform == "win32":
        return None
    import uvloop  # noqa: PLC0415  not there on Windows

    return uvloop.new_event_loop


def _failed(*lines: str) -> int:
    for line in lines:
        sys.stderr.write(f"extender: {' '.join(line.split())}\n")
    return _FAILED


def _version(wanted: str) -> int:
    if wanted not in {"true", "raw"}:
        return _failed(f'invalid argument "{wanted}" for "--version" flag: want --version or --version=raw')
    if wanted == "raw":
        sys.stdout.write(f"extender {__version__}, Kubernetes v{VERSION}, Python {sys.version.split()[0]}\n")
    else:
        sys.stdout.write(f"extender {__version__} (Kubernetes v{VERSION})\n")
    return 0


def _written(options: ScheduleOptions, file: str) -> int:
    try:
        Path(file).write_text(options.scheduling.defaulted())
    except OSError as fault:
        return _failed(f"--write-config-to: {file}: {fault.strerror or fault}")
    sys.stderr.write(f"extender: wrote the configuration to {file}\n")
    return 0
