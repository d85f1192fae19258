"""Output to a terminal: text with colours that fits its width, and a progress bar. Pipes and files get plain text.

The exit status of commands is here, too.
"""

import logging
import os
import re
import shutil
import sys
import textwrap
import time
from collections.abc import Callable
from typing import Final, Self, TextIO

import typer

from extender.basics.visible_text import make_visible
from extender.logs.klog import LoggingOptions, configure_logging

EXIT_CODE_FLAG: Final = "--exit-code"

FITS: Final = 0
WAITS: Final = 3
ERROR: Final = 4
"""The exit status of the commands that answer a question, for scripts that pass `--exit-code`."""

_BAR_WIDTH: Final = 30
_MIN_TEXT_WIDTH: Final = 24
_SECONDS_BETWEEN_LINES: Final = 30.0
_BOLD, _RED, _GREEN, _RESET = "\033[1m", "\033[31m", "\033[32m", "\033[0m"
_RESULT: Final = re.compile(r"(?:  |\S+: )fits on (none)?")
_LAST_COLUMN: Final = re.compile(r"(?:.*\S {2,}|\s*)(?=\S)")


def write_error(line: str) -> None:
    """Write a line with an error or a note to standard error.

    Unprintable characters of names become visible, also line breaks, because a name could forge further lines.
    """
    line = make_visible(line).replace("\n", r"\n")
    sys.stderr.write(f"extender: {line}\n")


def report_failure(*lines: str, log_format: str = "text", status: int = 1) -> int:
    """Write the errors that end a process, and return its exit *status*.

    They are written as by `write_error`, or with the log format `json` as messages of the log.

    Source: component-base/cli/run.go, Run (1.37).
    """
    if log_format == "json":
        configure_logging(LoggingOptions(log_format))
    for line in lines:
        text = " ".join(line.split())
        if log_format == "json":
            logging.getLogger("extender").error("command failed", extra={"err": text})
        else:
            write_error(text)
    return status


def exit_with(status: int, *, enabled: bool) -> None:
    """End the command with *status* if `--exit-code` was passed.

    Raises:
        Exit: *enabled* is true, and the status is not 0.
    """
    if enabled and status:
        raise typer.Exit(status)


def write_text(text: str, output: TextIO | None = None) -> None:
    """Write *text* to a terminal or another output; None means standard output.

    No output gets the escape sequences of names and messages, because a pager may pass them to a terminal. A terminal
    gets wrapped lines, bold titles, and the results of pods in colour, unless the variable NO_COLOR is set or TERM is
    `dumb`.

    Source: cli-runtime/pkg/printers/terminal.go, WriteEscaped (1.37).
    """
    output, text = sys.stdout if output is None else output, make_visible(text)
    if not output.isatty():
        output.write(text)
        return
    width = shutil.get_terminal_size().columns
    has_colours = not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"
    previous_line = ""
    for line in text.splitlines():
        start, end = _choose_colour(line, previous_line) if has_colours else ("", "")
        output.write(f"{start}{_wrap(line, width)}{end}\n")
        previous_line = line


def _choose_colour(line: str, previous_line: str) -> tuple[str, str]:
    """Return the escape sequences before and after a line: titles are bold, results red or green.

    A title is the first line, or follows an empty one. A table without an indent has only one title.
    """
    result = _RESULT.match(line)
    if result is not None:
        return _RED if result[1] else _GREEN, _RESET
    return (_BOLD, _RESET) if line[:1].strip() and not previous_line else ("", "")


def _wrap(line: str, width: int) -> str:
    """Wrap the last column of a line that is wider than *width*. Lines of wide tables stay as they are."""
    match = _LAST_COLUMN.match(line)
    indent = match.end() if match is not None else 0
    if len(line) <= width or width - indent < _MIN_TEXT_WIDTH:
        return line
    return textwrap.fill(
        line,
        width,
        subsequent_indent=" " * indent,
        replace_whitespace=False,
        drop_whitespace=True,
        break_long_words=False,
        break_on_hyphens=False,
    )


class ProgressBar:
    """A progress bar on one line of a terminal, erased at the end. A file or a pipe gets a line every half minute.

    As a context manager, it is erased at the end of the block.
    """

    def __init__(self, noun: str, terminal: TextIO | None = None, clock: Callable[[], float] = time.monotonic) -> None:
        """Create the bar without drawing it.

        *noun* names the counted things, such as `pods`. Without *terminal*, the bar is on standard error.
        """
        self._noun = noun
        self._terminal = sys.stderr if terminal is None else terminal
        self._enabled = self._terminal.isatty()
        self._last_state: tuple[int, int] = (-1, -1)
        self._clock = clock
        self._last_line_time = clock()

    def __enter__(self) -> Self:
        """Return the bar."""
        return self

    def __exit__(self, *_: object) -> None:
        """Erase the bar."""
        self.erase()

    def show(self, done: float, total: int) -> None:
        """Draw the bar if its percentage or its total changed; erase it if all is done.

        *done* has a fraction if a part of one thing is done.
        """
        if not self._enabled:
            self._write_line(done, total)
            return
        if total <= 0:
            return
        if done >= total:
            self.erase()
            return
        percent = int(100 * done // total)
        if (percent, total) == self._last_state:
            return
        self._last_state = percent, total
        filled_width = int(_BAR_WIDTH * done // total)
        bar = "#" * filled_width + "." * (_BAR_WIDTH - filled_width)
        line = f"[{bar}] {percent:3d}% {int(done)} of {total} {self._noun}"
        self._terminal.write(f"\r{line[: shutil.get_terminal_size().columns - 1]}")  # a wrapped line cannot be erased
        self._terminal.flush()

    def _write_line(self, done: float, total: int) -> None:
        """Write the numbers if the last line was written long enough ago."""
        now = self._clock()
        if 0 < done < total and now - self._last_line_time >= _SECONDS_BETWEEN_LINES:
            self._last_line_time = now
            part = "" if done == int(done) else f" ({int(100 * done // total)}%)"
            self._terminal.write(f"extender: {int(done)} of {total} {self._noun}{part}\n")
            self._terminal.flush()

    def erase(self) -> None:
        """Erase the bar, so that other output can be written to the terminal."""
        if self._enabled and self._last_state != (-1, -1):
            self._last_state = (-1, -1)
            self._terminal.write("\r\033[K")
            self._terminal.flush()
