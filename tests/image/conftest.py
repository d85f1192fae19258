"""The image, built once for all tests of this folder, and a control plane to install it on."""

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.controlplane import programs
from tests.controlplane.control_plane import ControlPlane
from tests.image.image_builder import Builder, Image, find_missing_requirement


@pytest.fixture(scope="session")
def builder(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Builder]:
    """Return a builder with the base image."""
    if missing := find_missing_requirement():
        # `make test-image` requires it.
        (pytest.fail if os.environ.get("IMAGE") == "required" else pytest.skip)(missing)
    if os.environ.get("IMAGE") != "required":
        pytest.skip("building the image takes minutes; `make test-image` does it")
    found = Builder(tmp_path_factory.mktemp("images"))
    found.make_base()
    yield found
    found.buildah("rm", "--all")
    found.buildah("rmi", "--all", "--force")


@pytest.fixture(scope="session")
def image(builder: Builder) -> Image:
    """Build our image."""
    return builder.build("localhost/extender")


@pytest.fixture(scope="session")
def files(image: Image) -> Path:
    """Mount our image and return the folder."""
    return image.mount()


@pytest.fixture(scope="module")
def plane(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ControlPlane]:
    """Run a control plane with the controllers of Deployments."""
    found = programs.find()
    if isinstance(found, str):
        (pytest.fail if os.environ.get("CONTROL_PLANE") == "required" else pytest.skip)(found)
    plane = ControlPlane(found, tmp_path_factory.mktemp("control-plane"))
    try:
        plane.start()
        plane.start_controllers("deployment-controller", "replicaset-controller")
        yield plane
    finally:
        plane.stop()
