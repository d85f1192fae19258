"""Write the krew manifest of a release: write_manifest.py REPOSITORY VERSION ARCHIVE... > placement.yaml."""

import hashlib
import re
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import yaml

_TEMPLATE = Path(__file__).parent / "placement.yaml"
_NAME = re.compile(r"kubectl-placement_(?P<os>[a-z]+)_(?P<arch>[a-z0-9]+)\.tar\.gz")


def make_manifest(repository: str, version: str, archives: Sequence[Path]) -> dict[str, Any]:
    """Return the manifest with one platform per archive.

    Args:
        repository: OWNER/NAME on GitHub.
        version: the version of the release, without the leading v.
        archives: files that `build_archive.sh` wrote.

    Raises:
        ValueError: the name of an archive has no platform.
    """
    text = _TEMPLATE.read_text().format(repository=repository, version=version)
    manifest: dict[str, Any] = yaml.safe_load(text)
    manifest["spec"]["platforms"] = [_make_platform(repository, version, archive) for archive in sorted(archives)]
    return manifest


def _make_platform(repository: str, version: str, archive: Path) -> dict[str, Any]:
    match = _NAME.fullmatch(archive.name)
    if not match:
        raise ValueError(f"{archive.name}: want kubectl-placement_OS_ARCH.tar.gz")
    return {
        "selector": {"matchLabels": {"os": match["os"], "arch": match["arch"]}},
        "uri": f"https://github.com/{repository}/releases/download/v{version}/{archive.name}",
        "sha256": hashlib.sha256(archive.read_bytes()).hexdigest(),
        "bin": "kubectl-placement/kubectl-placement",
    }


if __name__ == "__main__":
    yaml.safe_dump(make_manifest(sys.argv[1], sys.argv[2], list(map(Path, sys.argv[3:]))), sys.stdout, sort_keys=False)
