"""`extender schedule`: the standalone scheduler, with kube-scheduler's flags, files, port and exit status."""

import sys
import textwrap
from collections.abc import Callable, Coroutine, Mapping, Sequence
from types import SimpleNamespace
from typing import Any, ClassVar, Final

import typer
import uvloop
from typer.core import TyperCommand

from extender import __version__
from extender.analysis.input.input_errors import InputError
from extender.app.options import ScheduleOptions
from extender.app.schedule import run
from extender.app.startup import StartError, check_open_file_limit
from extender.cli.live.replaced_file import open_replaced_file
from extender.cli.pflag import Flag, format_help, parse
from extender.cli.schedule_flags import FLAGS, GROUPS, REMOVED_FLAGS
from extender.cli.schedule_options import make_schedule_options
from extender.cli.terminal import report_failure, write_error
from extender.client.errors import ApiError
from extender.config.errors import ConfigError
from extender.config.releases import DEFAULT_RELEASE
from extender.logs.klog import configure_logging

_USAGE: Final = "extender schedule [flags]"
_DESCRIPTION: Final = """\
Watch a cluster, select a node for every pending pod, and bind the pod: kube-scheduler's work, with kube-scheduler's \
flags and configuration file. Run it in place of kube-scheduler, or beside kube-scheduler under another scheduler name.

The API server is found through --kubeconfig or the configuration file, $KUBECONFIG, ~/.kube/config, or the pod's \
service account, in this order. A configuration file overrides the deprecated flags; the flags of leader election \
override the file."""
_EPILOG: Final = """\
Examples:
  extender schedule --kubeconfig ~/.kube/config --leader-elect=false -v=2
  extender schedule --config scheduler.yaml --logging-format=json
  extender schedule --config scheduler.yaml --write-config-to full.yaml
  curl -k https://127.0.0.1:10259/readyz?verbose

Signals: TERM and INT finish running bindings, release the lease and end the
process; a second signal ends it at once. USR2 writes nodes, pods and queue to
the log.

Exit status: 0 after a signal, 1 otherwise: an invalid flag or configuration, no
API server, a lost lease.
"""


class RawArgumentsCommand(TyperCommand):
    """A command that receives its arguments unparsed; `cli.pflag` parses them as kube-scheduler does.

    Attributes:
        flags: the flags by name, which a shell completes.
    """

    flags: ClassVar[Mapping[str, Flag]] = FLAGS

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Store the arguments in the context without parsing them."""
        ctx.args = list(args)
        return []

    def shell_complete(self, _ctx: Any, incomplete: str) -> list[Any]:
        """Return the flags that begin with *incomplete*. Files are completed by the shell."""
        return [
            SimpleNamespace(value=f"--{name}", type="plain", help=textwrap.shorten(flag.help, 72))
            for name, flag in self.flags.items()
            if incomplete and f"--{name}".startswith(incomplete)
        ]


app = typer.Typer(rich_markup_mode=None, add_completion=False)


@app.command(name="schedule", cls=RawArgumentsCommand, add_help_option=False)
def schedule(ctx: typer.Context) -> None:
    """Schedule the pods of a cluster, with kube-scheduler's flags."""
    raise typer.Exit(run_command(ctx.args, run))


def run_command(arguments: Sequence[str], start: Callable[[ScheduleOptions], Coroutine[Any, Any, int]]) -> int:
    """Run the command line and return the exit status; every error is one line on standard error."""
    log_format = "text"
    try:
        parsed_flags = parse(arguments, FLAGS, REMOVED_FLAGS)
        log_format = parsed_flags["logging-format"]
        if parsed_flags["help"]:
            sys.stdout.write(format_help(_USAGE, _DESCRIPTION, GROUPS, _EPILOG))
            return 0
        if parsed_flags["version"] != "false":
            return _print_version(parsed_flags["version"])
        options = make_schedule_options(parsed_flags)
        if parsed_flags["write-config-to"]:
            return _write_configuration(options, parsed_flags["write-config-to"])
        configure_logging(options.logs)
        check_open_file_limit()
        return uvloop.run(start(options))
    except (ConfigError, InputError) as error:
        return report_failure(*map(str, error.errors), log_format=log_format)
    except (ApiError, StartError) as error:
        return report_failure(str(error), log_format=log_format)


def _print_version(form: str) -> int:
    if form not in {"true", "raw"}:
        return report_failure(f'invalid argument "{form}" for "--version" flag: want --version or --version=raw')
    if form == "raw":
        sys.stdout.write(
            f"extender {__version__}, Kubernetes v{DEFAULT_RELEASE.version}, Python {sys.version.split()[0]}\n"
        )
    else:
        sys.stdout.write(f"extender {__version__} (Kubernetes v{DEFAULT_RELEASE.version})\n")
    return 0


def _write_configuration(options: ScheduleOptions, file: str) -> int:
    try:
        with open_replaced_file(file) as stream:
            stream.write(options.setup.render_with_defaults().encode())
    except OSError as error:
        return report_failure(f"--write-config-to: {file}: {error.strerror or error}")
    write_error(f"wrote the configuration to {file}")
    return 0
