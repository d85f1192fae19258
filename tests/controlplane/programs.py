"""The programs of a real control plane: their version and where they are found."""

import os
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from tests.go_module import GoModule

_PACKAGES: Final = {
    "etcd": "go.etcd.io/etcd/server/v3",
    "kube-apiserver": "k8s.io/kubernetes/cmd/kube-apiserver",
    "kube-controller-manager": "k8s.io/kubernetes/cmd/kube-controller-manager",
    "kube-scheduler": "k8s.io/kubernetes/cmd/kube-scheduler",
}

_MODULES: Final = tuple(
    GoModule(Path(__file__).parent / "binaries", "controlplane", "k8s.io/kubernetes", _PACKAGES, mod_file)
    for mod_file in ("go.mod", "kubernetes-1.37.mod")
)
"""One module per Kubernetes version, oldest first; the newest is the default."""


def select_module(version: str) -> GoModule:
    """Return the module of a Kubernetes version such as `1.37.2`, or the default for an empty text.

    Raises:
        ValueError: no module has this version.
    """
    modules = {module.version().removeprefix("v"): module for module in _MODULES}
    if version and version not in modules:
        raise ValueError(f"KUBERNETES={version}: want one of {', '.join(modules)}")
    return modules[version] if version else _MODULES[-1]


MODULE: Final = select_module(os.environ.get("KUBERNETES", ""))
"""The module of the control plane that the tests use."""


RELEASE: Final = ".".join(MODULE.version().removeprefix("v").split(".")[:2])
"""The minor release of the control plane, such as `1.37`."""


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


def make_extender_command(command: str, *arguments: str) -> list[str]:
    """Return the command line of `extender COMMAND` that emulates the release of the control plane."""
    return [sys.executable, "-m", "extender", command, f"--emulated-version={RELEASE}", *arguments]
