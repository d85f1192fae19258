"""The programs of a real control plane: which there are, of what version, and where they are found."""

import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from tests.go_module import GoModule

MODULE: Final = GoModule(
    Path(__file__).parent / "binaries",
    "controlplane",
    "k8s.io/kubernetes",
    {
        "etcd": "go.etcd.io/etcd/server/v3",
        "kube-apiserver": "k8s.io/kubernetes/cmd/kube-apiserver",
        "kube-controller-manager": "k8s.io/kubernetes/cmd/kube-controller-manager",
        "kube-scheduler": "k8s.io/kubernetes/cmd/kube-scheduler",
    },
)


def given() -> dict[str, Path]:
    """The programs in the folder that KUBEBUILDER_ASSETS names."""
    folder = os.environ.get("KUBEBUILDER_ASSETS")
    files = {name: Path(folder) / name for name in MODULE.packages} if folder else {}
    return {name: file for name, file in files.items() if os.access(file, os.X_OK)}


@dataclass(frozen=True, slots=True)
class Programs:
    """All programs, each with its file."""

    files: Mapping[str, Path]

    def path(self, name: str) -> str:
        """The file of the program *name*."""
        return str(self.files[name])


def find() -> Programs | str:
    """The programs to run; or, where one is missing, why not and what to do."""
    found = {name: given().get(name) or MODULE.built(name) for name in MODULE.packages}
    missing = [name for name, file in found.items() if file is None]
    if missing:
        return f"{', '.join(missing)} {MODULE.version()} not built; run `make control-plane`"
    return Programs({name: file for name, file in found.items() if file})
