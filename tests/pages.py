"""Pages of docs/: the files and commands in their blocks, and a reader who does as they say."""

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
_PATIENCE: Final = 60.0


@dataclass(frozen=True, slots=True)
class Block:
    """A fenced block: its language, the file it is titled with (empty: none), and its text."""

    kind: str
    title: str
    text: str


@dataclass(frozen=True, slots=True)
class Step:
    """A command, and the lines that the page shows of what it prints; one that ends in dots stands for a longer one."""

    command: str
    shown: tuple[str, ...]

    def lacks(self, printed: str) -> list[str]:
        """The lines shown that are not among *printed*."""
        lines = printed.splitlines()
        return [line for line in self.shown if not any(_stands_for(line, each) for each in lines)]


def _stands_for(shown: str, line: str) -> bool:
    begin = shown.removesuffix("...").rstrip()
    return line.startswith(begin) if shown.endswith("...") else line.rstrip() == begin


def blocks(page: Path) -> list[Block]:
    """The blocks of a page, in order."""
    return [
        Block(found["kind"], found["title"] or "", textwrap.dedent(found["text"]))
        for found in _BLOCK.finditer(page.read_text())
    ]


def steps(found: Sequence[Block]) -> list[Step]:
    """The commands of the console blocks among *found*, in order."""
    steps = []
    for block in found:
        if block.kind == "console":
            for part in re.split(r"(?m)^\$ ", block.text)[1:]:
                command, *shown = part.splitlines()
                steps.append(Step(command.partition("  #")[0].strip(), tuple(filter(str.strip, shown))))
    return steps


@dataclass
class Reader:
    """Somebody who types what a page says.

    Attributes:
        folder: where to type it.
        programs: what stands for a program's name.
        instead: what to read instead of words of the page: ports, files of somebody's own machine.
        patience: seconds until a command must have printed what is shown; what does not is typed again.
    """

    folder: Path
    programs: Mapping[str, Sequence[str]]
    instead: Mapping[str, str] = field(default_factory=dict)
    environment: Mapping[str, str] = field(default_factory=dict)
    patience: float = _PATIENCE
    _left_running: list[subprocess.Popen[bytes]] = field(default_factory=list)

    def writes(self, found: Sequence[Block]) -> None:
        """The files that titled blocks are."""
        for block in found:
            if block.title:
                path = self.folder / block.title
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_text(self._reads(block.text))

    def types(self, step: Step, wait: Callable[[float], None]) -> None:
        """Type one command, and compare. *wait* lets so many seconds pass."""
        command = self._reads(step.command)
        if command.endswith("&"):
            self._leaves_running(command.removesuffix("&"))
            return
        until = monotonic() + self.patience
        while True:
            done = self._runs(command)
            lacking = step.lacks(done.stdout)
            if done.returncode == 0 and not lacking:
                return
            if monotonic() > until or not step.shown:
                raise AssertionError(f"{command}\nstatus {done.returncode}\n{lacking}\n{done.stdout}\n{done.stderr}")
            wait(0.2)

    def leaves(self) -> None:
        """End what was left running."""
        for each in self._left_running:
            each.send_signal(signal.SIGTERM)
        for each in self._left_running:
            each.wait(30)

    def _reads(self, text: str) -> str:
        for word, other in self.instead.items():
            text = text.replace(word, other)
        return text

    def _words(self, command: str) -> list[str]:
        first, *words = shlex.split(command)
        return [*self.programs[first], *words]

    def _environment(self) -> dict[str, str]:
        return {**os.environ, "PYTHONPATH": str(ROOT), "COLUMNS": "200", **self.environment}

    def _runs(self, command: str) -> "subprocess.CompletedProcess[str]":
        command, _, into = command.partition(" > ")
        done = subprocess.run(
            self._words(command),
            cwd=self.folder,
            env=self._environment(),
            capture_output=True,
            text=True,
            check=False,
            timeout=2 * self.patience,
        )
        if into:
            (self.folder / into.strip()).write_text(done.stdout)
        return done

    def _leaves_running(self, command: str) -> None:
        with (self.folder / f"log-{len(self._left_running)}").open("ab") as log:
            child = subprocess.Popen(
                self._words(command), cwd=self.folder, env=self._environment(), stdout=log, stderr=subprocess.STDOUT
            )
        self._left_running.append(child)
