"""The programs of a real control plane: their version and where they are found."""

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


def programs_from_environment() -> dict[str, Path]:
    """Return the programs in the folder that KUBEBUILDER_ASSETS names."""
    folder = os.environ.get("KUBEBUILDER_ASSETS")
    files = {name: Path(folder) / name for name in MODULE.packages} if folder else {}
    return {name: file for name, file in files.items() if os.access(file, os.X_OK)}


@dataclass(frozen=True, slots=True)
class Programs:
    """The file of each program."""

    files: Mapping[str, Path]

    def path(self, name: str) -> str:
        """Return the file of a program."""
        return str(self.files[name])


def find() -> Programs | str:
    """Return the programs, or an error message if one is missing."""
    files = {name: programs_from_environment().get(name) or MODULE.find_built(name) for name in MODULE.packages}
    missing = [name for name, file in files.items() if file is None]
    if missing:
        return f"{', '.join(missing)} {MODULE.version()} not built; run `make control-plane`"
    return Programs({name: file for name, file in files.items() if file})
