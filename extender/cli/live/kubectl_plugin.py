"""`kubectl placement`: the commands about a cluster as a kubectl plugin, and its completion for kubectl.

kubectl runs the executable `kubectl-placement` for `kubectl placement`, and `kubectl_complete-placement` for its
completion.
"""

import io
import os
import shlex
import sys
from collections.abc import Iterator, Sequence
from contextlib import redirect_stdout, suppress
from typing import Final

from extender.cli import main as command_line
from extender.cli.live.completion import COMPLETE_VARIABLE
from extender.config.did_you_mean import find_closest_name

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


def main() -> None:
    """Run `kubectl placement` with the arguments of this process."""
    arguments = sys.argv[1:]
    if not arguments or arguments[0] in {"-h", "--help", "help"}:
        lines = [f"  {name:<11}{command_line.COMMANDS[command]}" for name, command in COMMANDS.items()]
        sys.stdout.write(_USAGE.format(commands="\n".join(lines)))
        sys.exit(0 if arguments else 2)
    if arguments[0] not in COMMANDS and not arguments[0].startswith("-"):
        renamed_commands = {command: name for name, command in COMMANDS.items()}
        suggestion = renamed_commands.get(find_closest_name(arguments[0], renamed_commands) or "", "")
        advice = f'did you mean "{suggestion}"?' if suggestion else "see kubectl placement --help"
        sys.stderr.write(f'extender: "{arguments[0]}" is no command of kubectl placement; {advice}\n')
        sys.exit(2)
    command_line.main("kubectl placement", COMMANDS)


def complete() -> None:
    """Print the completions for the words after `kubectl placement`, one a line, and cobra's directive."""
    for line in list_completions(sys.argv[1:]):
        sys.stdout.write(f"{line}\n")


def list_completions(words: Sequence[str]) -> Iterator[str]:
    """Yield the completions of the last of *words*, and cobra's directive at the end."""
    if len(words) <= 1:
        yield from (name for name in COMMANDS if name.startswith("".join(words)))
        yield _NO_FILE_COMPLETION
    elif words[0] not in COMMANDS or words[-2] in _FILE_FLAGS:
        yield _FILE_COMPLETION
    else:
        yield from _complete_for_bash(["extender", COMMANDS[words[0]], *words[1:]])
        yield _NO_FILE_COMPLETION


def _complete_for_bash(words: Sequence[str]) -> list[str]:
    """Return the completions of the last of *words* that `extender completion bash` shows."""
    os.environ[COMPLETE_VARIABLE] = "complete_bash"
    os.environ["COMP_WORDS"], os.environ["COMP_CWORD"] = shlex.join(words), str(len(words) - 1)
    with redirect_stdout(io.StringIO()) as output, suppress(SystemExit):
        command_line.main()
    return output.getvalue().split()
