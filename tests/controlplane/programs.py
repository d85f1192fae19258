"""The programs of a real control plane: which there are, of what version, and where they are found."""

import hashlib
import os
import platform
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

MODULE: Final = Path(__file__).parent / "binaries"
"""A Go module that requires each program at one version; there is nothing of our own in it to compile."""

PACKAGES: Final = {
    "etcd": "go.etcd.io/etcd/server/v3",
    "kube-apiserver": "k8s.io/kubernetes/cmd/kube-apiserver",
    "kube-controller-manager": "k8s.io/kubernetes/cmd/kube-controller-manager",
    "kube-scheduler": "k8s.io/kubernetes/cmd/kube-scheduler",
}
"""Programs, and the Go package each is built from."""

_KUBERNETES: Final = re.compile(r"^\s*k8s\.io/kubernetes (v\d+\.\d+\.\d+)", re.MULTILINE)


def version() -> str:
    """The pinned version of Kubernetes, such as `v1.36.3`."""
    found = _KUBERNETES.search((MODULE / "go.mod").read_text())
    assert found, "tests/controlplane/binaries/go.mod requires no version of k8s.io/kubernetes"
    return found[1]


def fingerprint() -> str:
    """What the programs are built from, as a digest: other pins, other programs."""
    digest = hashlib.sha256()
    for name in ("go.mod", "go.sum"):
        digest.update((MODULE / name).read_bytes())
    return digest.hexdigest() + f" {platform.system()} {platform.machine()}\n"


def cache() -> Path:
    """Where `make control-plane` puts them, outside the tree."""
    home = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(home) / "extender" / "controlplane" / version()


def stamp(name: str) -> Path:
    """A file beside a program of the cache that says what it was built from."""
    return cache() / f"{name}.built-from"


def given(name: str) -> Path | None:
    """The program in the folder that KUBEBUILDER_ASSETS names; None where there is none."""
    folder = os.environ.get("KUBEBUILDER_ASSETS")
    file = Path(folder or "") / name
    return file if folder and os.access(file, os.X_OK) else None


def built(name: str) -> Path | None:
    """The program in the cache, if it was built from what the module pins now."""
    file = cache() / name
    whole = os.access(file, os.X_OK) and stamp(name).is_file() and stamp(name).read_text() == fingerprint()
    return file if whole else None


@dataclass(frozen=True, slots=True)
class Programs:
    """All programs, each with its file."""

    files: Mapping[str, Path]

    def path(self, name: str) -> str:
        """The file of the program *name*."""
        return str(self.files[name])


def find() -> Programs | str:
    """The programs to run; or, where one is missing, why not and what to do."""
    found = {name: given(name) or built(name) for name in PACKAGES}
    missing = [name for name, file in found.items() if file is None]
    if missing:
        return f"{', '.join(missing)} {version()} not built; run `make control-plane`"
    return Programs({name: file for name, file in found.items() if file})
