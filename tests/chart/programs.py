"""The Go module that pins and builds Helm."""

from pathlib import Path
from typing import Final

from tests.go_module import GoModule

MODULE: Final = GoModule(
    Path(__file__).parent / "binaries", "helm", "helm.sh/helm/v3", {"helm": "helm.sh/helm/v3/cmd/helm"}
)
