"""A program as a child process with a log file; it never outlives the tests."""

import ctypes
import os
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing, suppress
from itertools import count
from pathlib import Path
from random import randrange
from time import monotonic
from typing import IO, Final

_STOP_TIMEOUT: Final = 15.0

_FIRST_PORT: Final = 12_000
_PORTS_PER_RANGE: Final = 2_000
_RANGE_COUNT: Final = 10
"""The number of port ranges and their size. They lie below the ephemeral ports of Linux and macOS."""


class ProcessEndedError(Exception):
    """A program ended unexpectedly; the message has the end of its log."""


def _iterate_ports() -> Iterator[int]:
    """Yield the ports of a range that belongs to this test process, endlessly."""
    worker = int(os.environ.get("PYTEST_XDIST_WORKER", "gw0").removeprefix("gw")) % _RANGE_COUNT
    for number in count(randrange(_PORTS_PER_RANGE)):
        yield _FIRST_PORT + worker * _PORTS_PER_RANGE + number % _PORTS_PER_RANGE


_ports: Final = _iterate_ports()


def free_ports(number: int) -> list[int]:
    """Return different TCP ports of the loopback address that are not in use.

    They stay free until they are used: the system assigns ports of a higher range, and other test processes have
    ranges of their own.
    """
    ports: list[int] = []
    while len(ports) < number:
        port = next(_ports)
        with suppress(OSError), closing(socket.socket()) as probe:
            probe.bind(("127.0.0.1", port))
            ports.append(port)
    return ports


def is_listening(port: int) -> bool:
    """Return whether a process listens on the port of the loopback address."""
    with closing(socket.socket()) as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0


_PR_SET_PDEATHSIG: Final = 1
_LIBC: Final = ctypes.CDLL(None)


def _die_with_parent() -> None:
    """Have Linux kill this process when its parent dies."""
    _LIBC.prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)


class Process:
    """A running program.

    Args:
        command: the program and its arguments.
        log: the file to which its output is appended.
        settings: additional environment variables.
    """

    def __init__(self, command: Sequence[str], log: Path, settings: Mapping[str, str] | None = None) -> None:
        self.log = log
        self.name = Path(command[0]).name
        self._log_file: IO[bytes] = log.open("ab")
        self._log_start = self._log_file.tell()
        self._child = subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=self._log_file,
            stderr=subprocess.STDOUT,
            env={**os.environ, **(settings or {})},
            start_new_session=True,
            preexec_fn=_die_with_parent if sys.platform == "linux" else None,  # noqa: PLW1509 - no threads start these
        )

    @property
    def pid(self) -> int:
        """The process id."""
        return self._child.pid

    def pause(self, seconds: float) -> None:
        """Wait while the program runs.

        Raises:
            ProcessEndedError: the program ended.
        """
        try:
            status = self._child.wait(seconds)
        except subprocess.TimeoutExpired:
            return
        raise ProcessEndedError(f"{self.name} ended with status {status}:\n{self.tail()}")

    def signal(self, number: signal.Signals) -> None:
        """Send a signal; do nothing if the program has ended."""
        if self._child.poll() is None:
            self._child.send_signal(number)

    def wait(self, seconds: float = _STOP_TIMEOUT) -> int:
        """Wait until the program ends, and return its exit status.

        Raises:
            subprocess.TimeoutExpired: it still runs.
        """
        return self._child.wait(seconds)

    def wait_for_output(self, text: str, seconds: float = 30.0) -> None:
        """Wait until *text* is in the output.

        Raises:
            ProcessEndedError: the program ended, or *text* did not appear in time.
        """
        deadline = monotonic() + seconds
        while text not in self.output():
            self.pause(0.05)
            if monotonic() > deadline:
                raise ProcessEndedError(f"{self.name} does not print {text!r}:\n{self.tail()}")

    def resident_bytes(self) -> int:
        """Return the resident memory in bytes."""
        pages = int(Path(f"/proc/{self.pid}/statm").read_text().split()[1])
        return pages * os.sysconf("SC_PAGE_SIZE")

    def stop(self) -> int:
        """Terminate the program, kill it after a timeout, and return its exit status."""
        self.signal(signal.SIGCONT)
        self.signal(signal.SIGTERM)
        try:
            self._child.wait(_STOP_TIMEOUT)
        except subprocess.TimeoutExpired:
            self._child.kill()
        self._log_file.close()
        return self._child.wait()

    def output(self) -> str:
        """Return all output."""
        with self.log.open("rb") as log:
            log.seek(self._log_start)
            return log.read().decode(errors="replace")

    def tail(self, lines: int = 15) -> str:
        """Return the last lines of the output."""
        return "\n".join(self.output().splitlines()[-lines:])
