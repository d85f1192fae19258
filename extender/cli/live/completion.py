"""`extender completion`: print a script that completes the commands and options in a shell."""

import sys
from enum import Enum
from importlib import import_module
from typing import Annotated, Any, Final

import typer

COMPLETE_VARIABLE: Final = "_EXTENDER_COMPLETE"
"""The environment variable with which the script calls the command."""

_EPILOG: Final = """\b
Examples:
  source <(extender completion bash)
  extender completion zsh > "${fpath[1]}/_extender"
  extender completion fish > ~/.config/fish/completions/extender.fish"""

_ZSH_FIRST_CALL: Final = """
# A file in fpath is first loaded for a completion, which it then has to make. After source, there is none to make.
if [ "${funcstack[1]}" = "_extender" ]; then
  _extender_completion
fi
"""

app = typer.Typer(rich_markup_mode=None, add_completion=False)


class Shell(Enum):
    """A shell with a completion script."""

    BASH = "bash"
    ZSH = "zsh"
    FISH = "fish"


@app.command(epilog=_EPILOG)
def completion(shell: Annotated[Shell, typer.Argument(metavar="{bash|zsh|fish}", help="The shell.")]) -> None:
    """Print a script that completes the commands and options of extender in a shell."""
    typer_completion: Any = import_module("typer.completion")  # its stub does not export the function
    script = typer_completion.get_completion_script(
        prog_name="extender", complete_var=COMPLETE_VARIABLE, shell=shell.value
    )
    first_call = _ZSH_FIRST_CALL if shell is Shell.ZSH else ""
    sys.stdout.write(f"{script}\n{first_call}")
