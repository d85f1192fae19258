"""Runs a container with runc, with the restrictions that the chart sets for a pod."""

import json
import subprocess
import uuid
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from time import monotonic
from typing import Any, Final, Self

from tests.image.image_builder import Image

_TIMEOUT: Final = 30.0
_TMPFS_OPTIONS: Final = ["nosuid", "noexec", "nodev"]


@dataclass(frozen=True, slots=True)
class ContainerSpec:
    """The specification of a container.

    Attributes:
        root: the root file system.
        command: program and arguments.
        env: environment variables as `NAME=value`.
        user: user id and group id.
        mounts: read-only files and folders of the host by mount path.
        scratch: writable folders of the host by mount path.
    """

    root: Path
    command: Sequence[str]
    env: Sequence[str] = ()
    user: tuple[int, int] = (65532, 65532)
    mounts: Mapping[str, Path] = field(default_factory=dict)
    scratch: Mapping[str, Path] = field(default_factory=dict)

    @classmethod
    def for_image(
        cls, image: Image, files: Path, arguments: Sequence[str], mounts: Mapping[str, Path] | None = None
    ) -> Self:
        """Return the specification for the entry point of an image with these arguments."""
        config = image.config()
        uid, gid = (int(part) for part in config["User"].split(":"))
        return cls(files, [*config["Entrypoint"], *arguments], config["Env"], (uid, gid), mounts or {})

    def oci_config(self) -> dict[str, Any]:
        """Return the specification as config.json of the OCI runtime specification."""
        mounts_by_mode = [("ro", self.mounts), ("rw", self.scratch)]
        mounts = [(path, source, mode) for mode, paths in mounts_by_mode for path, source in paths.items()]
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
            "root": {"path": str(self.root), "readonly": True},
            "mounts": [
                {"destination": "/proc", "type": "proc", "source": "proc"},
                {"destination": "/dev", "type": "tmpfs", "source": "tmpfs", "options": ["nosuid", "mode=755"]},
                {"destination": "/tmp", "type": "tmpfs", "source": "tmpfs", "options": _TMPFS_OPTIONS},  # noqa: S108
                *(
                    {"destination": path, "type": "bind", "source": str(source), "options": ["bind", mode]}
                    for path, source, mode in mounts
                ),
            ],
            # The container uses the network of the host, with the API server on loopback.
            "linux": {"namespaces": [{"type": "pid"}, {"type": "ipc"}, {"type": "uts"}, {"type": "mount"}]},
        }


class Container:
    """A running container; it ends with the `with` block at the latest.

    Args:
        spec: the specification.
        folder: gets the bundle and the output.
    """

    def __init__(self, spec: ContainerSpec, folder: Path) -> None:
        self._name = f"extender-{uuid.uuid4().hex[:12]}"
        self._state = folder / "state"
        self._log = folder / "container.log"
        (folder / "config.json").write_text(json.dumps(spec.oci_config()))
        with self._log.open("wb") as log:
            self._child = subprocess.Popen(
                ["runc", "--root", str(self._state), "run", "--bundle", str(folder), self._name],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
            )

    def __enter__(self) -> Self:
        """Return the container, which is running."""
        return self

    def __exit__(self, *_: object) -> None:
        """Kill the container."""
        self.kill()

    def _runc(self, *arguments: str) -> str:
        process = subprocess.run(
            ["runc", "--root", str(self._state), *arguments], capture_output=True, text=True, check=False
        )
        assert not process.returncode, f"runc {arguments[0]}: {process.stderr}\n{self.output()}"
        return process.stdout

    def output(self) -> str:
        """Return the output so far."""
        return self._log.read_text()

    def is_running(self) -> bool:
        """Return whether the container runs."""
        return self._child.poll() is None

    def wait(self, seconds: float = _TIMEOUT) -> int:
        """Wait for the end and return the exit status."""
        return self._child.wait(seconds)

    def status(self) -> dict[str, str]:
        """Return the fields of /proc/PID/status of its first process: Uid, CapEff, NoNewPrivs and more."""
        pid = json.loads(self._runc("state", self._name))["pid"]
        lines = Path(f"/proc/{pid}/status").read_text().splitlines()
        return {key: value.strip() for key, _, value in (line.partition(":") for line in lines)}

    def terminate(self) -> tuple[int, float]:
        """Send SIGTERM; return the exit status and the seconds until the end."""
        started = monotonic()
        self._runc("kill", self._name, "TERM")
        return self.wait(), monotonic() - started

    def kill(self) -> None:
        """Kill the container if it runs."""
        if self.is_running():
            self._runc("kill", self._name, "KILL")
            self.wait()
