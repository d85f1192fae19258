"""Builds and mounts the image without a container engine: mmdebstrap makes the base image, buildah ours."""

import json
import os
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

ROOT: Final = Path(__file__).resolve().parents[2]
REQUIRED_PROGRAMS: Final = ("mmdebstrap", "buildah", "runc")
_BASE: Final = "localhost/base"
_PACKAGES: Final = "python3-minimal,python3-venv,ca-certificates"
_EPOCH: Final = "1700000000"
# Network settings of the host, which are mounted while packages are fetched and do not get into the image.
_HOST_PATHS: Final = ("/etc/ssl/certs", "/etc/pip.conf")


def find_missing_requirement() -> str:
    """Return the missing requirement for a build; empty if there is none."""
    missing = [name for name in REQUIRED_PROGRAMS if not shutil.which(name)]
    if missing:
        return f"{', '.join(missing)} not installed; on Debian: apt-get install {' '.join(missing)}"
    return "" if os.geteuid() == 0 else "building the base image and running a container needs root"


@dataclass(frozen=True, slots=True)
class Image:
    """An image in the store of buildah."""

    builder: "Builder"
    name: str

    def config(self) -> dict[str, Any]:
        """Return the config of the image, as in the OCI image specification."""
        config: dict[str, Any] = self.builder.inspect(self.name)["OCIv1"]["config"]
        return config

    def layers(self) -> list[str]:
        """Return the digests of the layers."""
        digests: list[str] = self.builder.inspect(self.name)["OCIv1"]["rootfs"]["diff_ids"]
        return digests

    def mount(self) -> Path:
        """Mount the image and return the folder, which must not be changed."""
        container = self.builder.buildah("from", "--pull-never", self.name)
        return Path(self.builder.buildah("mount", container))


class Builder:
    """Builds images in a store of buildah.

    Args:
        folder: gets the store, about 2 GB.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def buildah(self, *arguments: str) -> str:
        """Run buildah and return its output.

        Raises:
            AssertionError: buildah failed; the message has its stderr.
        """
        store = [
            "--root",
            str(self._folder / "store"),
            "--runroot",
            str(self._folder / "run"),
            "--storage-driver",
            "vfs",
        ]
        process = subprocess.run(["buildah", *store, *arguments], cwd=ROOT, capture_output=True, text=True, check=False)
        assert not process.returncode, f"buildah {arguments[0]}: {process.stderr[-4000:]}"
        return process.stdout.strip()

    def inspect(self, image: str) -> dict[str, Any]:
        """Return the output of `buildah inspect` for an image."""
        details: dict[str, Any] = json.loads(self.buildah("inspect", "--type", "image", image))
        return details

    def make_base(self) -> None:
        """Build the base image: Debian with Python only."""
        archive = self._folder / "base.tar"
        command = ["mmdebstrap", "--variant=minbase", f"--include={_PACKAGES}", "bookworm", str(archive)]
        subprocess.run(command, env={**os.environ, "SOURCE_DATE_EPOCH": _EPOCH}, check=True, capture_output=True)
        container = self.buildah("from", "scratch")
        self.buildah("add", "--quiet", container, str(archive), "/")
        self.buildah("commit", "--quiet", "--rm", container, _BASE)
        archive.unlink()

    def build(self, name: str) -> Image:
        """Build our image on the base image without caches."""
        mounts = [flag for path in _HOST_PATHS if Path(path).exists() for flag in ("-v", f"{path}:{path}:ro")]
        settings = ["--isolation=chroot", "--pull-never", "--no-cache", f"--timestamp={_EPOCH}"]
        self.buildah("bud", *settings, *mounts, f"--build-arg=BASE={_BASE}", "--tag", name, ".")
        return Image(self, name)
