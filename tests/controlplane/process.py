"""A program of the control plane as a child process: started, watched, always stopped, its output kept."""

import ctypes
import os
import signal
import socket
import subprocess
import sys
from collections.abc import Mapping, Sequence
from contextlib import closing
from pathlib import Path
from time import monotonic
from typing import IO, Final

_GRACE: Final = 15.0


class EndedError(Exception):
    """A program ended that should be running; the message has the end of its log."""


def free_ports(count: int) -> list[int]:
    """TCP ports of the loopback address that nobody listens on just now, all different."""
    sockets = [socket.socket() for _ in range(count)]
    try:
        for each in sockets:
            each.bind(("127.0.0.1", 0))
        return [each.getsockname()[1] for each in sockets]
    finally:
        for each in sockets:
            each.close()


def listening(port: int) -> bool:
    """Whether somebody accepts connections at the port of the loopback address."""
    with closing(socket.socket()) as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0


_PR_SET_PDEATHSIG: Final = 1
_LIBC: Final = ctypes.CDLL(None)


def _die_with_parent() -> None:
    """Asks Linux to kill this process when the tests are killed before they can stop it."""
    _LIBC.prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)


class Process:
    """One running program.

    Args:
        command: the program and its arguments.
        log: gets what it prints, added to the end.
        settings: environment variables beside the usual ones.
    """

    def __init__(self, command: Sequence[str], log: Path, settings: Mapping[str, str] | None = None) -> None:
        self.log = log
        self.name = Path(command[0]).name
        self._out: IO[bytes] = log.open("ab")
        self._begin = self._out.tell()
        self._child = subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=self._out,
            stderr=subprocess.STDOUT,
            env={**os.environ, **(settings or {})},
            start_new_session=True,
            preexec_fn=_die_with_parent if sys.platform == "linux" else None,  # noqa: PLW1509 - no threads start these
        )

    @property
    def pid(self) -> int:
        """Its process id."""
        return self._child.pid

    def pause(self, seconds: float) -> None:
        """Waits so long, or shorter if the program ends meanwhile.

        Raises:
            EndedError: it did.
        """
        try:
            status = self._child.wait(seconds)
        except subprocess.TimeoutExpired:
            return
        raise EndedError(f"{self.name} ended with status {status}:\n{self.tail()}")

    def signal(self, number: signal.Signals) -> None:
        """Sends it a signal; nothing happens if it is gone."""
        if self._child.poll() is None:
            self._child.send_signal(number)

    def wait(self, seconds: float = _GRACE) -> int:
        """Its exit status, once it ends by itself.

        Raises:
            subprocess.TimeoutExpired: it does not.
        """
        return self._child.wait(seconds)

    def says(self, text: str, seconds: float = 30.0) -> None:
        """Waits until *text* is in what it printed.

        Raises:
            EndedError: it ended before, or does not say it.
        """
        until = monotonic() + seconds
        while text not in self.printed():
            self.pause(0.05)
            if monotonic() > until:
                raise EndedError(f"{self.name} does not say {text!r}:\n{self.tail()}")

    def resident(self) -> int:
        """Bytes of memory it has in use."""
        pages = int(Path(f"/proc/{self.pid}/statm").read_text().split()[1])
        return pages * os.sysconf("SC_PAGE_SIZE")

    def stop(self) -> int:
        """Ends it, by force if it takes too long; its exit status."""
        self.signal(signal.SIGCONT)
        self.signal(signal.SIGTERM)
        try:
            self._child.wait(_GRACE)
        except subprocess.TimeoutExpired:
            self._child.kill()
        self._out.close()
        return self._child.wait()

    def printed(self) -> str:
        """All it has printed."""
        with self.log.open("rb") as log:
            log.seek(self._begin)
            return log.read().decode(errors="replace")

    def tail(self, lines: int = 15) -> str:
        """The end of what it printed."""
        return "\n".join(self.printed().splitlines()[-lines:])
