"""The programs of a real control plane: which there are, of what version, and where they are found."""

import hashlib
import os
import platform
import re
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


@dataclass(frozen=True, slots=True)
class Programs:
    """The programs in one folder."""

    folder: Path

    def path(self, name: str) -> str:
        """The file of the program *name*."""
        return str(self.folder / name)

    def missing(self) -> list[str]:
        """The programs that are not there."""
        return [name for name in PACKAGES if not os.access(self.folder / name, os.X_OK)]


def given() -> Programs | None:
    """The folder that KUBEBUILDER_ASSETS names; None where it is not set."""
    folder = os.environ.get("KUBEBUILDER_ASSETS")
    return Programs(Path(folder)) if folder else None


def built() -> bool:
    """Whether the cache holds all programs, built from what the module pins now."""
    stamp = cache() / "built"
    return not Programs(cache()).missing() and stamp.is_file() and stamp.read_text() == fingerprint()


def find() -> Programs | str:
    """The programs to run; or, where there are none, why not and what to do."""
    named = given()
    if named is None:
        return Programs(cache()) if built() else f"no control plane {version()} built; run `make control-plane`"
    missing = named.missing()
    return f"KUBEBUILDER_ASSETS lacks {', '.join(missing)}; unset it or complete it" if missing else named
