"""The Go module that builds the oracle, once per Kubernetes minor: kube-scheduler's own framework answers scenarios."""

from pathlib import Path
from typing import Final

from tests.go_module import GoModule

_FOLDER: Final = Path(__file__).parent / "program"
_PACKAGES: Final = {"oracle": "."}

MODULES: Final = {
    "1.36": GoModule(_FOLDER, "oracle", "k8s.io/kubernetes", _PACKAGES),
    "1.37": GoModule(_FOLDER, "oracle", "k8s.io/kubernetes", _PACKAGES, "kubernetes-1.37.mod", "kubernetes1_37"),
}
"""The module of each minor, by version."""


def find(version: str) -> Path | str:
    """Return the oracle of a minor such as `1.36`, or an error message if it is not built."""
    module = MODULES[version]
    return module.find_built("oracle") or f"oracle {module.version()} not built; run `make oracle`"
