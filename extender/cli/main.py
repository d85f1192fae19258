"""The command `extender`: select the subcommand, and convert an exception to one line and an exit status.

Each subcommand is a module of this package with a `typer.Typer` named `app`. A module is imported only when
its subcommand is run, so that the other subcommands start fast.
"""

import gc
import os
import re
import sys
from collections.abc import Mapping, Sequence
from difflib import get_close_matches
from importlib import import_module
from itertools import takewhile
from pathlib import Path
from shlex import quote
from shutil import get_terminal_size
from typing import Annotated, Any, Final

import typer
from typer.core import TyperGroup

from extender import __version__
from extender.analysis.input.input_errors import InputError, UnreadableError
from extender.basics import gc_tuning
from extender.cli.plain_values import set_plain_converters
from extender.cli.terminal import ERROR, EXIT_CODE_FLAG, write_error
from extender.config.errors import ConfigError
from extender.framework.plugin_errors import FatalPluginError

COMMANDS: Final = {
    "demo": "Schedule a demo cluster in this process, for twenty seconds or for kubectl.",
    "explain": "Show why a pod is pending, or which node is best for it.",
    "simulate": "Place all pending pods on a copy of the cluster.",
    "record": "Record a live cluster to a file, without secrets, for the other commands.",
    "what-if": "Show what a drain, a lost zone, new nodes or more pods do to the pods of a cluster.",
    "fits": "Count how many more copies of a pod fit, and show what stops the next one.",
    "rebalance": "Plan the fewest evictions that let pods run, empty nodes or end violations, and carry them out.",
    "compare": "Place the same pods with two configurations or releases, and show the differences.",
    "experiment": "Place the pods of a GPU trace with several policies, and compare the allocated GPUs.",
    "schedule": "Schedule the pods of a cluster, with kube-scheduler's flags.",
    "serve": "Answer the extender verbs over HTTP, for a live or a recorded cluster.",
    "mcp": "Answer questions of an AI client about a cluster, as read-only MCP tools.",
    "ui": "Show a cluster in the browser: nodes, waiting pods, and why they wait.",
    "completion": "Print a script that completes commands and options in bash, zsh or fish.",
    "config": "Check a KubeSchedulerConfiguration, convert a Policy, or show the defaults.",
}

_MODULES_IN_FOLDERS: Final = {
    "completion": "live.completion",
    "record": "live.record",
    "compare": "planning.compare",
    "fits": "planning.fits",
    "mcp": "mcp.command",
    "rebalance": "planning.rebalance",
    "what-if": "planning.what_if",
}
"""The modules of the commands that are not modules of this package with the command's name."""

_EPILOG: Final = """\b
Examples:
  extender demo
  extender explain deployment/web -n shop
  extender simulate
  extender record -o cluster.json.gz
  extender explain -f cluster.json.gz shop/api-7f4b-g3ypl
  extender serve -f cluster.json.gz --port 8080
  extender schedule --config scheduler.yaml --leader-elect=false
  extender config check scheduler.yaml

Exit status: 0 success, 1 failure, 2 invalid command line or input, or a file that cannot be read or created
(1 for schedule, as in kube-scheduler), 130 after Ctrl-C.
With --exit-code: 0 all pods fit, 3 a pod has to wait, 4 error."""

_SHORT_FLAG_WITH_VALUE: Final = re.compile(r"(-[A-Za-z])=")
_COMMENTED_EXAMPLE: Final = re.compile(r"^(  (?:extender|kubectl) .*?) {2,}(\S.*)$")
_EXAMPLE: Final = re.compile(r"  (?:extender|kubectl) ")
_BREAKABLE_WORD: Final = re.compile(r" (?=--|[|>])")
_EPILOG_INDENT: Final = 2
_FAILED: Final = 1
_BAD_INPUT: Final = 2
_INTERRUPTED: Final = 130


