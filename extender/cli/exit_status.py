"""The exit status of the commands that answer a question, for scripts that pass `--exit-code`."""

from typing import Final

import typer

FITS: Final = 0
WAITS: Final = 3
ERROR: Final = 4

EXIT_CODE_FLAG: Final = "--exit-code"


def exit_with(status: int, *, enabled: bool) -> None:
    """End the command with *status* if `--exit-code` was passed.

    Raises:
        Exit: *enabled* is true, and the status is not 0.
    """
    if enabled and status:
        raise typer.Exit(status)
