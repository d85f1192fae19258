"""Programs that a Go module of this repository pins, and their files in the cache."""

import hashlib
import os
import platform
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True, slots=True)
class GoModule:
    """A folder with go.mod and go.sum that pin programs, and perhaps Go code of its own.

    Attributes:
        folder: the folder of the two files.
        cache_name: the folder in the cache, such as `controlplane`.
        version_module: the Go module whose version names the cache folder.
        packages: the Go package of each program.
        mod_file: the file with the pins; `kubernetes-1.37.mod` has its checksums in `kubernetes-1.37.sum`.
        tags: the build tags.
    """

    folder: Path
    cache_name: str
    version_module: str
    packages: Mapping[str, str]
    mod_file: str = "go.mod"
    tags: str = ""

    def version(self) -> str:
        """Return the pinned version of `version_module`, such as `v1.36.3`."""
        pin = rf"(?m)^(?:require)?\s*{re.escape(self.version_module)} (v\d+\.\d+\.\d+)"
        match = re.search(pin, (self.folder / self.mod_file).read_text())
        assert match, f"{self.folder}/{self.mod_file} requires no version of {self.version_module}"
        return match[1]

    def fingerprint(self) -> str:
        """Return a digest of the pins and the code, and the platform."""
        digest = hashlib.sha256()
        pins = self.folder / self.mod_file
        for file in (pins, pins.with_suffix(".sum"), *sorted(self.folder.glob("*.go"))):
            digest.update(file.read_bytes())
        return digest.hexdigest() + f" {platform.system()} {platform.machine()}\n"

    def cache_folder(self) -> Path:
        """Return the folder of the built programs, outside of the repository."""
        home = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
        return Path(home) / "extender" / self.cache_name / self.version()

    def stamp_file(self, name: str) -> Path:
        """Return the file beside a program with the fingerprint of its build."""
        return self.cache_folder() / f"{name}.built-from"

    def find_built(self, name: str) -> Path | None:
        """Return the program in the cache if its fingerprint is current."""
        file, stamp = self.cache_folder() / name, self.stamp_file(name)
        is_current = os.access(file, os.X_OK) and stamp.is_file() and stamp.read_text() == self.fingerprint()
        return file if is_current else None
