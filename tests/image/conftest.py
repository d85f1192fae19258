"""The image, built once for all tests here; a control plane to install it on."""

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.controlplane import programs
from tests.controlplane.plane import ControlPlane
from tests.image.building import Builder, Image, missing


@pytest.fixture(scope="session")
def builder(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Builder]:
    """A store with the base in it."""
    if why := missing():
        # `make test-image` says that it must be possible.
        (pytest.fail if os.environ.get("IMAGE") == "required" else pytest.skip)(why)
    if os.environ.get("IMAGE") != "required":
        pytest.skip("building the image takes minutes; `make test-image` does it")
    found = Builder(tmp_path_factory.mktemp("images"))
    found.make_base()
    yield found
    found.buildah("rm", "--all")
    found.buildah("rmi", "--all", "--force")


@pytest.fixture(scope="session")
def image(builder: Builder) -> Image:
    """Our image."""
    return builder.build("localhost/extender")


@pytest.fixture(scope="session")
def files(image: Image) -> Path:
    """Its files, unpacked."""
    return image.files()


@pytest.fixture(scope="module")
def plane(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ControlPlane]:
    """A control plane of its own, which makes pods of Deployments."""
    found = programs.find()
    if isinstance(found, str):
        (pytest.fail if os.environ.get("CONTROL_PLANE") == "required" else pytest.skip)(found)
    plane = ControlPlane(found, tmp_path_factory.mktemp("control-plane"))
    try:
        plane.start()
        plane.controllers("deployment-controller", "replicaset-controller")
        yield plane
    finally:
        plane.stop()
