"""`kubectl placement`: the commands about a cluster as a kubectl plugin, and its completion for kubectl.

kubectl runs the executable `kubectl-placement` for `kubectl placement`, and `kubectl_complete-placement` for its
completion.
"""

import sys
from collections.abc import Iterator, Sequence
from typing import Any, Final

import typer

from extender.cli import main as command_line
from extender.cli.live.object_names import list_live_names

COMMANDS: Final = {
    "why": "explain",
    "simulate": "simulate",
    "what-if": "what-if",
    "fits": "fits",
    "rebalance": "rebalance",
    "compare": "compare",
    "record": "record",
}
"""The commands of `extender` by the plugin's names for them."""

_USAGE: Final = """\
Usage: kubectl placement COMMAND [OPTIONS]

Answer questions about the scheduling of pods in the current cluster.
Nothing is changed, except by rebalance --apply.

Commands:
{commands}

Examples:
  kubectl placement why web-7f4b
  kubectl placement why deployment/web -n shop
  kubectl placement simulate
  kubectl placement rebalance --for web-7f4b

kubectl placement COMMAND --help shows the options of a command.
"""
_NO_FILE_COMPLETION: Final = ":4"
"""The directive ShellCompDirectiveNoFileComp. Source: spf13/cobra, completions.go (1.10)."""
_FILE_COMPLETION: Final = ":0"
_FILE_FLAGS: Final = frozenset(
    ("-f", "--file", "--config", "--kubeconfig", "-p", "--pod", "--pods", "--nodes", "--prices", "--sweep", "--results")
)
_NODE_FLAGS: Final = frozenset(("--drain", "--cordon", "--remove", "--like", "--node"))
_NAMESPACE_FLAGS: Final = ("-n", "--namespace", "--context", "--kubeconfig")


def main() -> None:
    """Run `kubectl placement` with the arguments of this process."""
    arguments = sys.argv[1:]
    if not arguments or arguments[0] in {"-h", "--help"}:
        sys.stdout.write(_format_usage())
        sys.exit(0 if arguments else 2)
    if arguments[0] not in COMMANDS and not arguments[0].startswith("-"):
        sys.stderr.write(
            f'extender: "{arguments[0]}" is no command of kubectl placement; see kubectl placement --help\n'
        )
        sys.exit(2)
    command_line.main("kubectl placement", COMMANDS)


def _format_usage() -> str:
    lines = [f"  {name:<10}{command_line.COMMANDS[command]}" for name, command in COMMANDS.items()]
    return _USAGE.format(commands="\n".join(lines))


def complete() -> None:
    """Print the completions for the words after `kubectl placement`, one a line, and cobra's directive."""
    for line in list_completions(sys.argv[1:]):
        sys.stdout.write(f"{line}\n")


def list_completions(words: Sequence[str]) -> Iterator[str]:
    """Yield the completions of the last of *words*, and cobra's directive at the end."""
    current = words[-1] if words else ""
    if len(words) <= 1:
        yield from (name for name in COMMANDS if name.startswith(current))
        yield _NO_FILE_COMPLETION
    elif words[0] not in COMMANDS or words[-2] in _FILE_FLAGS:
        yield _FILE_COMPLETION
    elif words[-2] in _NODE_FLAGS or words[-2] == "--for":
        resource = "nodes" if words[-2] in _NODE_FLAGS else "pods"
        yield from (name for name in _list_object_names(resource, words) if name.startswith(current))
        yield _NO_FILE_COMPLETION
    elif current.startswith("-"):
        yield from (flag for flag in _list_flags(COMMANDS[words[0]]) if flag.startswith(current))
        yield _NO_FILE_COMPLETION
    else:
        names = _list_object_names("pods", words) if words[0] == "why" else []
        yield from (name for name in names if name.startswith(current))
        yield _NO_FILE_COMPLETION


def _list_flags(command: str) -> list[str]:
    group: Any = typer.main.get_command(command_line.app)
    parameters = group.get_command(typer.Context(group), command).params
    return sorted(option for parameter in parameters for option in parameter.opts if option.startswith("--"))


def _list_object_names(resource: str, words: Sequence[str]) -> list[str]:
    """Return the names of the objects that kubectl lists with the flags among *words*; none if kubectl fails."""
    flags = [
        flag for index, word in enumerate(words[:-1]) if word in _NAMESPACE_FLAGS for flag in words[index : index + 2]
    ]
    flags += [word for word in words if word.startswith(tuple(f"{flag}=" for flag in _NAMESPACE_FLAGS))]
    return list_live_names(resource, flags)
