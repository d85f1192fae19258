"""Pages of docs/: parses the files and commands of their fenced blocks, and runs the commands."""

import os
import re
import shlex
import signal
import subprocess
import sys
import textwrap
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from time import monotonic
from typing import Final

ROOT: Final = Path(__file__).resolve().parents[1]
DOCS: Final = ROOT / "docs"
EXTENDER: Final = (sys.executable, "-m", "extender")

_BLOCK: Final = re.compile(
    r"^(?P<indent> *)```(?P<kind>\w*)(?: title=\"(?P<title>[^\"]+)\")?\n(?P<text>.*?)^(?P=indent)```$",
    re.DOTALL | re.MULTILINE,
)
_TIMEOUT: Final = 60.0


@dataclass(frozen=True, slots=True)
class Block:
    """A fenced block: its language, the file of its title (or empty), and its text."""

    kind: str
    title: str
    text: str


@dataclass(frozen=True, slots=True)
class Step:
    """A command and its expected output lines; a line that ends in `...` is a prefix."""

    command: str
    expected_lines: tuple[str, ...]

    def missing_lines(self, output: str) -> list[str]:
        """Return the expected lines that are not in *output*."""
        lines = output.splitlines()
        return [line for line in self.expected_lines if not any(_line_matches(line, process) for process in lines)]


def _line_matches(expected: str, line: str) -> bool:
    prefix = expected.removesuffix("...").rstrip()
    return line.startswith(prefix) if expected.endswith("...") else line.rstrip() == prefix


def parse_blocks(page: Path) -> list[Block]:
    """Return the blocks of a page, in order."""
    return [
        Block(blocks["kind"], blocks["title"] or "", textwrap.dedent(blocks["text"]))
        for blocks in _BLOCK.finditer(page.read_text())
    ]


def parse_steps(blocks: Sequence[Block]) -> list[Step]:
    """Return the commands of the console blocks, in order."""
    steps = []
    for block in blocks:
        if block.kind == "console":
            for part in re.split(r"(?m)^\$ ", block.text)[1:]:
                command, *expected = part.splitlines()
                steps.append(Step(command.partition("  #")[0].strip(), tuple(filter(str.strip, expected))))
    return steps


@dataclass
class PageRunner:
    """Runs the commands of a page.

    Attributes:
        folder: the working directory.
        programs: the command of each program name.
        replacements: replaced words of the page, such as ports and file names.
        environment: additional environment variables.
        timeout: seconds in which a command must print the expected lines; until then it is repeated.
    """

    folder: Path
    programs: Mapping[str, Sequence[str]]
    replacements: Mapping[str, str] = field(default_factory=dict)
    environment: Mapping[str, str] = field(default_factory=dict)
    timeout: float = _TIMEOUT
    _background_processes: list[subprocess.Popen[bytes]] = field(default_factory=list)

    def write_files(self, blocks: Sequence[Block]) -> None:
        """Write the files of titled blocks."""
        for block in blocks:
            if block.title:
                path = self.folder / block.title
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_text(self._replace_words(block.text))

    def run_step(self, step: Step, wait: Callable[[float], None]) -> None:
        """Run a command and compare its output. *wait* sleeps for a number of seconds."""
        command = self._replace_words(step.command)
        if command.endswith("&"):
            self._start_in_background(command.removesuffix("&"))
            return
        deadline = monotonic() + self.timeout
        while True:
            process = self._run_command(command)
            missing = step.missing_lines(process.stdout)
            if process.returncode == 0 and not missing:
                return
            if monotonic() > deadline or not step.expected_lines:
                raise AssertionError(
                    f"{command}\nstatus {process.returncode}\n{missing}\n{process.stdout}\n{process.stderr}"
                )
            wait(0.2)

    def stop_background_processes(self) -> None:
        """Stop the processes in the background."""
        for process in self._background_processes:
            process.send_signal(signal.SIGTERM)
        for process in self._background_processes:
            process.wait(30)

    def _replace_words(self, text: str) -> str:
        for old, new in self.replacements.items():
            text = text.replace(old, new)
        return text

    def _command_arguments(self, command: str) -> list[str]:
        first, *words = shlex.split(command)
        return [*self.programs[first], *words]

    def _environment(self) -> dict[str, str]:
        return {**os.environ, "PYTHONPATH": str(ROOT), "COLUMNS": "200", **self.environment}

    def _run_command(self, command: str) -> "subprocess.CompletedProcess[str]":
        command, _, output_file = command.partition(" > ")
        process = subprocess.run(
            self._command_arguments(command),
            cwd=self.folder,
            env=self._environment(),
            capture_output=True,
            text=True,
            check=False,
            timeout=2 * self.timeout,
        )
        if output_file:
            (self.folder / output_file.strip()).write_text(process.stdout)
        return process

    def _start_in_background(self, command: str) -> None:
        with (self.folder / f"log-{len(self._background_processes)}").open("ab") as log:
            child = subprocess.Popen(
                self._command_arguments(command),
                cwd=self.folder,
                env=self._environment(),
                stdout=log,
                stderr=subprocess.STDOUT,
            )
        self._background_processes.append(child)
