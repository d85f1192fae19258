"""The exit status of the commands that answer a question, for scripts that pass `--exit-code`."""

from typing import Annotated, Final

import typer

FITS: Final = 0
WAITS: Final = 3
ERROR: Final = 4

EXIT_CODE_FLAG: Final = "--exit-code"

ExitCodeOption = Annotated[
    bool,
    typer.Option(
        EXIT_CODE_FLAG, help="Exit with 0 if all pods fit, 3 if a pod has to wait, and 4 after an error. For scripts."
    ),
]


def exit_with(status: int, *, enabled: bool) -> None:
    """End the command with *status* if `--exit-code` was passed.

    Raises:
        Exit: *enabled* is true, and the status is not 0.
    """
    if enabled and status:
        raise typer.Exit(status)
