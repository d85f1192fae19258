"""Programs built from a Go module of ours, which pins them: where they are found."""

import hashlib
import os
import platform
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True, slots=True)
class GoModule:
    """A folder with go.mod and go.sum that require programs; there is nothing of our own in it to compile.

    Attributes:
        folder: where the two files are.
        cache_name: folder of the cache, such as `controlplane`.
        versioned: the Go module whose version names the set.
        packages: the programs, and the Go package each is built from.
    """

    folder: Path
    cache_name: str
    versioned: str
    packages: Mapping[str, str]

    def version(self) -> str:
        """The pinned version, such as `v1.36.3`."""
        pin = rf"(?m)^(?:require)?\s*{re.escape(self.versioned)} (v\d+\.\d+\.\d+)"
        found = re.search(pin, (self.folder / "go.mod").read_text())
        assert found, f"{self.folder}/go.mod requires no version of {self.versioned}"
        return found[1]

    def fingerprint(self) -> str:
        """What the programs are built from, as a digest: other pins, other programs."""
        digest = hashlib.sha256()
        for name in ("go.mod", "go.sum"):
            digest.update((self.folder / name).read_bytes())
        return digest.hexdigest() + f" {platform.system()} {platform.machine()}\n"

    def cache(self) -> Path:
        """Where they are put, outside the tree."""
        home = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
        return Path(home) / "extender" / self.cache_name / self.version()

    def stamp(self, name: str) -> Path:
        """A file beside a program of the cache that says what it was built from."""
        return self.cache() / f"{name}.built-from"

    def built(self, name: str) -> Path | None:
        """The program in the cache, if it was built from what the module pins now."""
        file, stamp = self.cache() / name, self.stamp(name)
        whole = os.access(file, os.X_OK) and stamp.is_file() and stamp.read_text() == self.fingerprint()
        return file if whole else None
