"""The image, built and unpacked without a container engine: mmdebstrap makes the base, buildah the image."""

import json
import os
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

ROOT: Final = Path(__file__).resolve().parents[2]
NEEDED: Final = ("mmdebstrap", "buildah", "runc")
_BASE: Final = "localhost/base"
_PACKAGES: Final = "python3-minimal,python3-venv,ca-certificates"
_EPOCH: Final = "1700000000"
# What a machine says of its network is needed while packages are fetched, and stays out of the image.
_OF_THE_MACHINE: Final = ("/etc/ssl/certs", "/etc/pip.conf")


def missing() -> str:
    """What keeps us from building here; empty if nothing does."""
    absent = [name for name in NEEDED if not shutil.which(name)]
    if absent:
        return f"{', '.join(absent)} not installed; on Debian: apt-get install {' '.join(absent)}"
    return "" if os.geteuid() == 0 else "making a base and running a container needs root"


@dataclass(frozen=True, slots=True)
class Image:
    """An image in a store of buildah's."""

    builder: "Builder"
    name: str

    def config(self) -> dict[str, Any]:
        """What a runtime is told of it, by the OCI specification."""
        told: dict[str, Any] = self.builder.inspect(self.name)["OCIv1"]["config"]
        return told

    def layers(self) -> list[str]:
        """The digests of its layers."""
        found: list[str] = self.builder.inspect(self.name)["OCIv1"]["rootfs"]["diff_ids"]
        return found

    def files(self) -> Path:
        """A folder with its files, to run or to look at; never to be changed."""
        container = self.builder.buildah("from", "--pull-never", self.name)
        return Path(self.builder.buildah("mount", container))


class Builder:
    """A store of images in a folder.

    Args:
        folder: gets base, images and unpacked files; about 2 GB.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def buildah(self, *arguments: str) -> str:
        """What buildah prints.

        Raises:
            AssertionError: it failed; the message is what it said.
        """
        store = [
            "--root",
            str(self._folder / "store"),
            "--runroot",
            str(self._folder / "run"),
            "--storage-driver",
            "vfs",
        ]
        done = subprocess.run(["buildah", *store, *arguments], cwd=ROOT, capture_output=True, text=True, check=False)
        assert not done.returncode, f"buildah {arguments[0]}: {done.stderr[-4000:]}"
        return done.stdout.strip()

    def inspect(self, image: str) -> dict[str, Any]:
        """What buildah knows of an image."""
        told: dict[str, Any] = json.loads(self.buildah("inspect", "--type", "image", image))
        return told

    def make_base(self) -> None:
        """Bootstraps a Debian with Python and nothing else, as an image."""
        archive = self._folder / "base.tar"
        command = ["mmdebstrap", "--variant=minbase", f"--include={_PACKAGES}", "bookworm", str(archive)]
        subprocess.run(command, env={**os.environ, "SOURCE_DATE_EPOCH": _EPOCH}, check=True, capture_output=True)
        container = self.buildah("from", "scratch")
        self.buildah("add", "--quiet", container, str(archive), "/")
        self.buildah("commit", "--quiet", "--rm", container, _BASE)
        archive.unlink()

    def build(self, name: str) -> Image:
        """Builds our image on that base, from nothing that was built before."""
        mounts = [flag for path in _OF_THE_MACHINE if Path(path).exists() for flag in ("-v", f"{path}:{path}:ro")]
        settings = ["--isolation=chroot", "--pull-never", "--no-cache", f"--timestamp={_EPOCH}"]
        self.buildah("bud", *settings, *mounts, f"--build-arg=BASE={_BASE}", "--tag", name, ".")
        return Image(self, name)
