"""A container run by runc with what the chart asks of a pod: no rights, a root that cannot be written to."""

import json
import subprocess
import uuid
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from time import monotonic
from typing import Any, Final, Self

from tests.image.building import Image

_PATIENCE: Final = 30.0
_QUIET: Final = ["nosuid", "noexec", "nodev"]


@dataclass(frozen=True, slots=True)
class Program:
    """What to run in a container.

    Attributes:
        files: the root folder.
        command: program and arguments.
        env: settings as `NAME=value`.
        user: user and group.
        mounts: files and folders of this machine, by where the container finds them, read only.
        scratch: folders that the container may write to, by where it finds them.
    """

    files: Path
    command: Sequence[str]
    env: Sequence[str] = ()
    user: tuple[int, int] = (65532, 65532)
    mounts: Mapping[str, Path] = field(default_factory=dict)
    scratch: Mapping[str, Path] = field(default_factory=dict)

    @classmethod
    def of(cls, image: Image, files: Path, arguments: Sequence[str], mounts: Mapping[str, Path] | None = None) -> Self:
        """The entry point of an image with these arguments."""
        told = image.config()
        uid, gid = (int(part) for part in told["User"].split(":"))
        return cls(files, [*told["Entrypoint"], *arguments], told["Env"], (uid, gid), mounts or {})

    def bundle(self) -> dict[str, Any]:
        """As the OCI runtime specification writes it."""
        own = [("ro", self.mounts), ("rw", self.scratch)]
        bound = [(place, source, mode) for mode, places in own for place, source in places.items()]
        return {
            "ociVersion": "1.0.2",
            "process": {
                "user": {"uid": self.user[0], "gid": self.user[1]},
                "args": list(self.command),
                "env": list(self.env),
                "cwd": "/",
                "capabilities": {},
                "noNewPrivileges": True,
            },
            "root": {"path": str(self.files), "readonly": True},
            "mounts": [
                {"destination": "/proc", "type": "proc", "source": "proc"},
                {"destination": "/dev", "type": "tmpfs", "source": "tmpfs", "options": ["nosuid", "mode=755"]},
                {"destination": "/tmp", "type": "tmpfs", "source": "tmpfs", "options": _QUIET},  # noqa: S108
                *(
                    {"destination": place, "type": "bind", "source": str(source), "options": ["bind", mode]}
                    for place, source, mode in bound
                ),
            ],
            # The network is this machine's: the container serves on loopback, and finds the API server there.
            "linux": {"namespaces": [{"type": "pid"}, {"type": "ipc"}, {"type": "uts"}, {"type": "mount"}]},
        }


class Container:
    """A running container; it ends with the `with` block at the latest.

    Args:
        program: what to run.
        folder: for the bundle and what the container prints.
    """

    def __init__(self, program: Program, folder: Path) -> None:
        self._name = f"extender-{uuid.uuid4().hex[:12]}"
        self._state = folder / "state"
        self._log = folder / "container.log"
        (folder / "config.json").write_text(json.dumps(program.bundle()))
        with self._log.open("wb") as log:
            self._child = subprocess.Popen(
                ["runc", "--root", str(self._state), "run", "--bundle", str(folder), self._name],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
            )

    def __enter__(self) -> Self:
        """It runs already."""
        return self

    def __exit__(self, *_: object) -> None:
        """Ends it at once."""
        self.kill()

    def _runc(self, *arguments: str) -> str:
        done = subprocess.run(
            ["runc", "--root", str(self._state), *arguments], capture_output=True, text=True, check=False
        )
        assert not done.returncode, f"runc {arguments[0]}: {done.stderr}\n{self.printed()}"
        return done.stdout

    def printed(self) -> str:
        """What it has printed so far."""
        return self._log.read_text()

    def running(self) -> bool:
        """Whether it has not ended."""
        return self._child.poll() is None

    def ended(self, seconds: float = _PATIENCE) -> int:
        """Waits for its end; the exit status."""
        return self._child.wait(seconds)

    def status(self) -> dict[str, str]:
        """What the kernel says of its first process: Uid, CapEff, NoNewPrivs and more."""
        pid = json.loads(self._runc("state", self._name))["pid"]
        lines = Path(f"/proc/{pid}/status").read_text().splitlines()
        return {key: value.strip() for key, _, value in (line.partition(":") for line in lines)}

    def terminate(self) -> tuple[int, float]:
        """Sends SIGTERM. Returns the exit status and how many seconds it took."""
        begun = monotonic()
        self._runc("kill", self._name, "TERM")
        return self.ended(), monotonic() - begun

    def kill(self) -> None:
        """Ends it at once, if it has not ended."""
        if self.running():
            self._runc("kill", self._name, "KILL")
            self.ended()