class _Commands(TyperGroup):
    """The subcommands by name; a subcommand's module is imported when the subcommand is run.

    The object of the context has the other names of commands, see `main`.
    """

    def __init__(self, **attributes: Any) -> None:
        super().__init__(**attributes)
        set_plain_converters(self)

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Parse the arguments; `-n=NAME` means `-n NAME`, as in kubectl."""
        if args[:1] not in (["schedule"], ["serve"]):  # these parse their own flags
            args = [_SHORT_FLAG_WITH_VALUE.sub(r"\1", arg, count=1) if arg[:1] == "-" else arg for arg in args]
        remaining: list[str] = super().parse_args(ctx, args)
        return remaining

    def list_commands(self, ctx: Any) -> list[str]:  # noqa: ARG002
        return list(COMMANDS)

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        command_name = (ctx.obj or {}).get(cmd_name, cmd_name)
        if command_name not in COMMANDS:
            suggestions = get_close_matches(cmd_name, (*COMMANDS, "--version", "--help"), n=1)
            message = f"No such command '{cmd_name}'. Did you mean '{suggestions[0]}'?" if suggestions else ""
            return ctx.fail(message) if message else None
        command = typer.main.get_command(_import_command(command_name).app)
        command.name = cmd_name
        for alias, name in (ctx.obj or {}).items():
            command.epilog = (command.epilog or "").replace(f"extender {name} ", f"{ctx.info_name} {alias} ")
        _fit_examples(command)
        set_plain_converters(command)
        _show_arguments_by_name(command)
        return command

    def invoke(self, ctx: Any) -> Any:
        arguments = list(ctx.args)
        try:
            return super().invoke(ctx)
        except typer.BadParameter as error:
            error.message = error.message.removeprefix("Value error, ")  # added by a library below Typer
            if error.ctx is not None and error.param_hint == error.ctx.info_name:
                error.ctx.fail(error.message)  # the error of a whole command; no value is invalid
            allowed_values = error.message.partition(" is not one of ")[2]
            if error.param is not None and error.param.name == "output" and "'json'" in allowed_values:
                error.message = f"{error.message.rstrip('.')}; {_import_kubectl_options().OUTPUT_ADVICE}"
            raise
        except typer.TyperException as error:
            if advice := _import_kubectl_options().find_advice(getattr(error, "option_name", "")):
                error.message = f"{error.message}; {advice}"
                vars(error)["possibilities"] = None  # similar options, which this option does not mean
            command_context = getattr(error, "ctx", None)
            if command_context is not None and error.message.startswith("Got unexpected extra argument"):
                error.message += _suggest_repetition(arguments, command_context.command)
            raise

    def format_commands(self, ctx: Any, formatter: Any) -> None:  # noqa: ARG002
        with formatter.section("Commands"):
            formatter.write_dl(list(COMMANDS.items()))


def _fit_examples(command: Any) -> None:
    """Fit the examples of *command* to the terminal, if a line would be wider.

    Each comment is then below its example, and a longer example is continued in a second line, as the shell reads it.
    """
    lines = (command.epilog or "").splitlines()
    width = get_terminal_size().columns - _EPILOG_INDENT
    if max(map(len, lines), default=0) > width:
        text = "\n".join(_COMMENTED_EXAMPLE.sub(r"\1\n      \2", line) for line in lines)
        command.epilog = "\n".join(_break_example(line, width) for line in text.splitlines())
    for subcommand in getattr(command, "commands", {}).values():
        _fit_examples(subcommand)


def _break_example(line: str, width: int) -> str:
    """Break an example that is wider than *width* before an option, a pipe or a redirection, if both parts then fit."""
    if len(line) > width and _EXAMPLE.match(line):
        for word in reversed(list(_BREAKABLE_WORD.finditer(line))):
            first, second = f"{line[: word.start()]} \\", f"      {line[word.start() + 1 :]}"
            if len(first) <= width and len(second) <= width:
                return f"{first}\n{second}"
    return line


def _suggest_repetition(arguments: Sequence[str], command: Any) -> str:
    """Return how to pass several values to an option, if *arguments* has several after one; else nothing."""
    options = {name for param in command.params if getattr(param, "multiple", False) for name in param.opts}
    for index, argument in enumerate(arguments):
        option, has_value, value = argument.partition("=")
        others = takewhile(lambda word: word[:1] != "-", arguments[index + 1 :])
        values = [*([value] if has_value else []), *others]
        if option in options and len(values) > 1 and all(map(str.isprintable, values)):
            return f"; repeat the option: {' '.join(f'{option} {quote(word)}' for word in values)}"
    return ""


def _import_kubectl_options() -> Any:
    return import_module("extender.cli.live.kubectl_options")  # only for an error: each import delays all commands


def _show_arguments_by_name(command: Any) -> None:
    """Show the arguments of *command* as `FILE` in its help; Typer would show `{FILE}` and `FILE <str>`."""
    for param in command.params:
        if param.param_type_name == "argument":
            param.display_type_rich = lambda ctx: ""  # noqa: ARG005
            if param.required:
                param.get_usage_pieces = lambda ctx, name=param.metavar: [name]  # noqa: ARG005
    for subcommand in getattr(command, "commands", {}).values():
        _show_arguments_by_name(subcommand)


def _import_command(name: str) -> Any:
    """Import the module of a command without garbage collections, which would take a sixth of the time.

    The imported objects live until the process ends, so the first collection afterwards need not visit them either.
    """
    module_name = f"extender.cli.{_MODULES_IN_FOLDERS.get(name, name)}"
    if module_name in sys.modules:
        return sys.modules[module_name]
    gc.disable()
    try:
        return import_module(module_name)
    finally:
        gc.freeze()
        gc.enable()


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


def main(program: str = "extender", commands_by_alias: Mapping[str, str] | None = None) -> None:
    """Run the command line and exit with its status; an exception becomes one line on standard error.

    *program* is the name of the program in its usage; *commands_by_alias* has the commands by their other names.

    Typer handles invalid options (2), Ctrl-C (130) and a closed output pipe (1, without a message).
    """
    # OpenBLAS starts one thread per processor; no code here multiplies matrices.
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    _open_closed_streams()
    gc_tuning.set_gc_thresholds()
    if "_EXTENDER_COMPLETE" in os.environ:
        import_module("typer.completion").completion_init()
        _join_words_of_bash()
    try:
        app(prog_name=program, obj=dict(commands_by_alias or {}))  # Typer adds to it
    except SystemExit as error:
        if error.code == _INTERRUPTED:
            _report_interrupted_plugin(error)
        if error.code in {_FAILED, _BAD_INPUT} and EXIT_CODE_FLAG in sys.argv:
            sys.exit(ERROR)
        raise
    except KeyboardInterrupt:
        sys.exit(_INTERRUPTED)
    except BaseException as error:  # noqa: BLE001  the outermost handler; code of plugins may raise anything
        lines, status = _describe_exception(error)
        for line in lines:
            write_error(line)
        sys.exit(ERROR if EXIT_CODE_FLAG in sys.argv else status)


def _report_interrupted_plugin(error: BaseException) -> None:
    """Print which plugin ran at Ctrl-C, if one did: a plugin that does not end gives no other sign of it."""
    cause: BaseException | None = error
    while cause is not None:
        for note in getattr(cause, "__notes__", ())[:1]:
            write_error(f"note: {note}")
        cause = cause.__cause__ or cause.__context__


def _join_words_of_bash() -> None:
    """Remove each word `=` before the completed word: bash makes three words of `--namespace=shop`."""
    words, index = os.environ.get("COMP_WORDS", "").split("\n"), int(os.environ.get("COMP_CWORD", "0"))
    words_before = [word for word in words[:index] if word != "="]
    os.environ["COMP_WORDS"] = "\n".join([*words_before, *words[index:]])
    os.environ["COMP_CWORD"] = str(index - words[:index].count("="))


def _open_closed_streams() -> None:
    """Open /dev/null for each standard stream that the caller has closed, as `command >&-` does.

    Python has None for such a stream, and the next file that is opened would get its descriptor.
    """
    for name, mode in (("stdin", "r"), ("stdout", "w"), ("stderr", "w")):
        if getattr(sys, name) is None:
            stream = Path(os.devnull).open(mode, encoding="utf-8")  # noqa: SIM115 (open until the process ends)
            setattr(sys, name, stream)


def _describe_exception(error: BaseException) -> tuple[list[str], int]:
    """Return the lines that describe an exception, and the exit status."""
    match error:
        case InputError() | ConfigError():
            return [str(line) for line in error.errors], _BAD_INPUT
        case UnreadableError():
            return [str(error)], _BAD_INPUT
        case FatalPluginError():
            return [str(error)], _FAILED
        case OSError():
            text = error.strerror or str(error)
            return [f"{error.filename}: {text}" if error.filename else text], _FAILED
    return [f"internal error: {type(error).__name__}: {error}"], _FAILED
