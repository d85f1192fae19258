"""A real control plane for the tests here: started once, cleaned after each test, its logs kept on failure."""

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest

from tests.controlplane import programs
from tests.controlplane.api import Api, RefusedError
from tests.controlplane.candidates import nodes
from tests.controlplane.plane import ControlPlane
from tests.controlplane.recording import LEASE, Recording

HERE = Path(__file__).parent


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Marks every test here."""
    for item in items:
        if HERE in item.path.parents:
            item.add_marker(pytest.mark.controlplane)


@pytest.fixture(scope="session")
def control_plane(tmp_path_factory: pytest.TempPathFactory, request: pytest.FixtureRequest) -> Iterator[ControlPlane]:
    """etcd and kube-apiserver, running."""
    with running(tmp_path_factory.mktemp("control-plane"), request.session) as plane:
        yield plane


@contextmanager
def running(folder: Path, session: pytest.Session, *flags: str) -> Iterator[ControlPlane]:
    """etcd and kube-apiserver with these flags, running."""
    found = programs.find()
    if isinstance(found, str):
        # `.ci/run` and `make test-control-plane` say that it must be there.
        (pytest.fail if os.environ.get("CONTROL_PLANE") == "required" else pytest.skip)(found)
    plane = ControlPlane(found, folder, *flags)
    failed = session.testsfailed
    try:
        plane.start()
        yield plane
    finally:
        plane.stop()
        if session.testsfailed > failed:
            shutil.rmtree(plane.folder / "etcd", ignore_errors=True)
            print(f"\nlogs of the control plane: {plane.folder}")  # noqa: T201 - for who reads the failure
        else:
            shutil.rmtree(plane.folder, ignore_errors=True)


@pytest.fixture
def api(control_plane: ControlPlane) -> Iterator[Api]:
    """A client for the administrator; what it creates, and the programs the test started, are gone after the test."""
    with control_plane.api() as client:
        yield client
        control_plane.end_guests()
        client.clean()


@pytest.fixture
def recording(control_plane: ControlPlane, api: Api) -> Recording:
    """Twenty nodes and nobody leads; all that happens is recorded."""
    recording = Recording(control_plane)
    with suppress(RefusedError):
        api.call("DELETE", LEASE)
    for node in nodes(20):
        api.create(node)
    return recording
